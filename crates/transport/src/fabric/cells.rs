//! The protocol of a bounded queue with many producers and one consumer, in
//! which a producer may be killed between any two instructions.
//!
//! The queue is a ring of cells. Positions count all cells ever used; position
//! `p` is in cell `p % cells`, on lap `p / cells`. Each cell has a word that says
//! on which lap it is free, claimed by which rank, or full; the shared `tail` is
//! a hint for where the next free cell is. All of these start as zeros.
//!
//! A producer claims the cell at the tail by changing its word from free to
//! claimed, moves the tail on, writes the cell, and makes the word full. The
//! claim is one compare-and-exchange of the cell's own word, so every claimed
//! cell names its producer. If the producer is killed before it has moved the
//! tail, the next one does it. If it is killed before the cell is full, the
//! consumer waits at that cell until it learns of the loss, and then passes over
//! it. Cells that others have filled after it are not lost.
//!
//! The consumer makes a cell free for the next lap.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// An atomic word, as far as the protocol needs it: of the standard library, or
/// of a model checker.
pub(super) trait Word {
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, value: u64, order: Ordering);
    /// Whether the word was `current` and now is `new`; acquires and releases.
    fn replace(&self, current: u64, new: u64) -> bool;
    /// Adds to the word; returns what it was. Acquires and releases.
    fn add(&self, value: u64) -> u64;
    /// Sets bits, in no order with other words.
    fn set_bits(&self, bits: u64);
    /// Makes the word zero, in no order with other words; returns what it was.
    fn take_bits(&self) -> u64;
    /// A sequentially consistent fence.
    fn fence();
}

/// Words of the standard library and of loom, which models the protocols: both
/// have the same orderings.
macro_rules! impl_word {
    ($atomic:ty, $fence:path) => {
        impl $crate::fabric::cells::Word for $atomic {
            fn load(&self, order: Ordering) -> u64 {
                self.load(order)
            }

            fn store(&self, value: u64, order: Ordering) {
                self.store(value, order);
            }

            fn replace(&self, current: u64, new: u64) -> bool {
                let replaced =
                    self.compare_exchange(current, new, Ordering::AcqRel, Ordering::Relaxed);
                replaced.is_ok()
            }

            fn add(&self, value: u64) -> u64 {
                self.fetch_add(value, Ordering::AcqRel)
            }

            fn set_bits(&self, bits: u64) {
                self.fetch_or(bits, Ordering::Relaxed);
            }

            fn take_bits(&self) -> u64 {
                self.swap(0, Ordering::Relaxed)
            }

            fn fence() {
                $fence(Ordering::SeqCst);
            }
        }
    };
}
impl_word!(AtomicU64, fence);
#[cfg(all(test, loom))]
pub(super) use impl_word;

const STATE_BITS: u32 = 2;
const RANK_BITS: u32 = 14;
const FREE: u64 = 0;
const CLAIMED: u64 = 1;
const FULL: u64 = 2;

/// The word of a cell. Words of later laps are greater.
fn word(lap: u64, rank: u32, state: u64) -> u64 {
    (lap << (RANK_BITS + STATE_BITS)) | (u64::from(rank) << STATE_BITS) | state
}

fn lap_of(word: u64) -> u64 {
    word >> (RANK_BITS + STATE_BITS)
}

fn rank_of(word: u64) -> u32 {
    (word >> STATE_BITS) as u32 & ((1 << RANK_BITS) - 1)
}

fn state_of(word: u64) -> u64 {
    word & ((1 << STATE_BITS) - 1)
}

/// What the consumer finds at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The cell has not been claimed.
    Nothing,
    /// This rank is about to fill it.
    Claimed(u32),
    /// This rank has filled it.
    Full(u32),
}

/// The words of a queue.
pub(super) trait Words {
    type Word: Word;

    /// The number of cells, a power of two.
    fn cells(&self) -> u64;
    fn tail(&self) -> &Self::Word;
    fn of_cell(&self, cell: u64) -> &Self::Word;

    /// The word of the cell that a position is in.
    fn at(&self, position: u64) -> &Self::Word {
        self.of_cell(position & (self.cells() - 1))
    }

    fn lap(&self, position: u64) -> u64 {
        position >> self.cells().trailing_zeros()
    }
}

/// Claims a cell for a rank; its position, or `None` if the queue is full.
pub(super) fn claim(words: &impl Words, rank: u32) -> Option<u64> {
    loop {
        let position = words.tail().load(Ordering::Acquire);
        let cell = words.at(position);
        let lap = words.lap(position);
        let seen = cell.load(Ordering::Acquire);
        if seen == word(lap, 0, FREE) {
            let is_claimed = cell.replace(seen, word(lap, rank, CLAIMED));
            words.tail().replace(position, position + 1);
            if is_claimed {
                return Some(position);
            }
        } else if lap_of(seen) < lap {
            // Still in use from the lap before, unless the tail is old.
            if words.tail().load(Ordering::Acquire) == position {
                return None;
            }
        } else {
            // Claimed by a rank that has not moved the tail yet, or the tail is
            // old.
            words.tail().replace(position, position + 1);
        }
    }
}

/// Hands a claimed cell over to the consumer.
pub(super) fn fill(words: &impl Words, position: u64, rank: u32) {
    let full = word(words.lap(position), rank, FULL);
    words.at(position).store(full, Ordering::Release);
}

/// Looks at a position. What was written to a full cell is visible.
pub(super) fn look(words: &impl Words, position: u64) -> Found {
    let seen = words.at(position).load(Ordering::Acquire);
    match state_of(seen) {
        _ if lap_of(seen) != words.lap(position) => Found::Nothing,
        CLAIMED => Found::Claimed(rank_of(seen)),
        FULL => Found::Full(rank_of(seen)),
        _ => Found::Nothing,
    }
}

/// Makes a cell free again that was full and has been read.
pub(super) fn release(words: &impl Words, position: u64) {
    words
        .at(position)
        .store(free_again(words, position), Ordering::Release);
}

/// Makes a cell free again that was claimed by a rank that is known to have
/// ended; false if that rank had filled it, after it was looked at and before it
/// ended.
pub(super) fn pass_over(words: &impl Words, position: u64, rank: u32) -> bool {
    let claimed = word(words.lap(position), rank, CLAIMED);
    words
        .at(position)
        .replace(claimed, free_again(words, position))
}

/// The word of the cell once its position has been used.
fn free_again(words: &impl Words, position: u64) -> u64 {
    word(words.lap(position) + 1, 0, FREE)
}
