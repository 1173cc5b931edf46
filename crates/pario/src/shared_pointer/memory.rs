//! The shared pointer in memory that the ranks of a node share.

use std::{
    io,
    sync::atomic::{AtomicU64, Ordering},
};

use pario_transport::Segment;

use super::{Change, Generation, Method};

/// Each slot has its own cache line.
const SLOT_BYTES: usize = 64;
pub(super) const SEGMENT_BYTES: usize = 2 * SLOT_BYTES;

#[derive(Debug)]
pub(super) struct Memory {
    segment: Segment,
}

impl Memory {
    pub(super) fn new(segment: Segment) -> Memory {
        Memory { segment }
    }

    fn place(&self, generation: Generation) -> &AtomicU64 {
        self.segment.atomic_u64(generation.slot() * SLOT_BYTES)
    }
}

impl Method for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn prepare(&self, generation: Generation) -> io::Result<()> {
        self.place(generation).store(0, Ordering::Release);
        Ok(())
    }

    fn update(&self, generation: Generation, change: Change) -> io::Result<u64> {
        let value = self.place(generation);
        // Either result holds the old value: a rejected change is not an error.
        let new = |old| change.of(old);
        let (Ok(old) | Err(old)) = value.fetch_update(Ordering::AcqRel, Ordering::Acquire, new);
        Ok(old)
    }
}
