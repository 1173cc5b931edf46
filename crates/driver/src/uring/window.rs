//! Runs of a batch that are in flight together.

use std::io;

use crate::{
    Batch, Direction, Outcome,
    vector::{Cursor, Vector},
};

/// Maximum number of runs of one batch in flight.
pub(super) const WINDOW_MAX: usize = 32;

/// The progress of a batch through a ring, in windows of runs. Runs in a window
/// complete in any order; only the prefix up to the first short run counts, and
/// the next window starts after it.
#[derive(Debug)]
pub(super) struct Progress<'a> {
    cursor: Cursor,
    moved: u64,
    runs: Vec<Run<'a>>,
    /// Number of `runs` in this window; the rest are spare allocations.
    used: usize,
}

#[derive(Debug)]
struct Run<'a> {
    vector: Vector<'a>,
    /// Set by the completion.
    result: i32,
}

/// What follows a window.
pub(super) enum Next {
    /// Another window.
    Window,
    /// Nothing: the transfer is complete.
    Finished(Outcome),
}

impl<'a> Progress<'a> {
    pub(super) fn new() -> Self {
        Progress {
            cursor: Cursor::default(),
            moved: 0,
            runs: Vec::new(),
            used: 0,
        }
    }

    /// Loads the next window of up to `limit` runs; none if everything has been
    /// moved.
    ///
    /// The runs of a window that reads ascend: all runs past the end of the
    /// file are then empty, and memory after the prefix stays untouched.
    pub(super) fn load(&mut self, batch: &Batch<'a>, limit: usize) {
        let mut cursor = self.cursor;
        let mut end = 0;
        self.used = 0;
        while self.used < limit.min(WINDOW_MAX) {
            if self.used == self.runs.len() {
                self.runs.push(Run {
                    vector: Vector::new(batch.direction()),
                    result: 0,
                });
            }
            let vector = &mut self.runs[self.used].vector;
            if !vector.load(batch, cursor) {
                break;
            }
            let descends = vector.offset() < end;
            if descends && batch.direction() == Direction::Read {
                break;
            }
            end = vector.offset() + vector.bytes() as u64;
            cursor.advance(batch, vector.bytes());
            self.used += 1;
        }
    }

    /// The runs of the window.
    pub(super) fn vectors(&self) -> impl ExactSizeIterator<Item = &Vector<'a>> {
        self.runs[..self.used].iter().map(|run| &run.vector)
    }

    /// The run, if the window has only one.
    pub(super) fn only(&mut self) -> Option<&mut Vector<'a>> {
        (self.used == 1).then(|| &mut self.runs[0].vector)
    }

    /// Records the result of a run: a byte count or a negative `errno`.
    pub(super) fn complete(&mut self, run: usize, result: i32) {
        self.runs[run].result = result;
    }

    /// Counts the prefix after all runs of a window have completed.
    pub(super) fn settle(&mut self, batch: &Batch<'a>) -> Next {
        if self.used == 0 {
            return Next::Finished(Outcome::moved(self.moved));
        }
        for run in &self.runs[..self.used] {
            let moved = match usize::try_from(run.result) {
                Ok(0) => return Next::Finished(self.stopped(batch.direction())),
                Ok(bytes) => bytes,
                Err(_) if matches!(-run.result, libc::EINTR | libc::EAGAIN) => return Next::Window,
                Err(_) => {
                    let error = io::Error::from_raw_os_error(-run.result);
                    return Next::Finished(Outcome::failed(self.moved, error));
                }
            };
            self.cursor.advance(batch, moved);
            self.moved += moved as u64;
            if moved < run.vector.bytes() {
                return Next::Window;
            }
        }
        if self.moved == batch.bytes() {
            return Next::Finished(Outcome::moved(self.moved));
        }
        Next::Window
    }

    /// The outcome if the transfer cannot continue.
    pub(super) fn failed(&self, error: io::Error) -> Outcome {
        Outcome::failed(self.moved, error)
    }

    /// The outcome if a run moves nothing.
    fn stopped(&self, direction: Direction) -> Outcome {
        match direction {
            Direction::Read => Outcome::moved(self.moved),
            Direction::Write => Outcome::failed(self.moved, io::ErrorKind::WriteZero.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Completes a window with these results.
    fn settle<'a>(
        progress: &mut Progress<'a>,
        batch: &Batch<'a>,
        results: &[i32],
    ) -> Option<Outcome> {
        progress.load(batch, WINDOW_MAX);
        assert_eq!(progress.vectors().len(), results.len());
        for (run, &result) in results.iter().enumerate() {
            progress.complete(run, result);
        }
        match progress.settle(batch) {
            Next::Window => None,
            Next::Finished(outcome) => Some(outcome),
        }
    }

    #[test]
    fn short_and_interrupted_runs_are_continued_from_the_prefix() {
        let mut memory = [0; 30];
        let pieces = [(0, 0, 10), (100, 10, 10), (200, 20, 10)];
        let batch = Batch::gather(Direction::Write, &mut memory, &pieces);
        let mut progress = Progress::new();
        assert!(settle(&mut progress, &batch, &[10, 4, 10]).is_none());
        progress.load(&batch, WINDOW_MAX);
        assert_eq!(progress.vectors().next().unwrap().offset(), 104);
        assert!(settle(&mut progress, &batch, &[-libc::EINTR, 10]).is_none());
        assert!(settle(&mut progress, &batch, &[6, -libc::EAGAIN]).is_none());
        let outcome = settle(&mut progress, &batch, &[10]).unwrap();
        assert_eq!((outcome.bytes, outcome.error.is_none()), (30, true));
    }

    #[test]
    fn an_error_counts_the_prefix_before_it() {
        let mut memory = [0; 20];
        let batch = Batch::gather(Direction::Write, &mut memory, &[(0, 0, 10), (50, 10, 10)]);
        let outcome = settle(&mut Progress::new(), &batch, &[10, -libc::ENOSPC]).unwrap();
        assert_eq!(outcome.bytes, 10);
        assert_eq!(outcome.error.unwrap().raw_os_error(), Some(libc::ENOSPC));
    }

    #[test]
    fn descending_reads_take_one_window_each() {
        let mut memory = [0; 20];
        let batch = Batch::gather(Direction::Read, &mut memory, &[(50, 0, 10), (0, 10, 10)]);
        let mut progress = Progress::new();
        assert!(settle(&mut progress, &batch, &[10]).is_none());
        let outcome = settle(&mut progress, &batch, &[0]).unwrap();
        assert_eq!((outcome.bytes, outcome.error.is_none()), (10, true));
    }
}
