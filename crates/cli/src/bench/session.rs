//! A job with all methods: rounds, interleaved, each checked.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use pario::{ErrorKind, File, Info};

use super::cold;
use super::fitness::Fitness;
use super::memory::Memory;
use super::method::{Calls, Method};
use super::options::Options;
use super::outcome::{Outcome, Stop, calls_elapsed, elapsed, open_close_elapsed, transfer_share};
use super::room::{Kept, Need};
use super::row::{Row, Side};
use super::share::Share;
use super::stored::{Written, check_file, check_in_memory};
use super::trial::{Direction, Record, Trial};
use super::world::World;
use crate::failure::Failure;
use crate::workload::Job;

/// Whether the kernel's cache is emptied before reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cache {
    /// What was written is likely still there.
    Warm,
    /// The file's pages are dropped.
    Cold,
}

/// What all rounds of a job share.
pub(crate) struct Session<'a> {
    job: &'a dyn Job,
    world: &'a World,
    memories: Vec<Mutex<Memory>>,
    /// The file that methods write; removed before each write and with the folder at the end.
    path: PathBuf,
    cache: Cache,
    /// What the file must be, and room for a part of it; from the first comparison on, kept because
    /// fresh memory is slow.
    stored: Option<(Written<'a>, Vec<u8>)>,
}

impl<'a> Session<'a> {
    /// Makes every rank's memory, if the machine has room for it.
    pub(crate) fn new(
        job: &'a dyn Job,
        world: &'a World,
        folder: &Path,
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
        // All ranks ask before one of them takes any.
        world.agree(Need::new(&memories, world).check(folder, kept))?;
        let mut held = (0..).zip(&mut memories).filter(|it| world.holds(it.0));
        world.agree(held.try_for_each(|(_, memory)| memory.make()))?;
        Ok(Session {
            job,
            world,
            memories: memories.into_iter().map(Mutex::new).collect(),
            path: folder.join("data"),
            cache: options.cache(),
            stored: None,
        })
    }

    /// Data bytes of all ranks.
    pub(crate) fn bytes(&self) -> u64 {
        self.memories.iter().map(|it| lock(it).bytes()).sum()
    }

    /// Marks what the methods of the rows cannot do.
    pub(crate) fn find_unfit(&self, rows: &mut [Row], fitness: &Fitness) {
        for row in rows {
            let memories: Vec<_> = self.memories.iter().map(lock).collect();
            let steps: Vec<_> = memories.iter().map(|it| it.steps.as_slice()).collect();
            row.write.missing = fitness.reason(&row.method, Direction::Write, &steps);
            row.read.missing = fitness.reason(&row.method, Direction::Read, &steps);
        }
    }

    /// Runs everything once and adds to the rows, every second time from the last to the first:
    /// what a method leaves behind in caches is not always the same one's gain.
    pub(crate) fn round(
        &mut self,
        round: u64,
        rows: &mut [Row],
        mut progress: impl FnMut(),
    ) -> Result<(), Failure> {
        for memory in &self.memories {
            lock(memory).fill(self.job, round);
        }
        let count = rows.len();
        for place in 0..count {
            let backwards = count - 1 - place;
            let place = if round.is_multiple_of(2) {
                place
            } else {
                backwards
            };
            if rows[place].is_worth_repeating() {
                self.row(round, &mut rows[place], Record::Whole)?;
            }
            progress();
        }
        Ok(())
    }

    /// Runs everything once more to find the share of the time in the I/O phase.
    pub(crate) fn phases(
        &mut self,
        round: u64,
        rows: &mut [Row],
        mut progress: impl FnMut(),
    ) -> Result<(), Failure> {
        for memory in &self.memories {
            lock(memory).fill(self.job, round);
        }
        for row in rows {
            if row.method.calls != Calls::Raw && row.is_worth_repeating() {
                self.row(round, row, Record::Transfers)?;
            }
            progress();
        }
        Ok(())
    }

    /// Writes and reads with one method, as far as it can.
    fn row(&mut self, round: u64, row: &mut Row, record: Record) -> Result<(), Failure> {
        if row.is_missing() {
            return Ok(());
        }
        let method = row.method.clone();
        self.remove(&method)?;
        if row.write.missing.is_none() {
            let written = self.run(&method, Direction::Write, record, round);
            note(&mut row.write, written, record, &method)?;
            if row.write.missing.is_some() {
                // It turned out that it cannot write here, so there is nothing to read.
                row.read.missing.clone_from(&row.write.missing);
                return Ok(());
            }
        } else {
            self.prepare(round, &method)?;
        }
        let world = self.world;
        world.lead(|| self.check_stored(round, &method))?;
        if self.cache == Cache::Cold {
            // Every node has a cache of its own.
            world.agree(cold::drop_cached(&self.path))?;
        }
        if row.read.missing.is_none() {
            let read = self.run(&method, Direction::Read, record, round);
            note(&mut row.read, read, record, &method)?;
        }
        self.remove(&method)
    }

    /// Writes the file for a method that only reads.
    fn prepare(&self, round: u64, method: &Method) -> Result<(), Failure> {
        let writer = Method {
            driver: method.driver,
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
            direction,
            record,
            round,
            clock: self.world.clock()?,
        };
        let memories = &self.memories;
        self.world.run(|comm| trial.rank(&comm, memories))
    }

    /// Removes the file, so that every run writes to fresh storage.
    fn remove(&self, method: &Method) -> Result<(), Failure> {
        let name = format!("{}:{}", method.driver, self.path.display());
        let removed = self.world.lead(|| match File::delete(&name, &Info::new()) {
            Err(error) if error.kind() != ErrorKind::NoSuchFile => {
                Err(failure(error.into(), method))
            }
            _ => Ok(()),
        });
        removed.map(drop)
    }

    /// Compares the file with what the job writes, reading it as any other program would.
    fn check_stored(&mut self, round: u64, method: &Method) -> Result<(), Failure> {
        if method.calls == Calls::Raw {
            // Its read compares every byte of the same file.
            return Ok(());
        }
        let (written, part) = self.stored.get_or_insert_with(|| {
            let written = Written::new(self.job, self.world.ranks());
            let part = written.part();
            (written, part)
        });
        let fault = match method.driver {
            "mem" => check_in_memory(written, round, &self.path, part)
                .map_err(|stop| failure(stop, method))?,
            _ => check_file(written, round, &self.path, part)?,
        };
        match fault {
            None => Ok(()),
            Some(fault) => Err(failure(Stop::Wrong(fault.to_string()), method)),
        }
    }
}

/// Takes down what a run took, or why it cannot be.
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
        Err(Stop::Unavailable(reason)) => side.missing = Some(reason),
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

/// A memory that no rank uses now; one that panicked has been reported already.
fn lock(memory: &Mutex<Memory>) -> std::sync::MutexGuard<'_, Memory> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}
