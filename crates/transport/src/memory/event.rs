//! A place to sleep until something in shared memory changes.

use std::sync::atomic::AtomicU32;

use super::sleepers::Sleepers;

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
        self.sleepers().notify();
    }

    /// Notifies many at the price of one fence.
    pub(crate) fn notify_each<'e>(events: impl Iterator<Item = Event<'e>>) {
        Sleepers::notify_each(events.map(|event| event.sleepers()));
    }

    /// The protocol on the words of the event.
    pub(super) fn sleepers(&self) -> Sleepers<'a, AtomicU32> {
        Sleepers {
            count: self.count,
            sleepers: self.sleepers,
        }
    }
}
