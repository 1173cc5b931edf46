//! The exchange of views: every rank learns the views of all others when they are set.
//!
//! Layouts are sent in serialised form. Short ones are part of the first message of every rank.
//! For longer ones that message contains a hash, and one of the ranks with the same hash sends
//! the layout afterwards. Long layouts are decoded when a collective call needs them; what is
//! decided here follows from their outlines, which are part of the first message. A rank that only
//! changes its displacement sends just that.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use pario_layout::Layout;
use pario_transport::Transport;

use crate::{
    Result,
    agree::{self, GatherBuffers},
    collective_call::CollectiveCall,
    view::{FlattenedView, Outline, RankViews, Shape, covers_most, malformed},
};

/// Serialised layouts up to this length are part of the first message.
const INLINE_BYTES: usize = 1024;

/// The view differs from the rank's previous one at most in its displacement.
const MOVED: u8 = 0;
/// Any other view.
const NEW: u8 = 1;

/// Added to the tag if the rank passes hints along with its view.
const HINTS: u8 = 1 << 7;

/// Whether a rank passes hints along with its view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hinting {
    None,
    Some,
}

/// What a rank sends about its view.
enum Description<'a> {
    Moved { displacement: u64 },
    New(NewView<'a>),
}

/// A view that the other ranks do not have.
struct NewView<'a> {
    displacement: u64,
    etype_extent: i64,
    hash: u128,
    representation: &'a [u8],
    layout: LayoutPart<'a>,
}

/// What a rank sends about the layout at first.
#[derive(Clone, Copy)]
enum LayoutPart<'a> {
    /// All of it, in serialised form.
    Short(&'a [u8]),
    /// The rest follows, if it is needed.
    Long(Outline),
}

impl<'a> LayoutPart<'a> {
    const SHORT: u8 = 0;
    const LONG: u8 = 1;

    fn write(message: &mut Vec<u8>, wire: &[u8], outline: &Outline) {
        if wire.len() <= INLINE_BYTES {
            message.push(Self::SHORT);
            message.extend(wire);
        } else {
            message.push(Self::LONG);
            message.extend(outline.to_wire());
        }
    }

    fn read(message: &'a [u8]) -> Option<LayoutPart<'a>> {
        match message.split_first()? {
            (&Self::SHORT, wire) => Some(LayoutPart::Short(wire)),
            (&Self::LONG, outline) => Some(LayoutPart::Long(Outline::from_wire(
                outline.try_into().ok()?,
            ))),
            _ => None,
        }
    }
}

impl<'a> Description<'a> {
    fn moved(flattened: &FlattenedView) -> Vec<u8> {
        let mut message = vec![MOVED];
        message.extend(flattened.displacement().to_le_bytes());
        message
    }

    fn new_view(flattened: &FlattenedView, wire: &[u8], shape: &Shape) -> Vec<u8> {
        let name = flattened.representation().name().as_bytes();
        let mut message = vec![NEW];
        message.extend(flattened.displacement().to_le_bytes());
        message.extend(flattened.etype().extent().to_le_bytes());
        message.extend(shape.hash().to_le_bytes());
        message.extend((name.len() as u16).to_le_bytes());
        message.extend(name);
        LayoutPart::write(&mut message, wire, shape.outline());
        message
    }

    /// Also whether the rank passes hints.
    fn read(message: &'a [u8]) -> Option<(Description<'a>, bool)> {
        let (tag, rest) = message.split_first()?;
        let is_hinting = tag & HINTS != 0;
        let (displacement, rest) = rest.split_first_chunk()?;
        let displacement = u64::from_le_bytes(*displacement);
        if tag & !HINTS == MOVED {
            return Some((Description::Moved { displacement }, is_hinting));
        }
        let (etype_extent, rest) = rest.split_first_chunk()?;
        let (hash, rest) = rest.split_first_chunk()?;
        let (name_len, rest) = rest.split_first_chunk()?;
        let (representation, layout) =
            rest.split_at_checked(usize::from(u16::from_le_bytes(*name_len)))?;
        let new_view = NewView {
            displacement,
            etype_extent: i64::from_le_bytes(*etype_extent),
            hash: u128::from_le_bytes(*hash),
            representation,
            layout: LayoutPart::read(layout)?,
        };
        Some((Description::New(new_view), is_hinting))
    }

    fn displacement(&self) -> u64 {
        match self {
            Description::Moved { displacement } => *displacement,
            Description::New(new_view) => new_view.displacement,
        }
    }
}

/// Sends this rank's view, or its error, to all ranks, and receives theirs. `before` is the
/// view that it replaces. Also returns whether any rank passes hints. *Collective*; long
/// layouts that are new need a second exchange.
pub(super) fn exchange(
    comm: &dyn Transport,
    mine: &Result<FlattenedView>,
    hinting: Hinting,
    before: &FlattenedView,
) -> Result<(RankViews, Hinting)> {
    let mut wire = Vec::new();
    let mut shapes = HashMap::new();
    let mut message = match mine {
        Ok(flattened) if flattened.is_moved_from(before) => Ok(Description::moved(flattened)),
        Ok(flattened) => {
            wire = flattened.layout().to_wire();
            let hash = Layout::hash_of_wire(&wire);
            let shape = Shape::known(flattened.layout(), hash);
            let message = Description::new_view(flattened, &wire, &shape);
            shapes.insert(hash, shape);
            Ok(message)
        }
        Err(error) => Err(error.clone()),
    };
    if let (Hinting::Some, Ok(message)) = (hinting, &mut message) {
        message[0] |= HINTS;
    }
    let mut buffers = GatherBuffers::default();
    buffers.begin(CollectiveCall::SetView);
    let mut hinting = Hinting::None;
    let read = |message| {
        let (description, is_hinting) = Description::read(message)?;
        if is_hinting {
            hinting = Hinting::Some;
        }
        Some(description)
    };
    let all = buffers.gather(comm, message.as_deref())?;
    let descriptions: Option<Vec<Description<'_>>> = all.map(read).collect();
    let descriptions = descriptions.ok_or_else(malformed)?;
    let displacements: Vec<u64> = descriptions.iter().map(Description::displacement).collect();
    let is_moved = |it: &Description<'_>| matches!(it, Description::Moved { .. });
    if descriptions.iter().all(is_moved) {
        return Ok((moved(before.rank_views(), displacements), hinting));
    }
    check_equal(&descriptions, before)?;
    // The layouts of the previous views are known as well.
    let previous = before.rank_views().shapes.iter();
    for shape in previous {
        shapes.entry(shape.hash()).or_insert_with(|| shape.clone());
    }
    for description in &descriptions {
        if let Description::New(new_view) = description
            && let LayoutPart::Short(wire) = new_view.layout
            && let Entry::Vacant(vacant) = shapes.entry(new_view.hash)
        {
            let layout = Layout::from_wire(wire).map_err(|_| malformed())?;
            vacant.insert(Shape::known(&layout, new_view.hash));
        }
    }
    exchange_long(comm, &descriptions, before.rank_views(), &wire, &mut shapes)?;
    let by_rank = hashes(&descriptions, before.rank_views()).map(|hash| shapes.get(&hash).cloned());
    let shapes: Arc<[Shape]> = by_rank.collect::<Option<_>>().ok_or_else(malformed)?;
    let rank_views = RankViews {
        dense: shapes.iter().all(|shape| shape.outline().is_dense),
        covers_most: covers_most(&shapes, &displacements),
        shapes,
        displacements,
        family: before.rank_views().family + 1,
    };
    Ok((rank_views, hinting))
}

/// The same views with other displacements.
fn moved(before: &RankViews, displacements: Vec<u64>) -> RankViews {
    let distance = |(new, old): (&u64, &u64)| new.wrapping_sub(*old);
    let mut distances = displacements
        .iter()
        .zip(&before.displacements)
        .map(distance);
    let first = distances.next();
    let together = distances.all(|other| Some(other) == first);
    RankViews {
        shapes: Arc::clone(&before.shapes),
        covers_most: match together {
            true => before.covers_most,
            false => covers_most(&before.shapes, &displacements),
        },
        displacements,
        family: before.family + u64::from(!together),
        dense: before.dense,
    }
}

/// The hash of each rank's layout.
fn hashes<'a>(
    descriptions: &'a [Description<'_>],
    before: &'a RankViews,
) -> impl Iterator<Item = u128> + 'a {
    let hash = |(description, shape): (&Description<'_>, &Shape)| match description {
        Description::Moved { .. } => shape.hash(),
        Description::New(new_view) => new_view.hash,
    };
    descriptions.iter().zip(before.shapes.iter()).map(hash)
}

/// The lowest rank that has a long layout sends it, unless all ranks have the same one.
fn exchange_long(
    comm: &dyn Transport,
    descriptions: &[Description<'_>],
    before: &RankViews,
    wire: &[u8],
    shapes: &mut HashMap<u128, Shape>,
) -> Result<()> {
    let hashes: Vec<u128> = hashes(descriptions, before).collect();
    let outline_of = |it: &Description<'_>| match it {
        Description::New(NewView {
            layout: LayoutPart::Long(outline),
            ..
        }) => Some(*outline),
        _ => None,
    };
    let is_long = |it: &Description<'_>| outline_of(it).is_some();
    if hashes.iter().all(|hash| *hash == hashes[0]) || !descriptions.iter().any(is_long) {
        return Ok(());
    }
    let rank = comm.rank().index();
    let sender = hashes.iter().position(|hash| *hash == hashes[rank]);
    let sends = is_long(&descriptions[rank]) && sender == Some(rank);
    let all = comm.all_gather(if sends { wire } else { &[] })?;
    let outlines = descriptions.iter().map(outline_of);
    for ((message, hash), outline) in all.iter().zip(hashes).zip(outlines) {
        if let Some(outline) = outline
            && !message.is_empty()
            && let Entry::Vacant(vacant) = shapes.entry(hash)
        {
            let shape = Shape::received(hash, outline, message);
            vacant.insert(shape.ok_or_else(malformed)?);
        }
    }
    Ok(())
}

/// Checks what the standard requires to be the same on all ranks. The views `before` passed
/// this check.
fn check_equal(descriptions: &[Description<'_>], before: &FlattenedView) -> Result<()> {
    let properties = |description: &Description<'_>| match description {
        Description::Moved { .. } => (
            before.etype().extent(),
            before.representation().name().as_bytes().to_vec(),
        ),
        Description::New(new_view) => (new_view.etype_extent, new_view.representation.to_vec()),
    };
    let first = properties(&descriptions[0]);
    for (rank, description) in descriptions.iter().enumerate() {
        let (extent, representation) = properties(description);
        if extent != first.0 {
            return Err(agree::differs("the extent of the etype", rank));
        }
        if representation != first.1 {
            return Err(agree::differs("the data representation", rank));
        }
    }
    Ok(())
}
