//! A place to sleep until something in shared memory changes.

use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::Duration;

use super::futex;

/// Two words of shared memory on which ranks sleep, threads or processes.
///
/// Whoever makes a condition true stores it first and then calls
/// [`notify`](Event::notify); whoever needs it uses
/// [`Waiter::wait`](crate::Waiter::wait). As long as no one sleeps, a
/// notification is a fence and a load. A rank killed in its sleep leaves the
/// number of sleepers too high, which costs the others a needless system call
/// and nothing else.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    count: &'a AtomicU32,
    sleepers: &'a AtomicU32,
}

impl<'a> Event<'a> {
    /// The bytes that an event takes in a segment.
    pub const BYTES: usize = 8;

    /// An event made of two words that start as zero and serve nothing else.
    #[must_use]
    pub fn new(count: &'a AtomicU32, sleepers: &'a AtomicU32) -> Self {
        Event { count, sleepers }
    }

    /// Wakes those who sleep, to look at their conditions again.
    pub fn notify(&self) {
        // Pairs with the fence in `sleep_unless`: either the sleeper sees the
        // condition that was stored before this fence, or it is seen here.
        fence(Ordering::SeqCst);
        self.wake();
    }

    /// Notifies many at the price of one fence.
    pub(crate) fn notify_each<'e>(events: impl Iterator<Item = Event<'e>>) {
        fence(Ordering::SeqCst);
        events.for_each(|event| event.wake());
    }

    fn wake(&self) {
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.count.fetch_add(1, Ordering::Release);
            futex::wake_all(self.count);
        }
    }

    /// Sleeps until notified, but not beyond `bound` and not at all if `ready`
    /// has something; returns what it has.
    pub(super) fn sleep_unless<T>(
        &self,
        bound: Duration,
        ready: impl FnOnce() -> Option<T>,
    ) -> Option<T> {
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let seen = self.count.load(Ordering::Acquire);
        let found = ready();
        if found.is_none() {
            futex::wait(self.count, seen, bound);
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        found
    }
}
