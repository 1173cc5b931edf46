//! How the ranks of a node come to share a segment.
//!
//! A common node does not prove common memory: containers hide each other's
//! names, and limits are small. So the first rank of the node creates the
//! memory and offers it, each other rank maps it and looks for a secret number
//! in it, and only if all have found it is it used. Whatever name the memory
//! had is gone by then. If a rank fails, the next kind of memory is tried; when
//! there is none left, all ranks of the node agree to do without.

mod available;
mod backing;
mod memfd;
mod named;
mod offered;
mod registry;

use std::path::Path;

use crate::{Loss, Rank, Result, Segment, Tag, Transport, TransportError};

pub use available::available_memory;
pub(crate) use backing::Backing;
pub(crate) use named::NamedDirectory;
pub use offered::{OFFER_BYTES, OfferedSegment, attach_offered};
pub(crate) use registry::Registry;

use backing::Secret;

/// What the first rank of a node says to the others, one word each before the
/// details.
mod word {
    /// Memory to try: kind, secret, locator.
    pub(super) const OFFER: u8 = 1;
    /// All have found the memory.
    pub(super) const AGREED: u8 = 2;
    /// Someone has not: another offer may follow.
    pub(super) const WITHDRAWN: u8 = 3;
    /// No kind of memory is left.
    pub(super) const NONE: u8 = 4;
    /// The lengths differ: the first rank's and another.
    pub(super) const MISMATCH: u8 = 5;
    /// A rank is lost: rank and loss.
    pub(super) const LOST: u8 = 6;
}

/// Where names of shared memory live on Linux.
pub(crate) const SHARED_MEMORY_DIRECTORY: &str = "/dev/shm";

/// Shares a segment among the ranks of the caller's node, which may be any
/// processes of a machine: in a nameless file, or else in a file that has a
/// name in /dev/shm for a moment. `None` on all of them if that is impossible
/// for one. Collective over the ranks of the node.
pub fn segment<T: Transport + ?Sized>(transport: &T, bytes: usize) -> Result<Option<Segment>> {
    let directory = NamedDirectory::new(Path::new(SHARED_MEMORY_DIRECTORY));
    share(
        transport,
        &[Backing::Memfd, Backing::Named(directory)],
        bytes,
    )
}

/// Shares a segment among the ranks of the caller's node, trying `backings` in
/// order; `None` on all of them if none works. All ranks give the same
/// backings.
pub(crate) fn share<T: Transport + ?Sized>(
    transport: &T,
    backings: &[Backing],
    bytes: usize,
) -> Result<Option<Segment>> {
    let me = transport.rank();
    let node = transport.node_of(me);
    let members = (0..transport.size())
        .map(Rank)
        .filter(|rank| transport.node_of(*rank) == node)
        .collect::<Vec<_>>();
    let member = Member { transport, bytes };
    match members.split_first() {
        Some((leader, others)) if *leader == me => member.lead(others, backings),
        Some((leader, _)) => member.follow(*leader, backings),
        None => unreachable!("a rank is on its own node"),
    }
}

/// A rank of the node while a segment is made.
struct Member<'a, T: ?Sized> {
    transport: &'a T,
    bytes: usize,
}

impl<T: Transport + ?Sized> Member<'_, T> {
    fn lead(&self, others: &[Rank], backings: &[Backing]) -> Result<Option<Segment>> {
        let outcome = self.offer_each(others, backings);
        if let Err(error) = &outcome {
            // The others wait for this rank, not for the lost one.
            let message = encode_error(self.transport.rank(), error);
            for rank in others {
                let _ = self.say(*rank, &message);
            }
        }
        outcome
    }

    fn offer_each(&self, others: &[Rank], backings: &[Backing]) -> Result<Option<Segment>> {
        for rank in others {
            let theirs = decode_u64(&self.hear(*rank)?).ok_or_else(|| malformed(*rank))?;
            if theirs != self.bytes as u64 {
                return Err(mismatch(self.bytes as u64, theirs));
            }
        }
        for (index, backing) in backings.iter().enumerate() {
            let Ok((segment, offer)) = backing.create(self.bytes) else {
                continue;
            };
            let mut message = vec![word::OFFER, index as u8];
            message.extend(offer.secret);
            message.extend(&offer.locator);
            self.say_all(others, &message)?;
            let mut agreed = true;
            for rank in others {
                agreed &= self.hear(*rank)? == [word::AGREED];
            }
            // The name goes before anyone uses the memory.
            drop(offer);
            if agreed {
                self.say_all(others, &[word::AGREED])?;
                return Ok(Some(segment));
            }
            self.say_all(others, &[word::WITHDRAWN])?;
        }
        self.say_all(others, &[word::NONE])?;
        Ok(None)
    }

    fn follow(&self, leader: Rank, backings: &[Backing]) -> Result<Option<Segment>> {
        self.say(leader, &(self.bytes as u64).to_le_bytes())?;
        loop {
            let message = self.hear(leader)?;
            let segment = match message.split_first() {
                Some((&word::OFFER, offer)) => self.examine(offer, backings),
                Some((&word::NONE, [])) => return Ok(None),
                Some((what, details)) => return Err(decode_error(leader, *what, details)),
                None => return Err(malformed(leader)),
            };
            let answer = match segment {
                Some(_) => word::AGREED,
                None => word::WITHDRAWN,
            };
            self.say(leader, &[answer])?;
            let decision = self.hear(leader)?;
            match decision.split_first() {
                Some((&word::AGREED, [])) => return segment.map(Some).ok_or(malformed(leader)),
                Some((&word::WITHDRAWN, [])) => {}
                Some((what, details)) => return Err(decode_error(leader, *what, details)),
                None => return Err(malformed(leader)),
            }
        }
    }

    /// The offered memory, if this rank can have it.
    fn examine(&self, offer: &[u8], backings: &[Backing]) -> Option<Segment> {
        let (index, offer) = offer.split_first()?;
        let (secret, locator) = offer.split_first_chunk::<{ size_of::<Secret>() }>()?;
        let backing = backings.get(usize::from(*index))?;
        backing.attach(self.bytes, secret, locator).ok()
    }

    fn say(&self, to: Rank, message: &[u8]) -> Result<()> {
        self.transport.send(to, Tag::SEGMENT, message)
    }

    fn say_all(&self, to: &[Rank], message: &[u8]) -> Result<()> {
        to.iter().try_for_each(|rank| self.say(*rank, message))
    }

    fn hear(&self, from: Rank) -> Result<Vec<u8>> {
        self.transport.receive(from, Tag::SEGMENT)
    }
}

fn malformed(rank: Rank) -> TransportError {
    TransportError::Malformed {
        rank,
        operation: "the sharing of a segment",
    }
}

fn mismatch(mine: u64, other: u64) -> TransportError {
    TransportError::Mismatch {
        what: "the length of a segment",
        mine,
        other,
    }
}

fn decode_u64(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().map(u64::from_le_bytes).ok()
}

fn encode_error(me: Rank, error: &TransportError) -> Vec<u8> {
    let (rank, reason) = match error {
        TransportError::Mismatch { mine, other, .. } => {
            let mut message = vec![word::MISMATCH];
            message.extend(mine.to_le_bytes());
            message.extend(other.to_le_bytes());
            return message;
        }
        TransportError::PeerLost { rank, reason } => (*rank, *reason),
        // To the others, a leader that fails has left.
        _ => (me, Loss::Returned),
    };
    let mut message = vec![word::LOST];
    message.extend(rank.0.to_le_bytes());
    message.extend(reason.code().to_le_bytes());
    message
}

fn decode_error(leader: Rank, what: u8, details: &[u8]) -> TransportError {
    let Some((first, second)) = details.split_at_checked(details.len() / 2) else {
        return malformed(leader);
    };
    let word = |bytes: &[u8]| bytes.try_into().map(u32::from_le_bytes).ok();
    let error = match what {
        word::MISMATCH => decode_u64(first)
            .zip(decode_u64(second))
            .map(|(first, second)| mismatch(first, second)),
        word::LOST => {
            word(first)
                .zip(word(second).and_then(Loss::from_code))
                .map(|(rank, reason)| TransportError::PeerLost {
                    rank: Rank(rank),
                    reason,
                })
        }
        _ => None,
    };
    error.unwrap_or_else(|| malformed(leader))
}
