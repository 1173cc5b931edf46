//! Counts heap allocations of the process while that is requested. At other times an allocation
//! costs one load more.
#![allow(unsafe_code)] // a global allocator

use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::Sub;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static IS_COUNTING: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// The system's allocator, with counters.
pub(crate) struct CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Allocations since counting started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allocations {
    /// How many, changes of size included.
    pub(crate) count: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
}

impl Allocations {
    /// Counts from now on, for the rest of the process.
    pub(crate) fn start() {
        IS_COUNTING.store(true, Ordering::Relaxed);
    }

    /// All so far.
    pub(crate) fn now() -> Allocations {
        Allocations {
            count: COUNT.load(Ordering::Relaxed),
            bytes: BYTES.load(Ordering::Relaxed),
        }
    }
}

impl Sub for Allocations {
    type Output = Allocations;

    fn sub(self, earlier: Allocations) -> Allocations {
        Allocations {
            count: self.count - earlier.count,
            bytes: self.bytes - earlier.bytes,
        }
    }
}

fn count(bytes: usize) {
    if IS_COUNTING.load(Ordering::Relaxed) {
        COUNT.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(bytes);
        // SAFETY: the caller's promise is the same.
        unsafe { System.realloc(pointer, layout, bytes) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_are_counted_once_requested() {
        Allocations::start();
        let before = Allocations::now();
        let bytes = std::hint::black_box(vec![1_u8; 1 << 20]);
        let made = Allocations::now() - before;
        // Other tests allocate, too.
        assert!(made.count >= 1 && made.bytes >= bytes.len() as u64);
    }
}
