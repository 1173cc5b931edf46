//! How long preparing a page of a mapping takes, compared with calls.

use std::{
    fs::File,
    io,
    os::{fd::AsFd, unix::fs::FileExt},
    time::{Duration, Instant},
};

use super::mapping::{Mapping, Populate};
use crate::posix::sys;

/// The number of pages of a measurement.
const PAGES: u64 = 4;
/// The shortest of so many measurements counts.
const REPEATS: u64 = 3;

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

/// Measures the times, which takes about 150 us.
pub fn page_costs() -> io::Result<PageCosts> {
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
        let costs = page_costs().unwrap();
        let all = [costs.stored, costs.first_call, costs.next_call];
        assert!(all.iter().all(|time| !time.is_zero()), "{costs:?}");
    }
}
