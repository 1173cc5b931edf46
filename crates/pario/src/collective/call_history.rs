//! The collective calls that each rank of a node has begun on a file.
//!
//! Blocking calls have one context and calls in the background another, so a rank that makes a
//! blocking call and one that makes a nonblocking or split call instead would wait for each other
//! without end. Each rank publishes its calls in shared memory, numbered from 1. All ranks make
//! the collective calls of a file in the same order, so calls with the same number belong
//! together. A rank that waits for a call in the background looks for ranks that made a blocking
//! call in its place; the others need not look, which would slow down blocking calls.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use pario_transport::{Rank, Segment};

use crate::collective_call::CollectiveCall;

/// The shared memory of one rank, after the words of `deferred.rs`: the number of calls, codes of
/// the last ones, and the number of calls in the background.
const CALLS_AT: usize = 16;
const CODES_AT: usize = 24;
const IN_BACKGROUND_AT: usize = 56;
/// How many codes are kept.
const CODES: u64 = 32;
const CODES_PER_WORD: u64 = 8;

/// A collective call of this rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    /// Of all calls.
    number: u64,
    /// The calls in the background up to and including this one.
    in_background: u64,
}

impl Begun {
    fn blocking(&self) -> u64 {
        self.number.wrapping_sub(self.in_background)
    }
}

#[derive(Debug)]
pub(super) struct CallHistory {
    words: Segment,
    /// Where the words of rank 0 begin, and how far apart the ranks' words are.
    start: usize,
    rank_bytes: usize,
    me: Rank,
    ranks: u32,
}

impl CallHistory {
    /// A history in memory that starts as zeros.
    pub(super) fn new(words: Segment, rank_bytes: usize, me: Rank, ranks: u32) -> CallHistory {
        CallHistory {
            words,
            start: rank_bytes,
            rank_bytes,
            me,
            ranks,
        }
    }

    fn word(&self, rank: Rank, at: usize) -> &AtomicU64 {
        let start = self.start + rank.index() * self.rank_bytes;
        self.words.atomic_u64(start + at)
    }

    fn code_word(&self, rank: Rank, number: u64) -> (&AtomicU64, u64) {
        let place = number % CODES;
        let at = CODES_AT + (place / CODES_PER_WORD) as usize * size_of::<u64>();
        (self.word(rank, at), place % CODES_PER_WORD * 8)
    }

    /// Publishes that this rank begins a call.
    pub(super) fn begin(&self, call: CollectiveCall) -> Begun {
        let mut begun = self.now();
        begun.number += 1;
        let (codes, shift) = self.code_word(self.me, begun.number);
        let others = codes.load(Ordering::Relaxed) & !(0xff << shift);
        codes.store(others | u64::from(call.code()) << shift, Ordering::Relaxed);
        if call.is_in_background() {
            begun.in_background += 1;
            self.word(self.me, IN_BACKGROUND_AT)
                .store(begun.in_background, Ordering::Release);
        }
        self.word(self.me, CALLS_AT)
            .store(begun.number, Ordering::Release);
        begun
    }

    /// Publishes that this rank takes part in a call in the background that the others made.
    pub(super) fn join_background(&self) {
        self.word(self.me, IN_BACKGROUND_AT)
            .fetch_add(1, Ordering::Release);
    }

    /// The last call of this rank.
    fn now(&self) -> Begun {
        Begun {
            number: self.word(self.me, CALLS_AT).load(Ordering::Relaxed),
            in_background: self.word(self.me, IN_BACKGROUND_AT).load(Ordering::Relaxed),
        }
    }

    fn others(&self) -> impl Iterator<Item = Rank> {
        (0..self.ranks).map(Rank).filter(|rank| *rank != self.me)
    }

    /// A rank's call of a number, if it has been begun and not too many have since.
    fn call_of(&self, rank: Rank, number: u64) -> Option<CollectiveCall> {
        let calls = self.word(rank, CALLS_AT);
        let is_kept = |calls: u64| (number..number + CODES - 1).contains(&calls);
        if !is_kept(calls.load(Ordering::Acquire)) {
            return None;
        }
        let (codes, shift) = self.code_word(rank, number);
        let code = (codes.load(Ordering::Relaxed) >> shift) as u8;
        // The code counts only if it has not been overwritten in between.
        fence(Ordering::Acquire);
        let call = CollectiveCall::from_code(code);
        call.filter(|_| is_kept(calls.load(Ordering::Relaxed)))
    }

    /// A rank that has not begun as many calls in the background as this call counts.
    pub(super) fn missing(&self, begun: Begun) -> Option<Rank> {
        self.others().find(|rank| {
            let word = self.word(*rank, IN_BACKGROUND_AT);
            word.load(Ordering::Acquire) < begun.in_background
        })
    }

    /// Whether some rank waits in a blocking call in place of this call in the background, and
    /// this rank has not made a later blocking call, which would let that one continue.
    pub(super) fn is_blocked(&self, begun: Begun) -> bool {
        let waits = |rank: Rank| {
            let word = self.word(rank, IN_BACKGROUND_AT);
            word.load(Ordering::Acquire) < begun.in_background
                && self
                    .call_of(rank, begun.number)
                    .is_some_and(|call| !call.is_in_background())
        };
        self.now().blocking() == begun.blocking() && self.others().any(waits)
    }

    /// The call in the background that some rank made in place of this blocking one.
    pub(super) fn made_in_background(&self, begun: Begun) -> Option<CollectiveCall> {
        self.others()
            .filter_map(|rank| self.call_of(rank, begun.number))
            .find(|call| call.is_in_background())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANK_BYTES: usize = 64;

    /// Two ranks with a history in common.
    fn pair() -> [CallHistory; 2] {
        let memory = Segment::anonymous(4096).expect("a page of memory");
        [0, 1].map(|rank| CallHistory::new(memory.clone(), RANK_BYTES, Rank(rank), 2))
    }

    #[test]
    fn a_blocking_call_in_place_of_one_in_the_background_is_found() {
        let [here, there] = pair();
        here.begin(CollectiveCall::SetView);
        there.begin(CollectiveCall::SetView);
        let mine = here.begin(CollectiveCall::IwriteAll);
        assert!(!here.is_blocked(mine), "the other rank may still come");
        assert_eq!(here.missing(mine), Some(Rank(1)));
        let theirs = there.begin(CollectiveCall::WriteAll);
        assert!(here.is_blocked(mine));
        let found = there.made_in_background(theirs);
        assert_eq!(found, Some(CollectiveCall::IwriteAll));
        there.join_background();
        assert!(!here.is_blocked(mine), "it has joined");
        assert_eq!(here.missing(mine), None);
    }

    #[test]
    fn calls_of_one_kind_are_not_blocked() {
        let [here, there] = pair();
        for _ in 0..2 * CODES {
            let mine = here.begin(CollectiveCall::IwriteAll);
            there.begin(CollectiveCall::IreadAll);
            assert!(!here.is_blocked(mine));
            let mine = here.begin(CollectiveCall::Sync);
            there.begin(CollectiveCall::Close);
            assert_eq!(here.made_in_background(mine), None);
        }
    }

    #[test]
    fn a_later_blocking_call_lets_the_other_continue() {
        let [here, there] = pair();
        let mine = here.begin(CollectiveCall::IwriteAll);
        there.begin(CollectiveCall::WriteAll);
        here.begin(CollectiveCall::WriteAll);
        assert!(!here.is_blocked(mine));
    }

    #[test]
    fn calls_that_are_no_longer_kept_are_unknown() {
        let [here, there] = pair();
        there.begin(CollectiveCall::WriteAll);
        for _ in 0..2 * CODES {
            there.begin(CollectiveCall::IwriteAll);
        }
        assert_eq!(here.call_of(Rank(1), 1), None);
        assert_eq!(here.call_of(Rank(1), 1000), None);
        let last = here.call_of(Rank(1), 1 + 2 * CODES);
        assert_eq!(last, Some(CollectiveCall::IwriteAll));
    }
}
