//! Heap allocations of collective calls in the steady state, per call and rank.
//!
//! Ranks are threads, and allocations are counted per thread, so each rank counts its own.
#![allow(unsafe_code)] // a global allocator
#![allow(clippy::unwrap_used)] // helpers of tests, too

mod common;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use pario::{File, Info, Status, View};

struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that is ending has no counter any more.
    let _ = COUNT.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is the same.
        unsafe { System.realloc(pointer, layout, bytes) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Calls before counting starts, and calls that are counted.
const WARM_UP: u64 = 3;
const CALLS: u64 = 8;

/// Bytes of a rank's pieces; ranks have them alternately.
#[derive(Clone, Copy)]
enum Pieces {
    /// One per call.
    Dense,
    Of(u64),
}

/// Whether each call moves the bytes of the one before or those that follow.
#[derive(Clone, Copy, Debug)]
enum Offsets {
    Same,
    Advancing,
}

/// The most allocations of one rank in one call.
fn allocations(
    ranks: u32,
    pieces: Pieces,
    bytes: usize,
    offsets: Offsets,
    call: impl Fn(&File, u64, &mut [u8]) -> pario::Result<Status> + Sync,
) -> u64 {
    let directory = common::directory();
    let path = directory.path().join("allocations");
    let results = pario_transport::threads::run(ranks, |comm| -> pario::Result<u64> {
        let file = File::open(&comm, &path, common::NEW, &Info::new())?;
        let rank = u64::from(comm.rank().0);
        file.set_view(&match pieces {
            Pieces::Dense => View::new(rank << 30, &common::byte(), &common::byte()),
            Pieces::Of(piece) => {
                let period = i64::try_from(piece * u64::from(ranks)).unwrap();
                common::every(period, piece, rank * piece)
            }
        })?;
        let mut data = vec![1u8; bytes];
        file.write_at_all(0, &vec![0u8; bytes * (WARM_UP + CALLS) as usize])?;
        let mut most = 0;
        for number in 0..WARM_UP + CALLS {
            let offset = match offsets {
                Offsets::Same => 0,
                Offsets::Advancing => number * bytes as u64,
            };
            let before = COUNT.get();
            let status = call(&file, offset, &mut data)?;
            let taken = COUNT.get() - before;
            assert_eq!(status.bytes(), bytes as u64);
            if number >= WARM_UP {
                most = most.max(taken);
            }
        }
        file.close()?;
        Ok(most)
    });
    let counts = results.into_iter().map(|result| result.unwrap().unwrap());
    counts.max().unwrap()
}

fn check(ranks: u32, pieces: Pieces, bytes: usize, offsets: Offsets, allowed: u64) {
    let written = allocations(ranks, pieces, bytes, offsets, |file, offset, data| {
        file.write_at_all(offset, &*data)
    });
    let read = allocations(ranks, pieces, bytes, offsets, |file, offset, data| {
        file.read_at_all(offset, data)
    });
    assert!(
        written.max(read) <= allowed,
        "{bytes} bytes, {ranks} ranks, {offsets:?} offsets: {written} allocations per write, \
         {read} per read; {allowed} are allowed"
    );
}

#[test]
fn dense_calls_allocate_nothing() {
    for ranks in [1, 2, 4] {
        for offsets in [Offsets::Same, Offsets::Advancing] {
            check(ranks, Pieces::Dense, 4096, offsets, 0);
        }
    }
}

#[test]
fn contiguous_independent_calls_allocate_nothing() {
    let write = |file: &File, offset, data: &mut [u8]| file.write_at(offset, &*data);
    let read = |file: &File, offset, data: &mut [u8]| file.read_at(offset, data);
    for offsets in [Offsets::Same, Offsets::Advancing] {
        assert_eq!(allocations(2, Pieces::Dense, 4096, offsets, write), 0);
        assert_eq!(allocations(2, Pieces::Dense, 4096, offsets, read), 0);
    }
}

#[test]
fn strided_calls_allocate_only_a_new_plan() {
    for ranks in [2, 4] {
        check(ranks, Pieces::Of(8), 4096, Offsets::Same, 2);
        check(ranks, Pieces::Of(8), 4096, Offsets::Advancing, 6);
    }
}

/// 16 MiB are 64 windows and more: none of them allocates.
#[test]
fn windows_allocate_nothing() {
    check(2, Pieces::Of(8), 16 << 20, Offsets::Same, 2);
    check(2, Pieces::Of(8), 16 << 20, Offsets::Advancing, 6);
}
