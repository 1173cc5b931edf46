//! A program that knows nothing of this library and writes into the holes between the pieces
//! that ranks write.

use std::{fs, os::unix::fs::FileExt, path::Path, sync::Arc, thread, time::Duration};

use pario::{Basic, Datatype, Info, Result, View};
use pario_transport::Transport;

use crate::disjoint::Open;

const HOLE: u64 = 64;
const ROUNDS: u8 = 12;

/// Hints with which the pieces of a [`Grid`] are rewritten on any machine, however busy: by default the
/// largest extent is measured.
pub(crate) fn info() -> Info {
    Info::from_pairs([("pario_sieve_extent", "16384")]).unwrap()
}

/// Where the pieces of ranks and the holes between them are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    ranks: u32,
    piece: u64,
    /// From a rank's piece to that of the next rank.
    step: u64,
    /// From a rank's piece to its next one.
    stride: u64,
    /// Enough for a lease to pay off.
    pieces: u64,
}

impl Grid {
    /// Parts of blocks, with a hole behind each.
    pub(crate) fn records(ranks: u32) -> Grid {
        Grid {
            ranks,
            piece: 192,
            step: 192 + HOLE,
            stride: (192 + HOLE) * u64::from(ranks),
            pieces: 2048,
        }
    }

    /// Whole blocks, with a block between those of the last rank and the first, so that the ranks fill most of the
    /// file and each writes often enough.
    pub(crate) fn blocks(ranks: u32) -> Grid {
        let piece = 3 / u64::from(ranks) * 4096;
        Grid {
            ranks,
            piece,
            step: piece,
            stride: 4 * 4096,
            pieces: 256,
        }
    }

    /// The size of a rank's data.
    pub(crate) fn bytes(&self) -> usize {
        (self.pieces * self.piece) as usize
    }

    pub(crate) fn view(&self, comm: &dyn Transport) -> Result<View> {
        let byte = Datatype::basic(Basic::Byte);
        let piece = Datatype::contiguous(self.piece, &byte)?;
        let tile = Datatype::resized(&piece, 0, self.stride as i64)?;
        let first = u64::from(comm.rank().0) * self.step;
        Ok(View::new(first, &byte, &tile))
    }

    /// Offsets of the holes between the pieces of all ranks.
    pub(crate) fn holes(&self) -> impl Iterator<Item = u64> {
        let grid = *self;
        let last = u64::from(grid.ranks) - 1;
        let is_before_hole = move |rank: &u64| *rank == last || grid.step > grid.piece;
        (0..grid.pieces).flat_map(move |piece| {
            let ranks = (0..=last).filter(is_before_hole);
            ranks.map(move |rank| piece * grid.stride + rank * grid.step + grid.piece)
        })
    }
}

/// What a program does that opens the file now and then to write into the holes; returns the
/// first one that did not hold what was written to it last.
pub(crate) fn write_holes(path: &Path, grid: &Grid, stop: impl Fn() -> bool) -> Option<u64> {
    let mut last = 0u8;
    let mut found = [0; HOLE as usize];
    while last == 0 || !stop() {
        let Ok(file) = fs::File::options().read(true).write(true).open(path) else {
            assert!(!stop(), "there never was a file");
            thread::yield_now();
            continue;
        };
        let next = last.wrapping_add(1).max(1);
        for hole in grid.holes().step_by(37) {
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
pub(crate) fn write_pieces(
    comm: &Arc<dyn Transport>,
    open: Open<'_>,
    grid: &Grid,
) -> Result<Option<String>> {
    let file = open(comm, &info())?;
    file.set_view(&grid.view(&**comm)?)?;
    let mut found = vec![0; grid.bytes()];
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
