//! A blocking transfer of a batch through a ring.
//!
//! This file may contain `unsafe`: it pushes requests, and keeps what they refer
//! to alive by not returning before they complete.
#![allow(unsafe_code)]

use std::{io, os::fd::BorrowedFd, sync::Mutex};

use super::{
    ring::{Execution, Ring},
    window::{Next, Progress, WINDOW_MAX},
};
use crate::{Batch, Outcome, closing::lock, per_process::PerProcess, vector::Vector};

/// Rings that are not in use.
type IdleRings = Vec<Box<Ring>>;

/// Number of idle rings kept; more are created while more threads transfer.
const RINGS_KEPT: usize = 8;

static RINGS: PerProcess<Mutex<IdleRings>> = PerProcess::new();

/// Moves a batch through a ring. `step` makes the plain system call where a
/// window has only one run, for which a ring has no advantage, and for all runs
/// if no ring is available.
pub(crate) fn transfer<'a>(
    fd: BorrowedFd<'_>,
    batch: &Batch<'a>,
    step: impl FnMut(&mut Vector<'a>) -> io::Result<usize>,
) -> Outcome {
    let mut loan = BorrowedRing::Untried;
    let outcome = transfer_with(&mut loan, fd, batch, step);
    loan.end();
    outcome
}

fn transfer_with<'a>(
    loan: &mut BorrowedRing,
    fd: BorrowedFd<'_>,
    batch: &Batch<'a>,
    mut step: impl FnMut(&mut Vector<'a>) -> io::Result<usize>,
) -> Outcome {
    let mut progress = Progress::new();
    loop {
        progress.load(batch, loan.window());
        if let Some(vector) = progress.only() {
            match step(vector) {
                Ok(bytes) => progress.complete(0, result_of(bytes)),
                Err(error) => return progress.failed(error),
            }
        } else if progress.vectors().len() > 0 {
            let Some(ring) = loan.ring() else { continue };
            if run_window(ring, fd, &mut progress).is_err() {
                *loan = BorrowedRing::Impossible;
            }
        }
        if let Next::Finished(outcome) = progress.settle(batch) {
            return outcome;
        }
    }
}

/// A byte count in the form of a ring's result.
fn result_of(bytes: usize) -> i32 {
    i32::try_from(bytes).expect("one call moves less than 2 GiB")
}

/// A ring borrowed for one transfer.
enum BorrowedRing {
    Untried,
    Lent(Box<Ring>),
    Impossible,
}

impl BorrowedRing {
    /// How many runs to move at a time.
    fn window(&self) -> usize {
        match self {
            BorrowedRing::Untried | BorrowedRing::Lent(_) => WINDOW_MAX,
            BorrowedRing::Impossible => 1,
        }
    }

    fn ring(&mut self) -> Option<&mut Ring> {
        if let BorrowedRing::Untried = self {
            let kept = lock(RINGS.get_or_make(Mutex::default)).pop();
            *self = match kept.map_or_else(|| Ring::new(WINDOW_MAX as u32).map(Box::new), Ok) {
                Ok(ring) => BorrowedRing::Lent(ring),
                Err(_) => BorrowedRing::Impossible,
            };
        }
        match self {
            BorrowedRing::Lent(ring) => Some(ring),
            BorrowedRing::Untried | BorrowedRing::Impossible => None,
        }
    }

    /// Returns a ring that still works.
    fn end(self) {
        if let BorrowedRing::Lent(ring) = self {
            let mut rings = lock(RINGS.get_or_make(Mutex::default));
            if rings.len() < RINGS_KEPT {
                rings.push(ring);
            }
        }
    }
}

/// Runs one window to completion. If the ring fails, runs that it had not taken
/// are to be retried.
fn run_window(ring: &mut Ring, fd: BorrowedFd<'_>, progress: &mut Progress<'_>) -> io::Result<()> {
    let runs = progress.vectors().len();
    for (tag, vector) in progress.vectors().enumerate() {
        // SAFETY: this function returns only when each request has completed or
        // been withdrawn, and it borrows what they refer to until then.
        unsafe { ring.push(fd, vector, tag as u64, Execution::Inline) };
    }
    let mut completed = 0;
    while completed < runs {
        if let Err(error) = ring.submit_and_wait() {
            abandon(ring, progress, runs, completed);
            return Err(error);
        }
        while let Some(done) = ring.next() {
            progress.complete(done.tag as usize, done.result);
            completed += 1;
        }
    }
    Ok(())
}

/// Waits for the requests that the kernel took from a failed ring.
fn abandon(ring: &mut Ring, progress: &mut Progress<'_>, runs: usize, mut completed: usize) {
    let taken = runs - ring.withdraw();
    while completed < taken {
        let done = ring.poll();
        progress.complete(done.tag as usize, done.result);
        completed += 1;
    }
    for run in taken..runs {
        progress.complete(run, -libc::EAGAIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Direction;
    use std::{cell::Cell, fs::File, os::fd::AsFd, os::unix::fs::FileExt};

    /// The program has replaced the ring's descriptor.
    #[test]
    fn a_ring_that_fails_is_replaced_by_plain_calls() {
        let file = tempfile::tempfile().unwrap();
        let mut memory = *b"ABCDEF";
        let places = [(0, 0, 2), (10, 2, 2), (20, 4, 2)];
        let batch = Batch::gather(Direction::Write, &mut memory, &places);

        let sabotaged = || {
            let ring = Ring::new(8).unwrap();
            ring.replace_descriptor(File::open("/dev/null").unwrap().as_fd());
            Box::new(ring)
        };
        let mut progress = Progress::new();
        progress.load(&batch, WINDOW_MAX);
        assert!(run_window(&mut sabotaged(), file.as_fd(), &mut progress).is_err());
        assert!(matches!(progress.settle(&batch), Next::Window));

        let mut loan = BorrowedRing::Lent(sabotaged());
        let steps = Cell::new(0);
        let outcome = transfer_with(&mut loan, file.as_fd(), &batch, |vector| {
            steps.set(steps.get() + 1);
            crate::posix::sys::transfer(file.as_fd(), vector)
        });
        assert_eq!(outcome.into_result().unwrap(), 6);
        assert_eq!(steps.get(), 3);
        assert!(matches!(loan, BorrowedRing::Impossible));
        let mut bytes = [0; 22];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(
            (&bytes[..2], &bytes[10..12], &bytes[20..]),
            (&b"AB"[..], &b"CD"[..], &b"EF"[..])
        );
    }
}
