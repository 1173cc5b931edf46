//! A job with all methods: interleaved repeats, each verified.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pario::{ErrorKind, File, Info};

use super::cold;
use super::fitness::MethodFitness;
use super::method::{self, Calls, MEMORY, Method};
use super::options::Options;
use super::outcome::{Outcome, Stop, calls_elapsed, elapsed, open_close_elapsed, transfer_share};
use super::row::{Row, Side};
use super::trial::{Record, Trial};
use super::world::World;
use crate::failure::Failure;
use crate::measure::capacity::{Kept, file_space};
use crate::measure::{
    DIRECTIONS, Direction, Holes, Memory, Need, Scratch, Share, Stored, alternating,
};
use crate::workload::Job;

/// Whether the kernel's cache is emptied before reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cache {
    /// Written data is likely still cached.
    Warm,
    /// The file's pages are dropped.
    Cold,
}

/// The state that all rounds of a job share.
pub(crate) struct Session<'a> {
    job: &'a dyn Job,
    world: &'a World,
    memories: Vec<Mutex<Memory>>,
    /// The file that methods write; removed before each write and with the directory at the end.
    path: PathBuf,
    scratch: &'a Scratch,
    cache: Cache,
    /// The expected contents of the file; set by the first comparison.
    stored: Option<Stored<'a>>,
}

impl<'a> Session<'a> {
    /// Allocates every rank's memory, if the machine has enough.
    pub(crate) fn new(
        job: &'a dyn Job,
        world: &'a World,
        scratch: &'a Scratch,
        kept: Kept,
        options: &Options,
    ) -> Result<Self, Failure> {
        let mut memories = (0..world.ranks())
            .map(|rank| Memory::new(job, rank, options.buffer_offset))
            .collect::<Result<Vec<_>, _>>()?;
        let bytes = memories.iter().map(Memory::bytes).sum();
        for (rank, memory) in (0..).zip(&mut memories) {
            memory.share = Share::new(rank, world.ranks(), bytes);
        }
        // All ranks check before one of them allocates any.
        world.agree(need(&memories, world, kept).check_in(scratch))?;
        let mut held = (0..).zip(&mut memories).filter(|it| world.holds(it.0));
        world.agree(held.try_for_each(|(_, memory)| memory.allocate()))?;
        Ok(Session {
            job,
            world,
            memories: memories.into_iter().map(Mutex::new).collect(),
            path: scratch.data(),
            scratch,
            cache: options.cache(),
            stored: None,
        })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.memories.iter().map(|it| lock(it).bytes()).sum()
    }

    /// Marks the directions that the methods of the rows do not support.
    pub(crate) fn find_unfit(&self, rows: &mut [Row], fitness: &MethodFitness) {
        let memories: Vec<_> = self.memories.iter().map(lock).collect();
        let steps: Vec<_> = memories.iter().map(|it| it.steps.as_slice()).collect();
        for row in rows {
            for direction in DIRECTIONS {
                let reason = fitness.reason(&row.method, direction, &steps);
                let reason = self.misses_mount(&row.method).or(reason);
                row.side_mut(direction).unavailable = reason;
            }
        }
    }

    /// Why a method cannot be used in a directory that is not mounted.
    fn misses_mount(&self, method: &Method) -> Option<String> {
        let is_of_kernel = method.calls == Calls::Raw
            || ![method::DEFAULT_DRIVER, MEMORY, self.scratch.driver()]
                .contains(&method.driver.as_str());
        let is_missing = is_of_kernel && !self.scratch.is_mounted();
        is_missing.then(|| "it makes system calls, and the directory is not mounted".to_owned())
    }

    /// The file's name with the driver of a method; by default it is that of the directory.
    fn name(&self, method: &Method) -> String {
        let driver = match method.driver.as_str() {
            method::DEFAULT_DRIVER => self.scratch.driver(),
            driver => driver,
        };
        format!("{driver}:{}", self.path.display())
    }

    /// Runs the methods at these places once, recording times, or transfers, which raw POSIX does not
    /// have.
    pub(crate) fn round(
        &mut self,
        round: u32,
        rows: &mut [Row],
        places: &[usize],
        record: Record,
        mut progress: impl FnMut(),
    ) -> Result<(), Failure> {
        let round = u64::from(round);
        for memory in &self.memories {
            lock(memory).fill(self.job, round);
        }
        for index in alternating(round, places.len()) {
            let row = &mut rows[places[index]];
            let is_recorded = record == Record::Whole || row.method.calls != Calls::Raw;
            if is_recorded && row.is_worth_repeating() {
                self.row(round, row, record)?;
            }
            progress();
        }
        Ok(())
    }

    /// Writes and reads with one method, as far as it can.
    fn row(&mut self, round: u64, row: &mut Row, record: Record) -> Result<(), Failure> {
        if row.is_unavailable() {
            return Ok(());
        }
        let method = row.method.clone();
        self.remove(&method)?;
        let write = row.side_mut(Direction::Write);
        if write.unavailable.is_none() {
            let written = self.run(&method, Direction::Write, record, round);
            note(write, written, record, &method)?;
            if write.unavailable.is_some() {
                // It turned out that it cannot write, so there is nothing to read.
                let reason = write.unavailable.clone();
                row.side_mut(Direction::Read).unavailable = reason;
                return Ok(());
            }
        } else {
            self.prepare(round, &method)?;
        }
        let world = self.world;
        world.lead(|| self.check_stored(round, &method))?;
        if self.cache == Cache::Cold {
            // Every node has its own cache.
            world.agree(cold::drop_cached(&self.path))?;
        }
        let read = row.side_mut(Direction::Read);
        if read.unavailable.is_none() {
            let moved = self.run(&method, Direction::Read, record, round);
            note(read, moved, record, &method)?;
        }
        self.remove(&method)
    }

    /// Writes the file for a method that only reads.
    fn prepare(&self, round: u64, method: &Method) -> Result<(), Failure> {
        let writer = Method {
            driver: method.driver.clone(),
            ..Method::automatic()
        };
        let written = self.run(&writer, Direction::Write, Record::Whole, round);
        written.map(drop).map_err(|stop| failure(stop, &writer))
    }

    fn run(
        &self,
        method: &Method,
        direction: Direction,
        record: Record,
        round: u64,
    ) -> Result<Vec<Outcome>, Stop> {
        let trial = Trial {
            job: self.job,
            method,
            path: &self.path,
            name: &self.name(method),
            direction,
            record,
            round,
            clock: self.world.clock()?,
        };
        let memories = &self.memories;
        self.world.run(|comm| trial.rank(&comm, memories))
    }

    /// Removes the file, so that every run writes a new one.
    fn remove(&self, method: &Method) -> Result<(), Failure> {
        let name = self.name(method);
        let removed = self.world.lead(|| match File::delete(&name, &Info::new()) {
            Err(error) if error.kind() != ErrorKind::NoSuchFile => {
                Err(failure(error.into(), method))
            }
            _ => Ok(()),
        });
        removed.map(drop)
    }

    /// Compares the file with what the job writes.
    fn check_stored(&mut self, round: u64, method: &Method) -> Result<(), Failure> {
        if method.calls == Calls::Raw {
            // The read verifies every byte of the same file.
            return Ok(());
        }
        let name = self.name(method);
        let is_mounted = self.scratch.is_mounted() && method.driver != MEMORY;
        let stored = self
            .stored
            .get_or_insert_with(|| Stored::new(self.job, self.world.ranks(), Holes::Zero));
        let fault = match is_mounted {
            true => stored.check(&self.path, round)?,
            false => stored
                .check_by_driver(&name, round)
                .map_err(|error| failure(error.into(), method))?,
        };
        match fault {
            None => Ok(()),
            Some(fault) => Err(failure(Stop::Wrong(fault.to_string()), method)),
        }
    }
}

/// What a job needs on this machine: memory of the ranks here and of the comparison, and the file.
fn need(memories: &[Memory], world: &World, kept: Kept) -> Need {
    let files = file_space(memories);
    let ranks = (0..).zip(memories);
    let here = ranks.filter(|(rank, _)| world.is_here(*rank));
    let memory = here.map(|(_, memory)| memory.footprint());
    Need {
        memory: memory.fold(Stored::footprint(files), u64::saturating_add),
        files,
        kept,
        size_option: "--scale",
    }
}

/// Records the time of a run, or why it is not possible.
fn note(
    side: &mut Side,
    ran: Result<Vec<Outcome>, Stop>,
    record: Record,
    method: &Method,
) -> Result<(), Failure> {
    match ran {
        Ok(outcomes) if record == Record::Transfers => {
            side.transfer_share = Some(transfer_share(&outcomes));
        }
        Ok(outcomes) => {
            side.samples.push(elapsed(&outcomes));
            side.calls.push(calls_elapsed(&outcomes));
            side.open_close.push(open_close_elapsed(&outcomes));
        }
        Err(Stop::Unavailable(reason)) => side.unavailable = Some(reason),
        Err(stop) => return Err(failure(stop, method)),
    }
    Ok(())
}

fn failure(stop: Stop, method: &Method) -> Failure {
    let method = method.name.clone();
    match stop {
        Stop::Wrong(fault) => Failure::Wrong { method, fault },
        Stop::Unavailable(reason) | Stop::Lost(reason) | Stop::Failed(reason) => {
            Failure::Method { method, reason }
        }
    }
}

/// A rank's memory; no rank uses it now, and one that panicked has been reported already.
fn lock(memory: &Mutex<Memory>) -> MutexGuard<'_, Memory> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}
