//! A stream of bytes from one rank to another, through bounded shared memory.
#![allow(unsafe_code)] // copies into and out of the shared ring

use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::geometry::LINE;
use crate::Segment;

/// The positions, each on its own line.
pub(super) const HEADER_BYTES: usize = 3 * LINE;

/// The shared words and bytes. `head` and `tail` count all bytes ever taken out
/// and put in; the producer alone moves `tail`, the consumer alone `head`, each
/// after its copy: a rank killed in between leaves the stream as it was.
#[derive(Debug)]
struct Ring {
    memory: Segment,
    base: usize,
    capacity: usize,
}

impl Ring {
    fn head(&self) -> &AtomicU64 {
        self.memory.atomic_u64(self.base)
    }

    fn tail(&self) -> &AtomicU64 {
        self.memory.atomic_u64(self.base + LINE)
    }

    /// Not zero while the producer waits for room.
    fn starved(&self) -> &AtomicU64 {
        self.memory.atomic_u64(self.base + 2 * LINE)
    }

    /// Where the byte with this count stands, and how many follow in one piece.
    fn locate(&self, position: u64) -> (usize, usize) {
        let index = (position & (self.capacity as u64 - 1)) as usize;
        (self.base + HEADER_BYTES + index, self.capacity - index)
    }
}

/// The sending end. There is one a ring: the sending rank keeps it behind a
/// lock.
#[derive(Debug)]
pub(super) struct Producer {
    ring: Ring,
    /// The count of bytes written, ahead of the shared `tail` until published.
    written: u64,
}

impl Producer {
    /// `capacity` is a power of two; the ring is all zeros, or was left in good
    /// order by an earlier producer.
    pub(super) fn new(memory: Segment, base: usize, capacity: usize) -> Self {
        let ring = Ring {
            memory,
            base,
            capacity,
        };
        let written = ring.tail().load(Ordering::Relaxed);
        Producer { ring, written }
    }

    pub(super) fn room(&self) -> usize {
        let head = self.ring.head().load(Ordering::Acquire);
        self.ring.capacity - (self.written - head) as usize
    }

    /// Asks the consumer for a notification when it has made room. What is seen
    /// by [`room`](Self::room) after this call may change without one no more.
    pub(super) fn ask_for_room(&self) {
        self.ring.starved().store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Writes as much as there is room for and returns how much that is. The
    /// consumer sees it when it is published.
    pub(super) fn write(&mut self, bytes: &[u8]) -> usize {
        let length = bytes.len().min(self.room());
        let mut rest = &bytes[..length];
        while !rest.is_empty() {
            let (offset, contiguous) = self.ring.locate(self.written);
            let (now, later) = rest.split_at(rest.len().min(contiguous));
            // SAFETY: the range lies between `tail` and `head` plus capacity:
            // the consumer does not touch it before `tail` passes it, and there
            // is one producer, borrowed exclusively.
            unsafe { self.ring.memory.copy_in(offset, now.as_ptr(), now.len()) };
            self.written += now.len() as u64;
            rest = later;
        }
        length
    }

    pub(super) fn publish(&mut self) {
        self.ring.tail().store(self.written, Ordering::Release);
    }
}

/// The receiving end. There is one a ring: the receiving rank keeps it behind a
/// lock.
#[derive(Debug)]
pub(super) struct Consumer {
    ring: Ring,
    /// The count of bytes read, ahead of the shared `head` until released.
    read: u64,
}

impl Consumer {
    /// As [`Producer::new`].
    pub(super) fn new(memory: Segment, base: usize, capacity: usize) -> Self {
        let ring = Ring {
            memory,
            base,
            capacity,
        };
        let read = ring.head().load(Ordering::Relaxed);
        Consumer { ring, read }
    }

    pub(super) fn available(&self) -> usize {
        (self.ring.tail().load(Ordering::Acquire) - self.read) as usize
    }

    /// Reads exactly `N` bytes, which must be available.
    pub(super) fn read_array<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = Vec::with_capacity(N);
        self.read_into(&mut bytes, N);
        let read = <[u8; N]>::try_from(bytes);
        read.expect("the caller has seen that these bytes are available")
    }

    /// Appends up to `limit` bytes, as many as are available and as the spare
    /// capacity of `target` holds; returns how many.
    pub(super) fn read_into(&mut self, target: &mut Vec<u8>, limit: usize) -> usize {
        let spare = target.capacity() - target.len();
        let length = self.available().min(limit).min(spare);
        let mut rest = length;
        while rest > 0 {
            let (offset, contiguous) = self.ring.locate(self.read);
            let now = rest.min(contiguous);
            let end = target.len();
            // SAFETY: the range lies between `head` and `tail`: the producer
            // does not touch it before `head` passes it. The target has room
            // for `now` bytes, which are initialised when its length grows.
            unsafe {
                let spare = target.as_mut_ptr().add(end);
                self.ring.memory.copy_out(offset, spare, now);
                target.set_len(end + now);
            }
            self.read += now as u64;
            rest -= now;
        }
        length
    }

    /// Passes over up to `limit` bytes, as many as are available.
    pub(super) fn skip(&mut self, limit: usize) -> usize {
        let length = self.available().min(limit);
        self.read += length as u64;
        length
    }

    /// Gives the bytes read back to the producer; says whether it waits for
    /// that and must be notified.
    #[must_use]
    pub(super) fn release(&mut self) -> bool {
        self.ring.head().store(self.read, Ordering::Release);
        // Pairs with `ask_for_room`.
        fence(Ordering::SeqCst);
        let starved = self.ring.starved();
        starved.load(Ordering::Relaxed) != 0 && starved.swap(0, Ordering::Relaxed) != 0
    }
}
