//! Atomic mode: ranks write and read overlapping, scattered cells of a file
//! at will, and the checker must find a serial order for it all.

use std::{ops::Range, sync::Arc};

use pario::{Atomicity, Basic, Datatype, File, Info, Result, Source, Target, View};
use pario_transport::{Rank, Transport};

use crate::{
    disjoint::Open,
    serial::{Access, History, Stamp, from_wire, stamps, to_wire},
};

pub(crate) const CELLS: usize = 12;
const CELL_BYTES: usize = 8;
/// Cells lie up to this far apart, so that some share a page and others don't.
const GAP_MAX: u64 = 3000;
pub(crate) const ACCESSES: u64 = 4;

/// Where the cells of a file are.
pub(crate) struct Cells {
    offsets: Vec<u64>,
}

/// What one round is made of, but for what each rank draws itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// Each rank does as it likes.
    Independent,
    /// The ranks make the same collective calls, each with its own cells.
    Collective,
}

impl Cells {
    pub(crate) fn new(rng: &mut fastrand::Rng) -> Cells {
        let mut at = 0;
        let offsets = (0..CELLS).map(|_| {
            let gap = if rng.bool() { 0 } else { rng.u64(0..GAP_MAX) };
            at += gap + CELL_BYTES as u64;
            at - CELL_BYTES as u64
        });
        Cells {
            offsets: offsets.collect(),
        }
    }

    pub(crate) fn end(&self) -> usize {
        self.offsets[CELLS - 1] as usize + CELL_BYTES
    }

    pub(crate) fn view(&self, chosen: &[usize]) -> Result<View> {
        let byte = Datatype::basic(Basic::Byte);
        let block = |cell: &usize| (CELL_BYTES as u64, self.offsets[*cell] as i64);
        let blocks: Vec<_> = chosen.iter().map(block).collect();
        Ok(View::new(0, &byte, &Datatype::hindexed(&blocks, &byte)?))
    }

    /// What they hold, read while nothing else happens.
    pub(crate) fn stamps(&self, file: &File) -> Result<Vec<Stamp>> {
        let mut bytes = vec![0; self.end()];
        file.read_at(0, &mut bytes)?;
        let cell = |offset: &u64| &bytes[*offset as usize..][..CELL_BYTES];
        Ok(stamps(
            &self
                .offsets
                .iter()
                .flat_map(cell)
                .copied()
                .collect::<Vec<_>>(),
        ))
    }
}

/// What a rank plays with.
struct Player<'a> {
    comm: &'a Arc<dyn Transport>,
    cells: Cells,
    file: File,
    /// For looks at the whole while nothing happens.
    plain: File,
    seed: u64,
    /// Draws the same on all ranks.
    shared: fastrand::Rng,
    own: fastrand::Rng,
}

/// Rounds of concurrent accesses in the given mode. Returns, on all ranks, the
/// first round that no serial order explains.
pub(crate) fn work(
    comm: &Arc<dyn Transport>,
    open: Open<'_>,
    info: &Info,
    atomicity: Atomicity,
    (seed, rounds): (u64, u64),
) -> Result<Option<String>> {
    let mut shared = fastrand::Rng::with_seed(seed);
    let own = seed ^ (u64::from(comm.rank().0) + 1) << 32;
    let mut player = Player {
        comm,
        cells: Cells::new(&mut shared),
        file: open(comm, info)?,
        plain: open(comm, &Info::new())?,
        seed,
        shared,
        own: fastrand::Rng::with_seed(own),
    };
    player.plain.set_size(player.cells.end() as u64)?;
    player.file.set_atomicity(atomicity)?;
    let mut finding = None;
    for round in 0..rounds {
        finding = player.round(round)?;
        if finding.is_some() {
            break;
        }
    }
    player.file.close()?;
    player.plain.close()?;
    Ok(finding)
}

impl Player<'_> {
    /// One round. Setting the view and the exchange of what was done are the
    /// moments at which no access is under way; rank 0 looks at them.
    fn round(&mut self, round: u64) -> Result<Option<String>> {
        let judge = self.comm.rank() == Rank(0);
        let before = if judge {
            self.cells.stamps(&self.plain)?
        } else {
            Vec::new()
        };
        let accesses = self.accesses(round)?;
        let told = self.comm.all_gather(&to_wire(&accesses))?;
        let mut finding = String::new();
        if judge {
            let history = History {
                before,
                ranks: told.iter().map(|wire| from_wire(wire)).collect(),
                after: self.cells.stamps(&self.plain)?,
            };
            if history.serial_order().is_none() {
                finding = format!("seed {}, round {round}: {history:?}", self.seed);
            }
        }
        let finding = self.comm.broadcast(Rank(0), finding.into_bytes())?;
        let finding = String::from_utf8_lossy(&finding).into_owned();
        Ok(Some(finding).filter(|finding| !finding.is_empty()))
    }

    fn accesses(&mut self, round: u64) -> Result<Vec<Access>> {
        let kind = match self.shared.u8(0..4) {
            0 => Round::Collective,
            _ => Round::Independent,
        };
        let count = self.own.usize(1..=CELLS);
        let mut chosen = self.own.choose_multiple(0..CELLS, count);
        chosen.sort_unstable();
        self.file.set_view(&self.cells.view(&chosen)?)?;
        let mut accesses = Vec::new();
        for number in 0..ACCESSES {
            let writes = match kind {
                Round::Independent => self.own.bool(),
                Round::Collective => self.shared.bool(),
            };
            let (one, other) = (self.own.usize(0..count), self.own.usize(0..count));
            let part = one.min(other)..one.max(other) + 1;
            let cells = chosen[part.clone()].to_vec();
            accesses.push(if writes {
                let stamp = stamp(self.seed, round, self.comm.rank(), number);
                write(&self.file, kind, part, stamp, &mut self.own)?;
                Access::Write { cells, stamp }
            } else {
                let seen = read(&self.file, kind, part, &mut self.own)?;
                Access::Read { cells, seen }
            });
        }
        Ok(accesses)
    }
}

/// A stamp that no other write has, and whose bytes differ from those of
/// others: half of one and half of another is neither.
pub(crate) fn stamp(seed: u64, round: u64, rank: Rank, number: u64) -> Stamp {
    let name = ((seed << 32 | round) << 8 | u64::from(rank.0)) << 8 | (number + 1);
    fastrand::Rng::with_seed(name).u64(1..)
}

/// Memory in which cells lie apart, to have them gathered and scattered.
fn spread() -> Result<Datatype> {
    let byte = Datatype::basic(Basic::Byte);
    let cell = Datatype::contiguous(CELL_BYTES as u64, &byte)?;
    Ok(Datatype::resized(&cell, 0, 2 * CELL_BYTES as i64)?)
}

pub(crate) fn write(
    file: &File,
    kind: Round,
    part: Range<usize>,
    stamp: Stamp,
    rng: &mut fastrand::Rng,
) -> Result<()> {
    let (at, count) = ((part.start * CELL_BYTES) as u64, part.len());
    let dense = vec![stamp.to_le_bytes(); count].concat();
    let apart = vec![[stamp.to_le_bytes(), [0; CELL_BYTES]].concat(); count].concat();
    let moved = match (kind, rng.u8(0..3)) {
        (Round::Collective, _) => file.write_at_all(at, &dense)?,
        (_, 0) => file.iwrite_at(at, dense.clone())?.wait()?.0,
        (_, 1) => file.write_at(at, Source::typed(&apart, count as u64, &spread()?)?)?,
        _ => file.write_at(at, &dense)?,
    };
    assert_eq!(moved.bytes(), dense.len() as u64);
    Ok(())
}

pub(crate) fn read(
    file: &File,
    kind: Round,
    part: Range<usize>,
    rng: &mut fastrand::Rng,
) -> Result<Vec<Stamp>> {
    let (at, count) = ((part.start * CELL_BYTES) as u64, part.len());
    let mut dense = vec![0; count * CELL_BYTES];
    let moved = match (kind, rng.u8(0..3)) {
        (Round::Collective, _) => file.read_at_all(at, &mut dense)?,
        (_, 0) => {
            let (status, bytes) = file.iread_at(at, dense)?.wait()?;
            dense = bytes;
            status
        }
        (_, 1) => {
            let mut apart = vec![0; 2 * count * CELL_BYTES];
            let target = Target::typed(&mut apart, count as u64, &spread()?)?;
            let status = file.read_at(at, target)?;
            let cells = apart.chunks_exact(2 * CELL_BYTES);
            dense = cells
                .flat_map(|cell| &cell[..CELL_BYTES])
                .copied()
                .collect();
            status
        }
        _ => file.read_at(at, &mut dense)?,
    };
    assert_eq!(moved.bytes(), dense.len() as u64);
    Ok(stamps(&dense))
}
