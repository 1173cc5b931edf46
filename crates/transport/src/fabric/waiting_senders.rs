//! Which ranks wait for space in the queue that leads to a rank: one bit per
//! sender.

use std::iter;
use std::sync::atomic::{AtomicU64, Ordering};

use super::cells::Word;
use crate::{Rank, Segment};

const BITS: u32 = u64::BITS;

/// The ranks that wait for space in one queue.
#[derive(Debug)]
pub(super) struct WaitingSenders {
    memory: Segment,
    base: usize,
    words: usize,
}

impl WaitingSenders {
    pub(super) fn new(memory: Segment, base: usize, ranks: u32) -> Self {
        WaitingSenders {
            memory,
            base,
            words: ranks.div_ceil(BITS) as usize,
        }
    }

    /// Notes that a sender waits. It is woken if space is made after this call,
    /// so it has to look for space once more.
    pub(super) fn add(&self, sender: Rank) {
        let word = self.word((sender.0 / BITS) as usize);
        add_to(word, 1 << (sender.0 % BITS));
    }

    /// The senders that wait, who are forgotten. Called after space was made.
    pub(super) fn take(&self) -> impl Iterator<Item = Rank> {
        take_from((0..self.words).map(|index| self.word(index)))
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        self.memory.atomic_u64(self.base + index * size_of::<u64>())
    }
}

/// Adds the sender that a bit stands for.
pub(super) fn add_to<W: Word>(word: &W, bit: u64) {
    word.set_bits(bit);
    // Pairs with `take_from`: either the space is seen by the sender, or the
    // sender by whoever made the space.
    W::fence();
}

/// The senders that these words stand for, which become zero.
pub(super) fn take_from<'a, W: Word + 'a>(
    words: impl Iterator<Item = &'a W>,
) -> impl Iterator<Item = Rank> {
    W::fence();
    words.enumerate().flat_map(|(index, word)| {
        let mut waiting = match word.load(Ordering::Relaxed) {
            0 => 0,
            _ => word.take_bits(),
        };
        iter::from_fn(move || {
            let bit = waiting.checked_ilog2()?;
            waiting &= !(1 << bit);
            Some(Rank(index as u32 * BITS + bit))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_are_noted_until_they_are_taken() {
        let memory = Segment::anonymous(4096).expect("a page of memory");
        let waiting = WaitingSenders::new(memory, 128, 200);
        let take = || waiting.take().collect::<Vec<_>>();
        assert_eq!(take(), []);
        for rank in [199, 0, 64, 63, 0] {
            waiting.add(Rank(rank));
        }
        assert_eq!(take(), [63, 0, 64, 199].map(Rank));
        assert_eq!(take(), []);
    }
}
