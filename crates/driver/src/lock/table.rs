//! The ranges that threads of this process hold.

use std::{
    ops::Range,
    sync::{Condvar, Mutex, PoisonError},
};

use super::LockMode;
use crate::closing::lock;

/// The locks of threads among themselves. Open-file-description locks belong
/// to the description, so the kernel does not exclude its threads from each
/// other; this table does.
#[derive(Debug, Default)]
pub(crate) struct RangeTable {
    held: Mutex<Held>,
    released: Condvar,
}

#[derive(Debug, Default)]
struct Held {
    entries: Vec<Entry>,
    next: u64,
}

#[derive(Debug)]
struct Entry {
    ticket: Ticket,
    range: Range<u64>,
    mode: LockMode,
}

/// Names one entry of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

impl RangeTable {
    /// Waits until no conflicting range is held, then holds this one.
    pub(crate) fn acquire(&self, range: Range<u64>, mode: LockMode) -> Ticket {
        let mut held = lock(&self.held);
        while held.conflict(&range, mode) {
            held = self
                .released
                .wait(held)
                .unwrap_or_else(PoisonError::into_inner);
        }
        held.insert(range, mode)
    }

    /// As [`RangeTable::acquire`], but `None` where it would wait.
    pub(crate) fn try_acquire(&self, range: Range<u64>, mode: LockMode) -> Option<Ticket> {
        let mut held = lock(&self.held);
        (!held.conflict(&range, mode)).then(|| held.insert(range, mode))
    }

    /// Lets a range go. `unlock` gets the parts of it that no other entry
    /// covers, in ascending order, before anyone else can take them: the
    /// kernel keeps one lock a byte and description, which overlapping shared
    /// entries have in common.
    pub(crate) fn release(&self, ticket: Ticket, unlock: impl FnMut(Range<u64>)) {
        let mut held = lock(&self.held);
        let at = held.entries.iter().position(|entry| entry.ticket == ticket);
        let entry = held
            .entries
            .swap_remove(at.expect("a ticket is released once"));
        held.uncovered(entry.range).into_iter().for_each(unlock);
        drop(held);
        self.released.notify_all();
    }
}

impl Held {
    fn conflict(&self, range: &Range<u64>, mode: LockMode) -> bool {
        self.entries
            .iter()
            .any(|held| overlap(&held.range, range) && held.mode.conflicts(mode))
    }

    fn insert(&mut self, range: Range<u64>, mode: LockMode) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        self.entries.push(Entry {
            ticket,
            range,
            mode,
        });
        ticket
    }

    /// What is left of `range` without the ranges of the entries.
    fn uncovered(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut cover: Vec<_> = self
            .entries
            .iter()
            .filter(|entry| overlap(&entry.range, &range))
            .map(|entry| entry.range.clone())
            .collect();
        cover.sort_by_key(|cover| cover.start);
        let mut gaps = Vec::with_capacity(cover.len() + 1);
        let mut at = range.start;
        for cover in cover {
            if cover.start > at {
                gaps.push(at..cover.start);
            }
            at = at.max(cover.end);
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
        gaps
    }
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

#[cfg(test)]
mod tests {
    use super::*;
    use LockMode::{Exclusive, Shared};

    fn released(table: &RangeTable, ticket: Ticket) -> Vec<Range<u64>> {
        let mut parts = Vec::new();
        table.release(ticket, |part| parts.push(part));
        parts
    }

    #[test]
    fn conflicts_are_overlaps_with_an_exclusive_side() {
        let table = RangeTable::default();
        let shared = table.acquire(10..20, Shared);
        assert!(table.try_acquire(15..16, Exclusive).is_none());
        assert!(table.try_acquire(20..30, Exclusive).is_some());
        assert!(table.try_acquire(5..15, Shared).is_some());
        assert!(table.try_acquire(25..26, Shared).is_none());
        table.release(shared, drop);
    }

    #[test]
    fn release_spares_what_others_cover() {
        let table = RangeTable::default();
        let wide = table.acquire(0..u64::MAX, Shared);
        let inner = table.acquire(10..20, Shared);
        let later = table.acquire(15..30, Shared);
        assert_eq!(released(&table, wide), [0..10, 30..u64::MAX]);
        assert_eq!(released(&table, inner), vec![10..15]);
        assert_eq!(released(&table, later), vec![15..30]);
    }

    #[test]
    fn waiters_wake_up() {
        let table = RangeTable::default();
        let first = table.acquire(0..10, Exclusive);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| table.acquire(5..6, Shared));
            table.release(first, drop);
            waiter.join().unwrap();
        });
    }
}
