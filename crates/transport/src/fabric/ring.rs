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

    /// Reads exactly `N` bytes, which the caller has seen to be available.
    pub(super) fn read_array<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        let mut rest = bytes.as_mut_slice();
        while !rest.is_empty() {
            let (offset, contiguous) = self.ring.locate(self.read);
            let (now, later) = rest.split_at_mut(rest.len().min(contiguous));
            // SAFETY: as in `read_into`.
            unsafe {
                self.ring
                    .memory
                    .copy_out(offset, now.as_mut_ptr(), now.len())
            };
            self.read += now.len() as u64;
            rest = later;
        }
        bytes
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::thread;

    use super::*;
    use crate::conformance::Dice;

    const CAPACITY: usize = 256;

    fn ring() -> (Producer, Consumer) {
        let memory = Segment::anonymous(HEADER_BYTES + CAPACITY).expect("a page of memory");
        let producer = Producer::new(memory.clone(), 0, CAPACITY);
        (producer, Consumer::new(memory, 0, CAPACITY))
    }

    #[test]
    fn behaves_like_a_bounded_queue() {
        for seed in 0..50 {
            let mut dice = Dice::new(seed, 0);
            let (mut producer, mut consumer) = ring();
            let mut queue = VecDeque::new();
            for _ in 0..1000 {
                let length = dice.below(300) as usize;
                if dice.below(2) == 0 {
                    let bytes = dice.bytes(length);
                    let room = CAPACITY - queue.len();
                    assert_eq!(producer.room(), room, "seed {seed}");
                    let written = producer.write(&bytes);
                    assert_eq!(written, length.min(room), "seed {seed}");
                    assert_eq!(consumer.available(), queue.len(), "seed {seed}");
                    producer.publish();
                    queue.extend(&bytes[..written]);
                } else {
                    let mut bytes = Vec::with_capacity(length);
                    let read = consumer.read_into(&mut bytes, length);
                    assert!(!consumer.release(), "no one asked for room");
                    let expected = queue.drain(..length.min(queue.len()));
                    assert!(bytes.iter().copied().eq(expected), "seed {seed}");
                    assert_eq!(read, bytes.len());
                }
            }
        }
    }

    #[test]
    fn what_is_not_published_is_not_seen() {
        let (mut producer, consumer) = ring();
        producer.write(&[1; 10]);
        assert_eq!(consumer.available(), 0);
        // A producer that takes over starts from what was published.
        let mut successor = Producer::new(producer.ring.memory.clone(), 0, CAPACITY);
        successor.write(&[2; 3]);
        successor.publish();
        assert_eq!(consumer.available(), 3);
    }

    #[test]
    fn a_starved_producer_is_noticed_once() {
        let (mut producer, mut consumer) = ring();
        producer.write(&[0; CAPACITY]);
        producer.publish();
        producer.ask_for_room();
        assert_eq!(consumer.skip(1), 1);
        assert!(consumer.release());
        assert_eq!(consumer.skip(1), 1);
        assert!(!consumer.release());
        assert_eq!(producer.room(), 2);
    }

    #[test]
    fn streams_between_threads() {
        const TOTAL: usize = 1 << 20;
        let (mut producer, mut consumer) = ring();
        let bytes = Dice::new(7, 7).bytes(TOTAL);
        let expected = bytes.clone();
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut rest = bytes.as_slice();
                while !rest.is_empty() {
                    let written = producer.write(rest);
                    producer.publish();
                    rest = &rest[written..];
                    thread::yield_now();
                }
            });
            let mut received = Vec::with_capacity(TOTAL);
            while received.len() < TOTAL {
                consumer.read_into(&mut received, 100);
                let _ = consumer.release();
                thread::yield_now();
            }
            assert!(received == expected);
        });
    }
}
