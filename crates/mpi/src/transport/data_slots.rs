//! How the data of several contexts shares the tags of one communicator.
//!
//! An MPI has 32,768 tags at least. They are divided into 64 slots of 512 tags.
//! Each context of a group gets a slot of its own when it is made: rank 0, which
//! numbers the contexts, hands slots out and takes them back when it drops its
//! transport. So two contexts never use the same tag at the same time.
//!
//! If all slots are taken, and for [data tags](DataTag) from 512 on, transfers go
//! as control messages instead: correct, with one more copy on each side, and
//! without the MPI's rendezvous. All ranks know which, since the slot is part of
//! what they agree on.

use std::ffi::c_int;
use std::sync::Mutex;

use pario_transport::DataTag;

use super::lock;

const SLOTS: u32 = u64::BITS;
const TAGS_PER_SLOT: u16 = DataTag::BOUND / SLOTS as u16;

/// A share of the tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DataSlot(u8);

impl DataSlot {
    /// The MPI's tag for a data tag, if the slot has it.
    pub(super) fn mpi_tag(self, tag: DataTag) -> Option<c_int> {
        let first = c_int::from(self.0) * c_int::from(TAGS_PER_SLOT);
        (tag.0 < TAGS_PER_SLOT).then(|| first + c_int::from(tag.0))
    }
}

/// The slots of a group.
#[derive(Debug, Default)]
pub(super) struct DataSlots(Mutex<Slots>);

#[derive(Debug, Default)]
struct Slots {
    /// One bit per slot.
    taken: u64,
    /// Where to look first: a slot rests as long as possible before it is used
    /// again.
    next: u32,
}

impl DataSlots {
    pub(super) fn take(&self) -> Option<DataSlot> {
        let mut slots = lock(&self.0);
        let free = (!slots.taken).rotate_right(slots.next).trailing_zeros();
        if free == SLOTS {
            return None;
        }
        let slot = (slots.next + free) % SLOTS;
        slots.taken |= 1 << slot;
        slots.next = (slot + 1) % SLOTS;
        Some(DataSlot(slot as u8))
    }

    pub(super) fn give_back(&self, slot: DataSlot) {
        lock(&self.0).taken &= !(1 << slot.0);
    }
}

/// What the ranks agree on for a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Context {
    pub(super) number: u64,
    pub(super) slot: Option<DataSlot>,
}

impl Context {
    const NUMBER_BITS: u32 = 48;

    /// The context as a number that can be sent.
    pub(super) fn to_word(self) -> u64 {
        let slot = self.slot.map_or(0, |slot| u64::from(slot.0) + 1);
        self.number | slot << Self::NUMBER_BITS
    }

    pub(super) fn from_word(word: u64) -> Context {
        let slot = (word >> Self::NUMBER_BITS).checked_sub(1);
        Context {
            number: word & ((1 << Self::NUMBER_BITS) - 1),
            slot: slot.map(|slot| DataSlot(slot as u8)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_share_the_tags_and_none_is_given_twice() {
        let slots = DataSlots::default();
        let taken: Vec<_> = std::iter::from_fn(|| slots.take()).collect();
        assert_eq!(taken.len(), SLOTS as usize);
        let mut tags: Vec<c_int> = Vec::new();
        for slot in &taken {
            tags.extend((0..DataTag::BOUND).filter_map(|tag| slot.mpi_tag(DataTag(tag))));
        }
        tags.sort_unstable();
        assert!(tags.into_iter().eq(0..c_int::from(i16::MAX) + 1));
        slots.give_back(taken[5]);
        slots.give_back(taken[3]);
        assert_eq!(slots.take(), Some(taken[3]));
        assert_eq!(slots.take(), Some(taken[5]));
        assert_eq!(slots.take(), None);
    }

    #[test]
    fn contexts_travel_as_words() {
        let slots = DataSlots::default();
        for slot in [None, slots.take(), slots.take()] {
            let context = Context { number: 77, slot };
            assert_eq!(Context::from_word(context.to_word()), context);
        }
    }
}
