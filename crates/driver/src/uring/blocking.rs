//! A batch through a ring, while the caller waits.
//!
//! One of the files that may hold `unsafe`: it pushes requests, and keeps
//! what they name alive by not returning before they have completed.
#![allow(unsafe_code)]

use std::{io, os::fd::BorrowedFd, sync::Mutex};

use super::{
    ring::{Pace, Ring},
    window::{Next, Progress, WINDOW_MAX},
};
use crate::{Batch, Outcome, closing::lock, per_process::PerProcess};

/// Rings kept for the next transfer; more are made while more threads are at it.
const RINGS_KEPT: usize = 8;

static RINGS: PerProcess<Mutex<Vec<Ring>>> = PerProcess::new();

/// Moves a batch through a ring. `step` makes the plain system call for a
/// window of one run, where a ring has nothing to offer.
pub(crate) fn transfer<'a>(
    fd: BorrowedFd<'_>,
    batch: &Batch<'a>,
    mut step: impl FnMut(&mut crate::vector::Vector<'a>) -> io::Result<usize>,
) -> Outcome {
    let rings = RINGS.get_or_make(Mutex::default);
    let mut ring = None;
    let mut progress = Progress::new();
    let outcome = loop {
        progress.load(batch, WINDOW_MAX);
        if let Some(vector) = progress.only() {
            let result = result_of(step(vector));
            progress.complete(0, result);
        } else if progress.vectors().len() > 0 {
            let kept = ring.take().or_else(|| lock(rings).pop());
            match kept.map_or_else(|| Ring::new(WINDOW_MAX as u32), Ok) {
                Ok(kept) => ring = run_window(kept, fd, &mut progress),
                Err(error) => break progress.failed(error),
            }
        }
        if let Next::Finished(outcome) = progress.settle(batch) {
            break outcome;
        }
    };
    if let Some(ring) = ring {
        let mut rings = lock(rings);
        if rings.len() < RINGS_KEPT {
            rings.push(ring);
        }
    }
    outcome
}

/// As a ring would give it.
fn result_of(step: io::Result<usize>) -> i32 {
    match step {
        Ok(bytes) => i32::try_from(bytes).expect("one call moves less than 2 GiB"),
        Err(error) => -error.raw_os_error().unwrap_or(libc::EIO),
    }
}

/// Runs one window to its end; returns the ring if it is still good.
fn run_window(mut ring: Ring, fd: BorrowedFd<'_>, progress: &mut Progress<'_>) -> Option<Ring> {
    let runs = progress.vectors().len();
    for (tag, vector) in progress.vectors().enumerate() {
        // SAFETY: this function returns when each request has completed or
        // been withdrawn, and borrows what they name for as long.
        unsafe { ring.push(fd, vector, tag as u64, Pace::Inline) };
    }
    let mut completed = 0;
    while completed < runs {
        if let Err(error) = ring.submit_and_wait() {
            abandon(ring, progress, runs, completed, &error);
            return None;
        }
        while let Some(done) = ring.next() {
            progress.complete(done.tag as usize, done.result);
            completed += 1;
        }
    }
    Some(ring)
}

/// The ring failed: waits for what the kernel took, fails the rest.
fn abandon(
    mut ring: Ring,
    progress: &mut Progress<'_>,
    runs: usize,
    mut completed: usize,
    error: &io::Error,
) {
    let withdrawn = ring.withdraw();
    while completed < runs - withdrawn {
        let done = ring.poll();
        progress.complete(done.tag as usize, done.result);
        completed += 1;
    }
    for run in runs - withdrawn..runs {
        progress.complete(run, -error.raw_os_error().unwrap_or(libc::EIO));
    }
}
