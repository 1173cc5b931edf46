//! The protocol by which ranks sleep until something in shared memory changes.

use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::Duration;

use super::futex;

/// A word on which ranks sleep, as far as the protocol needs it: of shared
/// memory, or of a model checker.
pub(crate) trait SleepWord {
    fn load(&self, order: Ordering) -> u32;
    fn add(&self, value: u32, order: Ordering);
    fn subtract(&self, value: u32, order: Ordering);
    /// A sequentially consistent fence.
    fn fence();
    /// As [`futex::wait`].
    fn wait(&self, expected: u32, bound: Duration);
    /// As [`futex::wake_all`].
    fn wake_all(&self);
}

impl SleepWord for AtomicU32 {
    fn load(&self, order: Ordering) -> u32 {
        self.load(order)
    }

    fn add(&self, value: u32, order: Ordering) {
        self.fetch_add(value, order);
    }

    fn subtract(&self, value: u32, order: Ordering) {
        self.fetch_sub(value, order);
    }

    fn fence() {
        fence(Ordering::SeqCst);
    }

    fn wait(&self, expected: u32, bound: Duration) {
        futex::wait(self, expected, bound);
    }

    fn wake_all(&self) {
        futex::wake_all(self);
    }
}

/// The two words of an [`Event`](super::Event).
#[derive(Debug)]
pub(crate) struct Sleepers<'a, W> {
    /// How often sleepers have been woken.
    pub(crate) count: &'a W,
    /// How many sleep or are about to.
    pub(crate) sleepers: &'a W,
}

impl<W: SleepWord> Sleepers<'_, W> {
    /// Wakes those who sleep, to look at their conditions again.
    pub(crate) fn notify(&self) {
        // Pairs with the fence in `sleep_unless`: either the sleeper sees the
        // condition that was stored before this fence, or it is seen here.
        W::fence();
        self.wake();
    }

    /// Notifies many at the price of one fence.
    pub(crate) fn notify_each<'e>(events: impl Iterator<Item = Sleepers<'e, W>>)
    where
        W: 'e,
    {
        W::fence();
        events.for_each(|event| event.wake());
    }

    fn wake(&self) {
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.count.add(1, Ordering::Release);
            self.count.wake_all();
        }
    }

    /// Sleeps until notified, but not beyond `bound` and not at all if `ready`
    /// has something; returns what it has.
    pub(super) fn sleep_unless<T>(
        &self,
        bound: Duration,
        ready: impl FnOnce() -> Option<T>,
    ) -> Option<T> {
        self.sleepers.add(1, Ordering::Relaxed);
        W::fence();
        let seen = self.count.load(Ordering::Acquire);
        let found = ready();
        if found.is_none() {
            self.count.wait(seen, bound);
        }
        self.sleepers.subtract(1, Ordering::Relaxed);
        found
    }
}
