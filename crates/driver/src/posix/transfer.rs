//! Buffered transfers: one vectored call per contiguous run.

use std::{io, os::fd::BorrowedFd};

use super::{
    calls::{Calls, SystemCall},
    sys,
};
use crate::{
    Batch, Direction, Outcome,
    vector::{Cursor, Vector},
};

/// Moves a batch through one descriptor.
pub(super) fn run(calls: &Calls, fd: BorrowedFd<'_>, batch: &Batch<'_>) -> Outcome {
    run_steps(batch, |vector| step(calls, fd, vector))
}

/// Moves a batch run by run. `step` moves some bytes of a run; zero means end
/// of file.
pub(crate) fn run_steps<'a>(
    batch: &Batch<'a>,
    mut step: impl FnMut(&mut Vector<'a>) -> io::Result<usize>,
) -> Outcome {
    let mut cursor = Cursor::default();
    let mut vector = Vector::new(batch.direction());
    let mut moved = 0;
    while vector.load(batch, cursor) {
        match step(&mut vector) {
            Ok(0) => break,
            Ok(bytes) => {
                cursor.advance(batch, bytes);
                moved += bytes as u64;
            }
            Err(error) => return Outcome::failed(moved, error),
        }
    }
    Outcome::moved(moved)
}

/// Reads a batch from the page cache. `None` if part of it is not cached, if
/// the file ends before it, or if the file system does not support the query; a
/// blocking read then decides.
pub(super) fn read_cached(fd: BorrowedFd<'_>, batch: &Batch<'_>) -> Option<Outcome> {
    let mut cursor = Cursor::default();
    let mut vector = Vector::new(batch.direction());
    while vector.load(batch, cursor) {
        let bytes = sys::read_cached(fd, &vector).ok()?;
        if bytes < vector.bytes() {
            return None;
        }
        cursor.advance(batch, bytes);
    }
    Some(Outcome::moved(batch.bytes()))
}

/// Moves some of the vector, at least one byte; zero means end of file. The
/// batch that it comes from must be addressable.
pub(crate) fn step(
    calls: &Calls,
    fd: BorrowedFd<'_>,
    vector: &mut Vector<'_>,
) -> io::Result<usize> {
    let (kind, stuck) = match vector.direction() {
        Direction::Read => (SystemCall::Read, Ok(0)),
        Direction::Write => (SystemCall::Write, Err(io::ErrorKind::WriteZero.into())),
    };
    let moved = calls.make(kind, vector.bytes(), |limit| {
        vector.shorten(limit);
        sys::transfer(fd, vector)
    })?;
    if moved == 0 { stuck } else { Ok(moved) }
}
