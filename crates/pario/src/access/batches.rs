//! Batches of pieces for the driver, as used by direct and list access.

use std::{io, ops::Range};

use pario_driver::{Batch, Direction, LockMode, Outcome};

use super::{Job, Locking, span::Pieces};

/// The maximum number of pieces per batch in direct access: one contiguous
/// piece of the file may consist of many small pieces of memory.
const BATCH_PIECES_MAX: usize = 1024;

/// Where a batch ends.
#[derive(Clone, Copy)]
pub(super) enum Batching {
    /// At the end of each contiguous piece of the file.
    EachFilePiece,
    /// After this number of pieces.
    Pieces(usize),
}

impl Batching {
    fn is_full(self, batch: &Batch<'_>, end: u64, next: u64) -> bool {
        match self {
            Batching::EachFilePiece => batch.pieces().len() >= BATCH_PIECES_MAX || end != next,
            Batching::Pieces(most) => batch.pieces().len() >= most,
        }
    }
}

pub(super) fn run_batches(job: &Job<'_>, batching: Batching) -> Outcome {
    let mut batch = Batch::new(job.direction);
    let mut range = 0..0;
    let mut end = 0;
    let mut moved = 0;
    for piece in Pieces::new(&job.file, &job.memory) {
        if !batch.pieces().is_empty() && batching.is_full(&batch, end, piece.offset) {
            match move_batch(job, &batch, range.clone()) {
                Flow::Whole(bytes) => moved += bytes,
                Flow::Stopped(Outcome { bytes, error }) => {
                    return Outcome {
                        bytes: moved + bytes,
                        error,
                    };
                }
            }
            batch.clear();
        }
        end = piece.offset + piece.len;
        range = if batch.pieces().is_empty() {
            piece.offset..end
        } else {
            range.start.min(piece.offset)..range.end.max(end)
        };
        piece.push(&mut batch);
    }
    let Outcome { bytes, error } = match move_batch(job, &batch, range) {
        Flow::Whole(bytes) => Outcome { bytes, error: None },
        Flow::Stopped(outcome) => outcome,
    };
    Outcome {
        bytes: moved + bytes,
        error,
    }
}

enum Flow {
    Whole(u64),
    Stopped(Outcome),
}

fn move_batch(job: &Job<'_>, batch: &Batch<'_>, range: Range<u64>) -> Flow {
    if batch.bytes() == 0 {
        return Flow::Whole(0);
    }
    let lock = match lock_for_write(job, range) {
        Ok(lock) => lock,
        Err(error) => {
            return Flow::Stopped(Outcome {
                bytes: 0,
                error: Some(error),
            });
        }
    };
    let outcome = job.handle.transfer(batch);
    drop(lock);
    if outcome.error.is_none() && outcome.bytes == batch.bytes() {
        Flow::Whole(outcome.bytes)
    } else {
        Flow::Stopped(outcome)
    }
}

/// The lock that a write needs if other ranks may read-modify-write.
pub(super) fn lock_for_write(
    job: &Job<'_>,
    range: Range<u64>,
) -> io::Result<Option<pario_driver::RangeLock>> {
    match (job.direction, job.locking) {
        (Direction::Write, Locking::EachWrite) => {
            job.handle.lock(range, LockMode::Exclusive).map(Some)
        }
        _ => Ok(None),
    }
}
