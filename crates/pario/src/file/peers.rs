//! The exchange of views: what each rank sees, told to all once.
//!
//! A view's layout travels in its wire form. Short ones go along with the
//! message that every rank sends anyway; of longer ones only a hash does, and
//! one rank of those that have the same sends it afterwards. What a rank can
//! take from its own view is not sent to it in vain: equal layouts are
//! decoded once.

use std::collections::HashMap;

use pario_layout::Layout;
use pario_transport::Transport;

use crate::{
    Error, ErrorKind, Result, agree,
    view::{Lowered, Peer, Peers, Sameness},
};

/// Wire forms up to this length go along with the first message.
const INLINE_BYTES: usize = 1024;

/// What a rank says of its view.
struct Description<'a> {
    etype_extent: [u8; 8],
    displacement: u64,
    hash: u128,
    representation: &'a [u8],
    /// The layout's wire form, if it is short.
    wire: &'a [u8],
}

impl<'a> Description<'a> {
    fn to_message(lowered: &Lowered, wire: &[u8]) -> Vec<u8> {
        let view = lowered.view();
        let name = view.representation_name().as_bytes();
        let mut message = view.etype().extent().to_le_bytes().to_vec();
        message.extend(lowered.displacement().to_le_bytes());
        message.extend(lowered.layout().content_hash().to_le_bytes());
        message.extend((name.len() as u16).to_le_bytes());
        message.extend(name);
        if wire.len() <= INLINE_BYTES {
            message.extend(wire);
        }
        message
    }

    fn read(message: &'a [u8]) -> Option<Description<'a>> {
        let (etype_extent, rest) = message.split_first_chunk()?;
        let (displacement, rest) = rest.split_first_chunk()?;
        let (hash, rest) = rest.split_first_chunk()?;
        let (name_len, rest) = rest.split_first_chunk()?;
        let (representation, wire) =
            rest.split_at_checked(usize::from(u16::from_le_bytes(*name_len)))?;
        Some(Description {
            etype_extent: *etype_extent,
            displacement: u64::from_le_bytes(*displacement),
            hash: u128::from_le_bytes(*hash),
            representation,
            wire,
        })
    }
}

/// Tells all ranks of this one's view, or of its error, and learns theirs.
/// *Collective*; one exchange more where long layouts are new.
pub(super) fn exchange(comm: &dyn Transport, mine: &Result<Lowered>, serial: u64) -> Result<Peers> {
    let wire = match mine {
        Ok(lowered) => lowered.layout().to_wire(),
        Err(_) => Vec::new(),
    };
    let message = match mine {
        Ok(lowered) => Ok(Description::to_message(lowered, &wire)),
        Err(error) => Err(error.clone()),
    };
    let all = agree::gather(comm, message)?;
    let descriptions: Vec<Description<'_>> = all
        .iter()
        .map(|message| Description::read(message))
        .collect::<Option<_>>()
        .ok_or_else(broken)?;
    check_equal(&descriptions)?;
    let mut layouts = HashMap::new();
    if let Ok(lowered) = mine {
        layouts.insert(lowered.layout().content_hash(), lowered.layout().clone());
    }
    for description in descriptions.iter().filter(|it| !it.wire.is_empty()) {
        if let std::collections::hash_map::Entry::Vacant(place) = layouts.entry(description.hash) {
            place.insert(Layout::from_wire(description.wire).map_err(|_| broken())?);
        }
    }
    exchange_long(comm, &descriptions, &wire, &mut layouts)?;
    let views = descriptions.iter().map(|description| {
        let layout = layouts.get(&description.hash)?.clone();
        Some(Peer {
            displacement: description.displacement,
            layout,
        })
    });
    let views = views.collect::<Option<_>>().ok_or_else(broken)?;
    let same = all.iter().all(|message| *message == all[0]);
    let sameness = if same {
        Sameness::Same
    } else {
        Sameness::Different
    };
    Ok(Peers {
        views,
        sameness,
        serial,
    })
}

/// The lowest rank that has a long layout sends it, if more than one layout
/// is about: else every rank has its own.
fn exchange_long(
    comm: &dyn Transport,
    descriptions: &[Description<'_>],
    wire: &[u8],
    layouts: &mut HashMap<u128, Layout>,
) -> Result<()> {
    let first = descriptions[0].hash;
    let long = |it: &Description<'_>| it.wire.is_empty();
    if descriptions.iter().all(|it| it.hash == first) || !descriptions.iter().any(long) {
        return Ok(());
    }
    let rank = comm.rank().index();
    let mine = &descriptions[rank];
    let sender = descriptions.iter().position(|it| it.hash == mine.hash);
    let sends = long(mine) && sender == Some(rank);
    let all = comm.all_gather(if sends { wire } else { &[] })?;
    for (message, description) in all.iter().zip(descriptions) {
        if !message.is_empty() && !layouts.contains_key(&description.hash) {
            let layout = Layout::from_wire(message).map_err(|_| broken())?;
            layouts.insert(description.hash, layout);
        }
    }
    Ok(())
}

/// What the standard wants to be the same on all ranks.
fn check_equal(descriptions: &[Description<'_>]) -> Result<()> {
    for (rank, description) in descriptions.iter().enumerate() {
        if description.etype_extent != descriptions[0].etype_extent {
            return Err(agree::differs("the extent of the etype", rank));
        }
        if description.representation != descriptions[0].representation {
            return Err(agree::differs("the data representation", rank));
        }
    }
    Ok(())
}

fn broken() -> Error {
    Error::new(ErrorKind::Io, "a rank told of a view that cannot be read")
}
