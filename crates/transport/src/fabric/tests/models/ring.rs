//! A queue of packets made of loom's words.
#![allow(unsafe_code)] // loom's cells report accesses that are not ordered

use std::sync::atomic::Ordering;

use loom::cell::UnsafeCell;
use loom::sync::atomic::AtomicU64;

use super::super::super::cells::{self, Found, Words};

/// A packet: its sender, and how many that rank had sent before.
pub(super) type Packet = (u32, u64);

#[derive(Debug)]
pub(super) struct Ring {
    tail: AtomicU64,
    cells: Vec<(AtomicU64, UnsafeCell<Packet>)>,
    /// For each rank, whether it is known to have ended.
    ended: Vec<AtomicU64>,
}

// SAFETY: loom fails the model if two threads are in a packet at once.
unsafe impl Sync for Ring {}

impl Words for Ring {
    type Word = AtomicU64;

    fn cells(&self) -> u64 {
        self.cells.len() as u64
    }

    fn tail(&self) -> &AtomicU64 {
        &self.tail
    }

    fn of_cell(&self, cell: u64) -> &AtomicU64 {
        &self.cells[cell as usize].0
    }
}

impl Ring {
    pub(super) fn new(cells: usize, ranks: usize) -> Self {
        let word = |_| AtomicU64::new(0);
        let cell = |i| (word(i), UnsafeCell::new((0, 0)));
        Ring {
            tail: AtomicU64::new(0),
            cells: (0..cells).map(cell).collect(),
            ended: (0..ranks).map(word).collect(),
        }
    }

    fn packet(&self, position: u64) -> &UnsafeCell<Packet> {
        &self.cells[position as usize % self.cells.len()].1
    }

    pub(super) fn try_push(&self, packet: Packet) -> bool {
        let Some(position) = cells::claim(self, packet.0) else {
            return false;
        };
        // SAFETY: the claim makes the cell this rank's, or loom fails the model.
        self.packet(position)
            .with_mut(|cell| unsafe { *cell = packet });
        cells::fill(self, position, packet.0);
        true
    }

    /// Notes that a rank has ended.
    pub(super) fn end(&self, rank: u32) {
        self.ended[rank as usize].store(1, Ordering::Release);
    }

    fn is_ended(&self, rank: u32) -> bool {
        self.ended[rank as usize].load(Ordering::Acquire) == 1
    }

    /// The next packet. Passes over packets that ranks will not finish.
    pub(super) fn take(&self, head: &mut u64) -> Option<Packet> {
        loop {
            match cells::look(self, *head) {
                Found::Full(from) => {
                    // SAFETY: a full cell is the consumer's, or loom fails the
                    // model.
                    let packet = self.packet(*head).with(|cell| unsafe { *cell });
                    assert_eq!(packet.0, from);
                    cells::release(self, *head);
                    *head += 1;
                    return Some(packet);
                }
                Found::Claimed(from) if self.is_ended(from) => {
                    *head += u64::from(cells::pass_over(self, *head, from));
                }
                _ => return None,
            }
        }
    }
}

/// The queue as a producer sees it that is killed before it moves the tail: it
/// moves a copy.
#[derive(Debug)]
pub(super) struct TailNotMoved<'a>(pub(super) &'a Ring, pub(super) AtomicU64);

impl Words for TailNotMoved<'_> {
    type Word = AtomicU64;

    fn cells(&self) -> u64 {
        self.0.cells()
    }

    fn tail(&self) -> &AtomicU64 {
        &self.1
    }

    fn of_cell(&self, cell: u64) -> &AtomicU64 {
        self.0.of_cell(cell)
    }
}
