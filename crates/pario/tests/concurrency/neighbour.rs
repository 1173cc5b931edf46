//! Programs that write into the holes between the pieces that ranks write.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use pario::{AccessMethod, Basic, Datatype, File, Info, Result, View};
use pario_driver::{CallAction, Interference, SystemCall};
use pario_transport::Transport;

use crate::{
    disjoint::Open,
    ways::{HOLE, Way},
};

const ROUNDS: u8 = 12;
/// From a hole of a neighbour to its next one.
const HOLES: usize = 37;

/// Hints with which the pieces of a [`Grid`] are rewritten on any machine, however busy, or stored where
/// they cannot be: by default the largest extent and the least number of pieces are measured.
pub(crate) fn info() -> Info {
    Info::from_pairs([
        ("pario_sieve_extent", "16384"),
        ("pario_stored_pieces", "4"),
    ])
    .unwrap()
}

/// Hints with which the records of a [`Grid`] are stored, never rewritten.
pub(crate) fn storing() -> Info {
    let mut info = info();
    info.set("pario_rmw", "never").unwrap();
    info
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
            piece: 256 - HOLE as u64,
            step: 256,
            stride: 256 * u64::from(ranks),
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

    /// The holes that one of the neighbours writes to.
    pub(crate) fn holes_of(&self, neighbour: usize) -> impl Iterator<Item = u64> {
        self.holes().skip(neighbour).step_by(HOLES)
    }

    /// The end of the last hole that is written to.
    pub(crate) fn end(&self) -> usize {
        self.holes().last().unwrap() as usize + HOLE
    }
}

/// What a program does that opens the file now and then to write into its holes; returns the
/// first one that did not hold what was written to it last. Calls `begun` once it has written to
/// all of them.
pub(crate) fn write_holes(
    open: impl Fn() -> io::Result<Box<dyn Way>>,
    (grid, neighbour): (&Grid, usize),
    begun: impl FnOnce(),
    stop: impl Fn() -> bool,
) -> Option<u64> {
    let mut begun = Some(begun);
    let mut last = 0u8;
    loop {
        let is_over = stop();
        let Ok(file) = open() else {
            assert!(!is_over, "there never was a file");
            thread::yield_now();
            continue;
        };
        let next = last.wrapping_add(1).max(1);
        for hole in grid.holes_of(neighbour) {
            if last > 0 && file.read(hole) != [last; HOLE] {
                return Some(hole);
            }
            file.write(hole, &[next; HOLE]);
        }
        drop(file);
        if is_over && last > 0 {
            return None;
        }
        last = next;
        begun.take().into_iter().for_each(|begun| begun());
        // Time for leases.
        thread::sleep(Duration::from_micros(500));
    }
}

/// Counts the stores that the kernel makes.
#[derive(Debug, Default)]
pub(crate) struct StoreCount(AtomicUsize);

impl StoreCount {
    pub(crate) fn get(&self) -> usize {
        self.0.load(Relaxed)
    }
}

impl Interference for StoreCount {
    fn before(&self, call: SystemCall, _bytes: usize) -> CallAction {
        if call == SystemCall::Store {
            self.0.fetch_add(1, Relaxed);
        }
        CallAction::Proceed
    }
}

/// How pieces must be written, where that is certain.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "no program uses all of it")]
pub(crate) enum Expected {
    Anything,
    /// Rewritten, as long as the view remains the same.
    Rewrites,
    /// Stored, at least once by each process.
    Stores(Arc<StoreCount>),
}

/// What ranks do beside neighbours.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) grid: Grid,
    pub(crate) info: Info,
    pub(crate) expected: Expected,
}

impl Work {
    pub(crate) fn new(grid: Grid, info: Info) -> Work {
        let expected = Expected::Anything;
        Work {
            grid,
            info,
            expected,
        }
    }

    /// What is unexpected about a write through the first view.
    fn objection(&self, file: &File, data: &[u8]) -> Result<Option<String>> {
        let selection = file.explain_write_at(0, data)?;
        let is_expected = match self.expected {
            Expected::Rewrites => selection.method() == AccessMethod::Sieve,
            Expected::Anything | Expected::Stores(_) => true,
        };
        Ok((!is_expected).then(|| selection.to_string()))
    }

    /// What was unexpected in the end.
    fn last_objection(&self) -> Option<String> {
        match &self.expected {
            Expected::Stores(stores) if stores.get() == 0 => Some("nothing was stored".to_owned()),
            _ => None,
        }
    }
}

/// Rounds of collective and independent writes, all but the first beside neighbours: they `have_begun`
/// by then. The view is set once for one half of the rounds and again for each of the others. Returns
/// what is wrong: the first byte of this rank's, or what was not [expected](Work::expected).
pub(crate) fn write_pieces(
    comm: &Arc<dyn Transport>,
    open: Open<'_>,
    work: &Work,
    have_begun: &dyn Fn() -> bool,
) -> Result<Option<String>> {
    let file = open(comm, &work.info)?;
    let view = work.grid.view(&**comm)?;
    file.set_view(&view)?;
    let mut found = vec![0; work.grid.bytes()];
    let mut wrong = None;
    for round in 1..=ROUNDS {
        let data = vec![round; found.len()];
        if round > ROUNDS / 2 {
            file.set_view(&View::bytes())?;
            file.set_view(&view)?;
        } else {
            wrong = wrong.or(work.objection(&file, &data)?);
        }
        write_by_turns(&file, round, data)?;
        comm.barrier()?;
        file.read_at(0, &mut found)?;
        let own = found.iter().position(|byte| *byte != round);
        wrong = wrong.or(own.map(|at| format!("byte {at} in round {round}")));
        while !have_begun() {
            thread::sleep(Duration::from_micros(100));
        }
        comm.barrier()?;
    }
    file.close()?;
    Ok(wrong.or(work.last_objection()))
}

/// Writes in one of four ways, which rounds use in turn.
pub(crate) fn write_by_turns(file: &File, round: u8, data: Vec<u8>) -> Result<()> {
    match round % 4 {
        0 => drop(file.write_at(0, &data)?),
        1 => drop(file.iwrite_at(0, data)?.wait()?),
        2 => drop(file.iwrite_at_all(0, data)?.wait()?),
        _ => drop(file.write_at_all(0, &data)?),
    }
    Ok(())
}
