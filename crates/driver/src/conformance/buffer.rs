//! Memory for background transfers.
//!
//! This file may contain `unsafe`: safe code cannot read memory that it has
//! lent forever.
#![allow(unsafe_code)]

use crate::{Batch, Direction};

/// Memory that is lent to a background transfer and read after the callback.
/// Leaked, since a failing check may leave transfers in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer {
    memory: *mut u8,
    len: usize,
}

// SAFETY: the memory is leaked and is used by one transfer and then by one
// check, in this order.
unsafe impl Send for Buffer {}

impl Buffer {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        let bytes = Vec::leak(bytes);
        Buffer {
            memory: bytes.as_mut_ptr(),
            len: bytes.len(),
        }
    }

    /// A transfer of pieces, each given as (offset, start, length).
    pub(super) fn batch(
        self,
        direction: Direction,
        places: &[(u64, usize, usize)],
    ) -> Batch<'static> {
        let mut batch = Batch::new(direction);
        for &(offset, start, len) in places {
            assert!(start + len <= self.len);
            // SAFETY: inside the leaked memory, which only this transfer uses
            // until the callback.
            unsafe { batch.push_raw(offset, self.memory.add(start), len) };
        }
        batch
    }

    /// A transfer of the whole buffer.
    pub(super) fn whole(self, direction: Direction, offset: u64) -> Batch<'static> {
        self.batch(direction, &[(offset, 0, self.len)])
    }

    /// The contents after the transfer.
    pub(super) fn bytes(self) -> Vec<u8> {
        // SAFETY: the transfer is over, and nothing else uses the memory.
        unsafe { std::slice::from_raw_parts(self.memory, self.len) }.to_vec()
    }
}
