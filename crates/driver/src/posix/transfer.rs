//! Buffered transfers: one vectored call per contiguous run.

use std::{io, os::fd::BorrowedFd};

use super::{
    calls::{Calls, SystemCall},
    sys,
};
use crate::{
    Batch, Direction, OnePiece, Outcome,
    vector::{CALL_BYTES_MAX, Cursor, Vector},
};

/// Moves a batch through one descriptor.
pub(super) fn run(calls: &Calls, fd: BorrowedFd<'_>, batch: &Batch<'_>) -> Outcome {
    match batch.only() {
        Some(one) => run_one(calls, fd, &one),
        None => run_steps(batch, |vector| step(calls, fd, vector)),
    }
}

/// Moves one piece, which needs no vector.
#[inline]
pub(super) fn run_one(calls: &Calls, fd: BorrowedFd<'_>, one: &OnePiece<'_>) -> Outcome {
    let (kind, at_end) = ends(one.direction());
    let len = one.piece().len;
    let mut moved = 0;
    if let Err(error) = prepare(calls, fd, one.direction(), one.piece().offset, len) {
        return Outcome::failed(0, error);
    }
    while moved < len {
        let bytes = (len - moved).min(CALL_BYTES_MAX);
        let result = calls.make(kind, bytes, |limit| {
            sys::transfer_one(fd, one, moved..moved + limit)
        });
        match result {
            Ok(0) => match at_end {
                None => break,
                Some(stuck) => return Outcome::failed(moved as u64, stuck.into()),
            },
            Ok(bytes) => moved += bytes,
            Err(error) => return Outcome::failed(moved as u64, error),
        }
    }
    Outcome::moved(moved as u64)
}

/// What has to precede a transfer.
#[inline]
fn prepare(
    calls: &Calls,
    fd: BorrowedFd<'_>,
    direction: Direction,
    offset: u64,
    len: usize,
) -> io::Result<()> {
    match direction {
        Direction::Read => calls.before_read(fd, offset + len as u64),
        Direction::Write => Ok(()),
    }
}

/// The system call of a direction, and the error if it moves nothing: a read is at the
/// end of the file.
fn ends(direction: Direction) -> (SystemCall, Option<io::ErrorKind>) {
    match direction {
        Direction::Read => (SystemCall::Read, None),
        Direction::Write => (SystemCall::Write, Some(io::ErrorKind::WriteZero)),
    }
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
    let (kind, at_end) = ends(vector.direction());
    prepare(
        calls,
        fd,
        vector.direction(),
        vector.offset(),
        vector.bytes(),
    )?;
    let moved = calls.make(kind, vector.bytes(), |limit| {
        vector.shorten(limit);
        sys::transfer(fd, vector)
    })?;
    match (moved, at_end) {
        (0, Some(stuck)) => Err(stuck.into()),
        _ => Ok(moved),
    }
}
