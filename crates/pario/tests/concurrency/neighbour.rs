//! A program that knows nothing of this library and writes into the holes between the pieces
//! that ranks write.

use std::{fs, os::unix::fs::FileExt, path::Path, sync::Arc, thread, time::Duration};

use pario::{Basic, Datatype, Info, Result, View};
use pario_transport::Transport;

use crate::disjoint::Open;

/// Pieces of a call and the holes behind them.
pub(crate) const PIECE: u64 = 192;
const HOLE: u64 = 64;
/// Enough for a lease to pay off.
pub(crate) const PIECES: u64 = 2048;
const ROUNDS: u8 = 12;

pub(crate) fn view(comm: &dyn Transport) -> Result<View> {
    let byte = Datatype::basic(Basic::Byte);
    let piece = Datatype::contiguous(PIECE, &byte)?;
    let stride = (PIECE + HOLE) * u64::from(comm.size());
    let tile = Datatype::resized(&piece, 0, stride as i64)?;
    let first = u64::from(comm.rank().0) * (PIECE + HOLE);
    Ok(View::new(first, &byte, &tile))
}

/// Offsets of the holes between the pieces of all ranks.
fn holes(ranks: u32) -> impl Iterator<Item = u64> {
    (0..PIECES * u64::from(ranks)).map(|piece| piece * (PIECE + HOLE) + PIECE)
}

/// What a program does that opens the file now and then to write into the holes; returns the
/// first one that did not hold what was written to it last.
pub(crate) fn write_holes(path: &Path, ranks: u32, stop: impl Fn() -> bool) -> Option<u64> {
    let mut last = 0u8;
    let mut found = [0; HOLE as usize];
    while last == 0 || !stop() {
        let Ok(file) = fs::File::options().read(true).write(true).open(path) else {
            assert!(!stop(), "there never was a file");
            thread::yield_now();
            continue;
        };
        let next = last.wrapping_add(1).max(1);
        for hole in holes(ranks).step_by(37) {
            if last > 0 {
                file.read_exact_at(&mut found, hole).unwrap();
                if found != [last; HOLE as usize] {
                    return Some(hole);
                }
            }
            file.write_all_at(&[next; HOLE as usize], hole).unwrap();
        }
        last = next;
        drop(file);
        // Time for leases.
        thread::sleep(Duration::from_micros(500));
    }
    None
}

/// Rounds of collective and independent writes. Returns the first byte of this rank's that is
/// wrong.
pub(crate) fn write_pieces(comm: &Arc<dyn Transport>, open: Open<'_>) -> Result<Option<String>> {
    let file = open(comm, &Info::new())?;
    file.set_view(&view(&**comm)?)?;
    let mut found = vec![0; (PIECES * PIECE) as usize];
    let mut wrong = None;
    for round in 1..=ROUNDS {
        let data = vec![round; found.len()];
        match round % 4 {
            0 => drop(file.write_at(0, &data)?),
            1 => drop(file.iwrite_at(0, data)?.wait()?),
            2 => drop(file.iwrite_at_all(0, data)?.wait()?),
            _ => drop(file.write_at_all(0, &data)?),
        }
        comm.barrier()?;
        file.read_at(0, &mut found)?;
        let own = found.iter().position(|byte| *byte != round);
        wrong = wrong.or(own.map(|at| format!("byte {at} in round {round}")));
        comm.barrier()?;
    }
    file.close()?;
    Ok(wrong)
}
