//! Which rings have something for a rank: one bit a sender, so that a rank that
//! waits need not look into the ring of every other.

use std::iter;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Rank, Segment};

const BITS: u32 = u64::BITS;

/// The flags of the rings that lead to one rank.
#[derive(Debug)]
pub(super) struct Flags {
    memory: Segment,
    base: usize,
    words: usize,
}

impl Flags {
    pub(super) fn new(memory: Segment, base: usize, ranks: u32) -> Self {
        Flags {
            memory,
            base,
            words: ranks.div_ceil(BITS) as usize,
        }
    }

    /// Raises the flag of a sender, after it has published something.
    pub(super) fn raise(&self, sender: Rank) {
        let bit = 1 << (sender.0 % BITS);
        let word = self.word((sender.0 / BITS) as usize);
        // A flag that is up and is being taken down now is not enough: the
        // receiver may have looked into the ring already. So this is always a
        // read-modify-write, which comes either before or after that.
        word.fetch_or(bit, Ordering::Release);
    }

    /// How many groups of flags there are.
    pub(super) fn groups(&self) -> usize {
        self.words
    }

    /// Takes the flags of a group down and returns whose they were. What these
    /// senders published before is visible to the caller.
    pub(super) fn take(&self, group: usize) -> impl Iterator<Item = Rank> + use<> {
        let word = self.word(group);
        let mut raised = match word.load(Ordering::Relaxed) {
            0 => 0,
            _ => word.swap(0, Ordering::Acquire),
        };
        iter::from_fn(move || {
            let bit = raised.checked_ilog2()?;
            raised &= !(1 << bit);
            Some(Rank(group as u32 * BITS + bit))
        })
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        self.memory.atomic_u64(self.base + index * size_of::<u64>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_go_up_and_down() {
        let memory = Segment::anonymous(4096).expect("a page of memory");
        let flags = Flags::new(memory, 128, 200);
        let take_all = || {
            let groups = 0..flags.groups();
            groups
                .flat_map(|group| flags.take(group))
                .collect::<Vec<_>>()
        };
        assert_eq!(take_all(), []);
        for rank in [199, 0, 64, 63, 0] {
            flags.raise(Rank(rank));
        }
        assert_eq!(take_all(), [63, 0, 64, 199].map(Rank));
        assert_eq!(take_all(), []);
    }
}
