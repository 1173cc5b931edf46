//! How long preparing a page of a mapping takes, compared with calls.

use std::{
    fs::File,
    io,
    os::{fd::AsFd, unix::fs::FileExt},
    time::{Duration, Instant},
};

use super::mapping::{Mapping, Populate};
use crate::{per_process::PerProcess, posix::sys};

/// The number of pages of a measurement.
const PAGES: u64 = 4;
/// The shortest of so many measurements counts.
const REPEATS: u64 = 3;

/// The number of pieces per page from which storing is faster than one call per piece, where
/// nothing can be measured.
const STORED_PIECES: u64 = 4;
/// Where preparing a page takes as long as so many percent of a call, storing is faster from
/// [`STORED_PIECES`] on.
const PAGE_PERCENT: u64 = 220;
/// The range of that number: powers of two, so that noise makes little difference.
pub(super) const STORED_PIECES_MIN: u64 = 2;
pub(super) const STORED_PIECES_MAX: u64 = 16;

/// The times of what is done with one page of a file in memory.
#[derive(Clone, Copy, Debug)]
pub struct PageCosts {
    /// Allocating a new page and making it resident in a mapping.
    pub stored: Duration,
    /// The first write to a new page, which allocates it too.
    pub first_call: Duration,
    /// Each further write to it.
    pub next_call: Duration,
}

impl PageCosts {
    /// The number of pieces per page from which storing them through a mapping is faster than
    /// calls: the power of two that is nearest by ratio, but the usual number if the ratio is less
    /// than two. Measurements vary, and writes should not be carried out differently in every run.
    pub fn stored_pieces(&self) -> u64 {
        // Calls would allocate the page, too.
        let page = (self.stored + self.next_call).saturating_sub(self.first_call);
        let percent = (page.as_nanos() * 100).checked_div(self.next_call.as_nanos());
        let Some(percent) = percent else {
            return STORED_PIECES;
        };
        if 2 * percent > PAGE_PERCENT.into() && percent < (2 * PAGE_PERCENT).into() {
            return STORED_PIECES;
        }
        let mut pieces = STORED_PIECES_MIN;
        // The geometric mean of two neighbours is √2 times the lower one.
        let exceeds = |pieces: u64| {
            let exact = u128::from(STORED_PIECES) * percent;
            let (exact, bound) = (exact.pow(2), u128::from(pieces * PAGE_PERCENT).pow(2));
            exact > 2 * bound
        };
        while pieces < STORED_PIECES_MAX && exceeds(pieces) {
            pieces *= 2;
        }
        pieces
    }
}

/// The number of pieces per page from which this process stores lists. Processes that measure at
/// the same time may get different numbers, which is harmless.
pub fn stored_pieces() -> u64 {
    let costs = page_costs().as_ref();
    costs.map_or(STORED_PIECES, PageCosts::stored_pieces)
}

/// The times in this process, measured when they are first needed. Kernels before Linux 5.14
/// cannot make pages of a mapping resident.
pub fn page_costs() -> &'static io::Result<PageCosts> {
    static MEASURED: PerProcess<io::Result<PageCosts>> = PerProcess::new();
    MEASURED.get_or_make(measure)
}

/// Takes about 150 us.
fn measure() -> io::Result<PageCosts> {
    let file = File::from(sys::memory_file(c"pario-pages")?);
    let bytes = PAGES * sys::page_size();
    file.set_len(2 * REPEATS * bytes)?;
    let write = |start: u64| {
        let page = |at: u64| file.write_all_at(&[0; 8], start + at * sys::page_size());
        (0..PAGES).try_for_each(page)
    };
    let mapping = Mapping::new(file.as_fd(), 0..2 * REPEATS * bytes)?;
    let [mut stored, mut first, mut next] = [Duration::MAX; 3];
    for repeat in 0..REPEATS {
        let start = 2 * repeat * bytes;
        let range = start..start + bytes;
        stored = stored.min(time(|| mapping.populate(&range, Populate::Read))?);
        first = first.min(time(|| write(start + bytes))?);
        next = next.min(time(|| write(start + bytes))?);
    }
    Ok(PageCosts {
        stored: stored / PAGES as u32,
        first_call: first / PAGES as u32,
        next_call: next / PAGES as u32,
    })
}

/// How long some work takes.
pub fn time(work: impl FnOnce() -> io::Result<()>) -> io::Result<Duration> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_takes_time() {
        let costs = page_costs().as_ref().unwrap();
        let all = [costs.stored, costs.first_call, costs.next_call];
        assert!(all.iter().all(|time| !time.is_zero()), "{costs:?}");
        assert!(std::ptr::eq(page_costs(), page_costs()), "measured once");
        assert_eq!(stored_pieces(), costs.stored_pieces());
    }

    #[test]
    fn expensive_pages_need_more_pieces() {
        let of = |nanos: [u64; 3]| {
            let [stored, first_call, next_call] = nanos.map(Duration::from_nanos);
            let costs = PageCosts {
                stored,
                first_call,
                next_call,
            };
            costs.stored_pieces()
        };
        // The machine on which the percentage was found, and noise of a fifth.
        let stored = [3500, 2800, 4200].map(|stored| of([stored, 2500, 770]));
        assert_eq!(stored, [STORED_PIECES; 3]);
        // An Intel processor, on which the nearest power was 4 in some runs and 8 in others.
        assert_eq!(of([2060, 1000, 410]), STORED_PIECES);
        assert_eq!(of([5500, 2500, 770]), 8);
        assert_eq!(of([1, 2500, 770]), STORED_PIECES_MIN);
        assert_eq!(of([u64::MAX, 2500, 770]), STORED_PIECES_MAX);
        assert_eq!(of([3500, 2500, 0]), STORED_PIECES, "a clock too coarse");
    }
}
