//! Buffered transfers: one vectored call for each contiguous run.

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
    let mut cursor = Cursor::default();
    let mut vector = Vector::new(batch.direction());
    let mut moved = 0;
    while vector.load(batch, cursor) {
        match step(calls, fd, &mut vector) {
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

/// Reads a batch from the page cache. `None` if some of it is not there, if the
/// file ends before it, or if the file system cannot tell: a read that waits
/// finds out.
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

/// Moves some of the vector, at least one byte; zero is the end of the file.
/// The batch it comes from is addressable.
pub(super) fn step(
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
