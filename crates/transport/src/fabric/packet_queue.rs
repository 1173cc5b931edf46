//! The queue of packets that leads to a rank, in shared memory.
#![allow(unsafe_code)] // copies into and out of cells

use std::ops::Range;
use std::slice;
use std::sync::atomic::AtomicU64;

use super::cells::{self, Found, Words};
use super::geometry::{CELL_BYTES, LINE};
use crate::unexpected::{ContextId, PacketHeader};
use crate::{DataTag, Rank, Segment, Tag};

/// The word of the cell, then context, bytes left, tag, and length and kind.
const HEADER_BYTES: usize = 32;

/// The bytes of a message that fit one packet.
pub(super) const PAYLOAD_BYTES: usize = CELL_BYTES - HEADER_BYTES;

/// The tail is on a line of its own.
pub(super) const QUEUE_HEADER_BYTES: usize = LINE;

/// What a packet is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// A message.
    Message(PacketHeader),
    /// A posted transfer.
    Data {
        context: ContextId,
        tag: DataTag,
        /// The bytes in packets that follow this one.
        left: u64,
    },
}

const DATA: u32 = 1 << 31;

/// The bytes of a packet.
#[derive(Debug)]
pub(super) enum Payload<'a> {
    Slice(&'a [u8]),
    /// A range of memory that no one writes to until it has been sent.
    Memory(&'a Segment, Range<usize>),
}

impl Payload<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Payload::Slice(bytes) => bytes.len(),
            Payload::Memory(_, range) => range.len(),
        }
    }

    fn address(&self) -> *const u8 {
        match self {
            Payload::Slice(bytes) => bytes.as_ptr(),
            Payload::Memory(memory, range) => {
                assert!(range.end <= memory.bytes(), "{range:?} is not in memory");
                // SAFETY: the range is within the segment.
                unsafe { memory.as_ptr().add(range.start) }
            }
        }
    }
}

/// One rank's queue. Every rank may push, its owner takes out.
#[derive(Debug)]
pub(super) struct PacketQueue {
    memory: Segment,
    base: usize,
    cells: usize,
}

impl Words for PacketQueue {
    type Word = AtomicU64;

    fn cells(&self) -> u64 {
        self.cells as u64
    }

    fn tail(&self) -> &AtomicU64 {
        self.memory.atomic_u64(self.base)
    }

    fn of_cell(&self, cell: u64) -> &AtomicU64 {
        self.memory.atomic_u64(self.offset(cell))
    }
}

impl PacketQueue {
    /// A queue in memory that starts as zeros.
    pub(super) fn new(memory: Segment, base: usize, cells: usize) -> Self {
        assert!(cells.is_power_of_two(), "{cells} is not a power of two");
        PacketQueue {
            memory,
            base,
            cells,
        }
    }

    /// Where a cell begins.
    fn offset(&self, cell: u64) -> usize {
        let cell = (cell as usize) & (self.cells - 1);
        self.base + QUEUE_HEADER_BYTES + cell * CELL_BYTES
    }

    /// Adds a packet of at most [`PAYLOAD_BYTES`]; false if there is no space.
    pub(super) fn try_push(&self, from: Rank, header: Header, payload: &Payload<'_>) -> bool {
        assert!(payload.len() <= PAYLOAD_BYTES, "a packet that is too long");
        let Some(position) = cells::claim(self, from.0) else {
            return false;
        };
        let offset = self.offset(position);
        let (context, left, tag, kind) = match header {
            Header::Message(header) => (header.context, header.left, header.tag.0, 0),
            Header::Data { context, tag, left } => (context, left, u32::from(tag.0), DATA),
        };
        let mut bytes = [0; HEADER_BYTES - size_of::<u64>()];
        bytes[..8].copy_from_slice(&context.0.to_ne_bytes());
        bytes[8..16].copy_from_slice(&left.to_ne_bytes());
        bytes[16..20].copy_from_slice(&tag.to_ne_bytes());
        bytes[20..].copy_from_slice(&(payload.len() as u32 | kind).to_ne_bytes());
        let start = offset + size_of::<u64>();
        // SAFETY: the claim makes the cell this rank's until it is full, and the
        // payload can be read.
        unsafe {
            self.memory.copy_in(start, bytes.as_ptr(), bytes.len());
            let (start, source) = (offset + HEADER_BYTES, payload.address());
            self.memory.copy_in(start, source, payload.len());
        }
        cells::fill(self, position, from.0);
        true
    }
}

/// The owner's end of a queue. There is one: the owner keeps it behind a lock.
#[derive(Debug)]
pub(super) struct Consumer {
    queue: PacketQueue,
    /// The position of the next packet.
    head: u64,
}

/// What is at the head of a queue.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The queue is empty.
    Nothing,
    /// A packet that this rank has not finished; others may follow it.
    Unfinished(Rank),
    /// There was a packet, and it has been taken.
    Taken,
}

impl Consumer {
    pub(super) fn new(queue: PacketQueue) -> Self {
        Consumer { queue, head: 0 }
    }

    /// How many packets the queue can hold.
    pub(super) fn capacity(&self) -> usize {
        self.queue.cells
    }

    /// Takes the next packet, if there is one, and gives it to `accept`.
    pub(super) fn take(&mut self, accept: impl FnOnce(Rank, Header, &[u8])) -> Next {
        let from = match cells::look(&self.queue, self.head) {
            Found::Nothing => return Next::Nothing,
            Found::Claimed(rank) => return Next::Unfinished(Rank(rank)),
            Found::Full(rank) => Rank(rank),
        };
        let offset = self.queue.offset(self.head);
        let mut bytes = [0; HEADER_BYTES - size_of::<u64>()];
        let start = offset + size_of::<u64>();
        // SAFETY: the cell is full: no one writes to it until it is released.
        unsafe {
            let target = bytes.as_mut_ptr();
            self.queue.memory.copy_out(start, target, bytes.len());
        };
        let (header, length) = parse(&bytes);
        // A length that no rank has written must not lead out of the cell.
        let length = length.min(PAYLOAD_BYTES);
        // SAFETY: as above; the range is within the cell, which is within the
        // memory.
        let payload = unsafe {
            let start = self.queue.memory.as_ptr().add(offset + HEADER_BYTES);
            slice::from_raw_parts(start, length)
        };
        accept(from, header, payload);
        cells::release(&self.queue, self.head);
        self.head += 1;
        Next::Taken
    }

    /// Passes over the packet at the head, which this rank had not finished when
    /// it was looked at, and which it will not finish, because it has ended. A
    /// packet that it finished in between stays, and can be taken.
    pub(super) fn skip_unfinished(&mut self, from: Rank) {
        if cells::pass_over(&self.queue, self.head, from.0) {
            self.head += 1;
        }
    }
}

fn parse(bytes: &[u8; HEADER_BYTES - size_of::<u64>()]) -> (Header, usize) {
    let (words, _) = bytes.as_chunks::<8>();
    let (halves, _) = bytes[16..].as_chunks::<4>();
    let context = ContextId(u64::from_ne_bytes(words[0]));
    let left = u64::from_ne_bytes(words[1]);
    let [tag, length] = [halves[0], halves[1]].map(u32::from_ne_bytes);
    let header = match length & DATA {
        0 => Header::Message(PacketHeader {
            context,
            tag: Tag(tag),
            left,
        }),
        _ => Header::Data {
            context,
            tag: DataTag(tag as u16),
            left,
        },
    };
    (header, (length & !DATA) as usize)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::thread;

    use super::*;
    use crate::conformance::Dice;

    const CELLS: usize = 8;

    fn queue() -> (PacketQueue, Consumer) {
        let bytes = QUEUE_HEADER_BYTES + CELLS * CELL_BYTES;
        let memory = Segment::anonymous(bytes).expect("a few pages of memory");
        let queue = || PacketQueue::new(memory.clone(), 0, CELLS);
        (queue(), Consumer::new(queue()))
    }

    fn header(left: u64) -> Header {
        Header::Message(PacketHeader {
            context: ContextId(u64::MAX - 1),
            tag: Tag(0xffff_0001),
            left,
        })
    }

    /// The next packet with its sender.
    fn take(consumer: &mut Consumer) -> Option<(Rank, Header, Vec<u8>)> {
        let mut taken = None;
        consumer.take(|from, header, payload| taken = Some((from, header, payload.to_vec())));
        taken
    }

    #[test]
    fn behaves_like_a_bounded_queue() {
        for seed in 0..20 {
            let mut dice = Dice::new(seed, 0);
            let (queue, mut consumer) = queue();
            let mut expected = VecDeque::new();
            for i in 0..1000 {
                if dice.below(2) == 0 {
                    let length = dice.below(PAYLOAD_BYTES as u64 + 1) as usize;
                    let packet = (Rank(i % 1000), header(u64::from(i)), dice.bytes(length));
                    let is_pushed = queue.try_push(packet.0, packet.1, &Payload::Slice(&packet.2));
                    assert_eq!(is_pushed, expected.len() < CELLS, "seed {seed}");
                    if is_pushed {
                        expected.push_back(packet);
                    }
                } else {
                    assert_eq!(take(&mut consumer), expected.pop_front(), "seed {seed}");
                }
            }
        }
    }

    #[test]
    fn data_packets_are_told_from_messages() {
        let (queue, mut consumer) = queue();
        let data = Header::Data {
            context: ContextId::assigned(3),
            tag: DataTag(DataTag::BOUND - 1),
            left: 1 << 40,
        };
        assert!(queue.try_push(Rank(1023), data, &Payload::Slice(&[7; 3])));
        assert_eq!(take(&mut consumer), Some((Rank(1023), data, vec![7; 3])));
    }

    /// A producer fills its cell and ends after the consumer has looked, and
    /// before the consumer asks whether it has ended.
    #[test]
    fn a_packet_that_was_finished_in_between_is_not_passed_over() {
        let (queue, mut consumer) = queue();
        let position = cells::claim(&queue, 2).expect("there is space");
        let next = consumer.take(|_, _, _| panic!("it is not finished"));
        assert_eq!(next, Next::Unfinished(Rank(2)));
        cells::fill(&queue, position, 2);
        consumer.skip_unfinished(Rank(2));
        assert_eq!(take(&mut consumer).map(|(from, ..)| from), Some(Rank(2)));
        assert_eq!(consumer.take(|_, _, _| {}), Next::Nothing);
    }

    /// A producer that is killed with a claim leaves one cell, and nothing that
    /// others have sent before or after is lost.
    #[test]
    fn a_claim_that_is_never_filled_is_passed_over() {
        let (queue, mut consumer) = queue();
        let push = |from| queue.try_push(Rank(from), header(0), &Payload::Slice(&[from as u8]));
        assert!(push(1));
        cells::claim(&queue, 2).expect("there is space");
        assert!(push(3));
        assert_eq!(take(&mut consumer).map(|(from, ..)| from), Some(Rank(1)));
        let next = consumer.take(|_, _, _| panic!("it is not finished"));
        assert_eq!(next, Next::Unfinished(Rank(2)));
        consumer.skip_unfinished(Rank(2));
        assert_eq!(take(&mut consumer).map(|(from, ..)| from), Some(Rank(3)));
        assert_eq!(consumer.take(|_, _, _| {}), Next::Nothing);
        // The cell is used again.
        for lap in 0..3 {
            for from in 0..CELLS as u32 {
                assert!(push(from), "lap {lap}");
            }
            assert!(!push(9), "lap {lap}");
            for from in 0..CELLS as u32 {
                assert_eq!(take(&mut consumer).map(|(rank, ..)| rank), Some(Rank(from)));
            }
        }
    }

    #[test]
    fn many_producers_keep_their_order() {
        const PRODUCERS: u32 = 4;
        const PACKETS: u64 = 5000;
        let (queue, mut consumer) = queue();
        thread::scope(|scope| {
            for from in 0..PRODUCERS {
                let queue = &queue;
                scope.spawn(move || {
                    for i in 0..PACKETS {
                        let payload = i.to_ne_bytes();
                        let payload = Payload::Slice(&payload);
                        while !queue.try_push(Rank(from), header(i), &payload) {
                            thread::yield_now();
                        }
                    }
                });
            }
            let mut next = [0; PRODUCERS as usize];
            while next.iter().sum::<u64>() < u64::from(PRODUCERS) * PACKETS {
                match take(&mut consumer) {
                    None => thread::yield_now(),
                    Some((from, got, payload)) => {
                        let expected = next[from.index()];
                        assert_eq!(got, header(expected));
                        assert_eq!(payload, expected.to_ne_bytes());
                        next[from.index()] += 1;
                    }
                }
            }
        });
    }
}
