//! The ranges that threads of this process hold.

use std::{
    io,
    ops::Range,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{LockMode, OnConflict, RangeLock};
use crate::closing::lock;

/// The locks of threads among themselves. Open-file-description locks belong
/// to the description, so the kernel does not exclude its threads from each
/// other; this table does.
#[derive(Debug, Default)]
pub(crate) struct RangeTable {
    held: Mutex<Held>,
    released: Condvar,
    /// Whether some ranges could not be unlocked; read without the mutex.
    stuck: AtomicBool,
}

#[derive(Debug, Default)]
struct Held {
    entries: Vec<Entry>,
    next: u64,
    /// Ranges that no entry holds and that could not be unlocked.
    stuck: Vec<Range<u64>>,
}

#[derive(Debug)]
struct Entry {
    ticket: Ticket,
    range: Range<u64>,
    mode: LockMode,
}

/// Releases locks that others than this process's threads see.
pub(crate) trait Unlock {
    /// Releases a part that nobody holds any more.
    fn unlock(&mut self, part: Range<u64>) -> io::Result<()>;

    /// Releases everything, the last resort for parts that cannot be unlocked:
    /// nothing is held at that moment.
    fn unlock_all(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl<F: FnMut(Range<u64>) -> io::Result<()>> Unlock for F {
    fn unlock(&mut self, part: Range<u64>) -> io::Result<()> {
        self(part)
    }
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

    /// Holds a range here, then has `lock` take it where other processes see it, which `unlock`
    /// undoes. `None` if that would mean waiting and `on_conflict` does not allow it.
    pub(crate) fn take(
        self: &Arc<Self>,
        range: Range<u64>,
        mode: LockMode,
        on_conflict: OnConflict,
        unlock: impl Unlock + Send + 'static,
        lock: impl FnOnce() -> io::Result<bool>,
    ) -> io::Result<Option<RangeLock>> {
        let ticket = match on_conflict {
            OnConflict::Wait => self.acquire(range.clone(), mode),
            OnConflict::Try => match self.try_acquire(range.clone(), mode) {
                Some(ticket) => ticket,
                None => return Ok(None),
            },
        };
        match lock() {
            Ok(true) => {
                let table = self.clone();
                let release = move || table.release(ticket, unlock);
                Ok(Some(RangeLock::new(range, mode, release)))
            }
            refused => {
                self.release(ticket, unlock);
                refused.map(|_| None)
            }
        }
    }

    /// Lets a range go. `unlock` gets the parts of it that no other entry
    /// covers, in ascending order, before anyone else can take them: the
    /// kernel keeps one lock per byte and description, which overlapping shared
    /// entries have in common. What it fails to unlock is tried again by the
    /// next release and by [`RangeTable::retry`], and all is released once
    /// nothing is held.
    pub(crate) fn release(&self, ticket: Ticket, unlock: impl Unlock) {
        let mut held = lock(&self.held);
        let at = held.entries.iter().position(|entry| entry.ticket == ticket);
        let entry = held
            .entries
            .swap_remove(at.expect("a ticket is released once"));
        held.stuck.push(entry.range);
        // Whoever uses the file next hears of a failure.
        let _ = self.unlock_stuck(&mut held, unlock);
        drop(held);
        self.released.notify_all();
    }

    /// Whether nothing is held, or left over from what was.
    pub(crate) fn is_empty(&self) -> bool {
        let held = lock(&self.held);
        held.entries.is_empty() && held.stuck.is_empty()
    }

    /// Whether some range could not be unlocked when it was released.
    pub(crate) fn is_stuck(&self) -> bool {
        self.stuck.load(Ordering::Acquire)
    }

    /// Tries again to unlock what could not be; the range that still cannot
    /// be by any means, and why. While others are held, not all means have been
    /// tried.
    pub(crate) fn retry(&self, unlock: impl Unlock) -> Result<(), (Range<u64>, io::Error)> {
        let mut held = lock(&self.held);
        match self.unlock_stuck(&mut held, unlock) {
            Err(_) if !held.entries.is_empty() => Ok(()),
            result => result,
        }
    }

    /// An error if a lock that was let go is still there, after trying once more to
    /// release it: other ranks wait for it.
    #[inline]
    pub(crate) fn check_released<U: Unlock>(&self, unlock: impl FnOnce() -> U) -> io::Result<()> {
        match self.is_stuck() {
            false => Ok(()),
            true => self.release_stuck(unlock),
        }
    }

    #[cold]
    fn release_stuck<U: Unlock>(&self, unlock: impl FnOnce() -> U) -> io::Result<()> {
        let unlocked = self.retry(unlock());
        unlocked.map_err(|(Range { start, end }, cause)| {
            let message = format!(
                "the lock on bytes {start}..{end} of the file could not be released ({cause}): \
                 others may wait for it until the file is closed"
            );
            io::Error::new(cause.kind(), message)
        })
    }

    fn unlock_stuck(
        &self,
        held: &mut Held,
        mut unlock: impl Unlock,
    ) -> Result<(), (Range<u64>, io::Error)> {
        let mut failure = Ok(());
        for range in std::mem::take(&mut held.stuck) {
            for part in held.uncovered(range) {
                if let Err(error) = unlock.unlock(part.clone()) {
                    held.stuck.push(part.clone());
                    failure = failure.and(Err((part, error)));
                }
            }
        }
        if failure.is_err() && held.entries.is_empty() && unlock.unlock_all().is_ok() {
            held.stuck.clear();
            failure = Ok(());
        }
        self.stuck.store(!held.stuck.is_empty(), Ordering::Release);
        failure
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
        table.release(ticket, |part: Range<u64>| {
            parts.push(part);
            Ok(())
        });
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
        table.release(shared, |_: Range<u64>| Ok(()));
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
            table.release(first, |_: Range<u64>| Ok(()));
            waiter.join().unwrap();
        });
    }

    /// A part that could not be unlocked is tried again, but not where it has
    /// been taken again in between.
    #[test]
    fn what_could_not_be_unlocked_is_tried_again() {
        let table = RangeTable::default();
        let first = table.acquire(0..10, Exclusive);
        table.release(
            first,
            |_: Range<u64>| Err(io::ErrorKind::Interrupted.into()),
        );
        assert!(table.is_stuck());
        let again = table.acquire(4..6, Exclusive);
        let retried = table.retry(|part: Range<u64>| match part.start {
            0 => Ok(()),
            _ => Err(io::ErrorKind::Interrupted.into()),
        });
        retried.expect("not all means have been tried");
        assert_eq!(released(&table, again), vec![6..10, 4..6]);
        assert!(!table.is_stuck());
    }

    /// Unlocks nothing, and counts how often all is released.
    struct LastResort<'a>(&'a mut u32);

    impl Unlock for LastResort<'_> {
        fn unlock(&mut self, _part: Range<u64>) -> io::Result<()> {
            Err(io::ErrorKind::Interrupted.into())
        }

        fn unlock_all(&mut self) -> io::Result<()> {
            *self.0 += 1;
            Ok(())
        }
    }

    /// Releasing everything would take away what another thread still holds.
    #[test]
    fn the_last_resort_waits_until_nothing_is_held() {
        let table = RangeTable::default();
        let first = table.acquire(0..10, Exclusive);
        let second = table.acquire(20..30, Exclusive);
        let mut releases = 0;
        table.release(first, LastResort(&mut releases));
        table.retry(LastResort(&mut releases)).unwrap();
        assert_eq!((releases, table.is_stuck()), (0, true));
        table.release(second, LastResort(&mut releases));
        assert_eq!((releases, table.is_stuck()), (1, false));
    }

    #[test]
    fn what_cannot_be_unlocked_by_any_means_is_named() {
        let table = RangeTable::default();
        let ticket = table.acquire(5..10, Exclusive);
        let refuse = |_: Range<u64>| Err(io::ErrorKind::Interrupted.into());
        table.release(ticket, refuse);
        assert_eq!(table.retry(refuse).unwrap_err().0, 5..10);
    }
}
