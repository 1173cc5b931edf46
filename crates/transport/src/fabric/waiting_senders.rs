//! Which ranks wait for space in the queue that leads to a rank: one bit per
//! sender.

use std::iter;
use std::sync::atomic::{AtomicU64, Ordering, fence};

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
        let bit = 1 << (sender.0 % BITS);
        let word = self.word((sender.0 / BITS) as usize);
        word.fetch_or(bit, Ordering::Relaxed);
        // Pairs with `take`: either the space is seen by the sender, or the
        // sender by whoever made the space.
        fence(Ordering::SeqCst);
    }

    /// The senders that wait, who are forgotten. Called after space was made.
    pub(super) fn take(&self) -> impl Iterator<Item = Rank> {
        fence(Ordering::SeqCst);
        (0..self.words).flat_map(|index| {
            let word = self.word(index);
            let mut waiting = match word.load(Ordering::Relaxed) {
                0 => 0,
                _ => word.swap(0, Ordering::Relaxed),
            };
            iter::from_fn(move || {
                let bit = waiting.checked_ilog2()?;
                waiting &= !(1 << bit);
                Some(Rank(index as u32 * BITS + bit))
            })
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
