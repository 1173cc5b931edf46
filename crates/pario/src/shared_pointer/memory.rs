//! The shared pointer in memory that the ranks of a node share.

use std::{io, sync::atomic::Ordering};

use pario_transport::Segment;

use super::Method;

/// Each place has a cache line of its own.
const PLACE_BYTES: usize = 64;
pub(super) const SEGMENT_BYTES: usize = 2 * PLACE_BYTES;

#[derive(Debug)]
pub(super) struct Memory {
    segment: Segment,
}

impl Memory {
    pub(super) fn new(segment: Segment) -> Memory {
        Memory { segment }
    }
}

impl Method for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn update(&self, place: usize, change: &dyn Fn(u64) -> Option<u64>) -> io::Result<u64> {
        let value = self.segment.atomic_u64(place * PLACE_BYTES);
        // Both results carry the value found: refusing is not failing.
        let (Ok(old) | Err(old)) = value.fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
        Ok(old)
    }
}
