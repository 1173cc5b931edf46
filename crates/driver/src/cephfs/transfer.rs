//! Transfers: one vectored call per contiguous run, those of different servers at
//! the same time.

use std::io;

use super::library::OpenFile;
use crate::{Batch, Direction, Outcome, Placement, by_server, posix::run_steps, vector::Vector};

/// Maximum number of bytes per call. The library copies what it writes.
const CALL_BYTES_MAX: usize = 32 << 20;

/// Moves a batch.
pub(super) fn run(file: &OpenFile, placement: Option<&Placement>, batch: &Batch<'_>) -> Outcome {
    match placement {
        Some(placement) => by_server::transfer(placement, batch, |run| in_order(file, run)),
        None => in_order(file, batch),
    }
}

fn in_order(file: &OpenFile, batch: &Batch<'_>) -> Outcome {
    run_steps(batch, |vector| step(file, vector))
}

/// Moves some of the vector, at least one byte; zero means end of file.
fn step(file: &OpenFile, vector: &mut Vector<'_>) -> io::Result<usize> {
    vector.shorten(CALL_BYTES_MAX);
    let moved = uninterrupted(file, vector)?;
    match vector.direction() {
        _ if moved > 0 => Ok(moved),
        Direction::Write => Err(io::ErrorKind::WriteZero.into()),
        Direction::Read => read_again(file, vector),
    }
}

fn uninterrupted(file: &OpenFile, vector: &Vector<'_>) -> io::Result<usize> {
    loop {
        match file.transfer(vector) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// A read that returned nothing has reached the end only if the metadata server
/// agrees: another client may have extended the file.
fn read_again(file: &OpenFile, vector: &Vector<'_>) -> io::Result<usize> {
    const TRIES: u32 = 3;
    for _ in 0..TRIES {
        if file.inode().attributes(file.user())?.size <= vector.offset() {
            return Ok(0);
        }
        let moved = uninterrupted(file, vector)?;
        if moved > 0 {
            return Ok(moved);
        }
    }
    let message = format!(
        "CephFS returns no data at offset {}, which is before the end of the file",
        vector.offset()
    );
    Err(io::Error::new(io::ErrorKind::UnexpectedEof, message))
}
