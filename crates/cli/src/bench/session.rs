//! A job with all methods: rounds, interleaved, each checked.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use pario::{ErrorKind, File, Info, Mode, threads};

use super::cold;
use super::fitness::Fitness;
use super::memory::Memory;
use super::method::{Calls, Method};
use super::options::Options;
use super::outcome::{Outcome, Stop, elapsed, transfer_share};
use super::row::{Row, Side};
use super::trial::{Direction, Record, Trial};
use super::world::World;
use super::wrong::check_file;
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
    /// What the file holds, when it is compared; kept because fresh memory is slow.
    stored: Vec<u8>,
}

impl<'a> Session<'a> {
    /// Makes every rank's memory.
    pub(crate) fn new(
        job: &'a dyn Job,
        world: &'a World,
        folder: &Path,
        options: &Options,
    ) -> Result<Self, Failure> {
        let mut memories = (0..world.ranks())
            .map(|rank| match world.holds(rank) {
                true => Memory::new(job, rank, options.buffer_offset),
                false => Memory::elsewhere(job, rank),
            })
            .collect::<Result<Vec<_>, _>>()?;
        let bytes: u64 = memories.iter().map(Memory::bytes).sum();
        let ranks = u64::from(world.ranks());
        let bound = |rank: u64| (u128::from(bytes) * u128::from(rank) / u128::from(ranks)) as u64;
        for (rank, memory) in (0..).zip(&mut memories) {
            if !world.holds(rank as u32) {
                continue;
            }
            memory.share(bound(rank), bound(rank + 1) - bound(rank))?;
        }
        Ok(Session {
            job,
            world,
            memories: memories.into_iter().map(Mutex::new).collect(),
            path: folder.join("data"),
            cache: options.cache(),
            stored: Vec::new(),
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
        self.stored.clear();
        match method.driver {
            "mem" => {
                self.stored = stored_in_memory(&self.path).map_err(|stop| failure(stop, method))?;
            }
            _ => fs::File::open(&self.path)
                .and_then(|mut file| file.read_to_end(&mut self.stored))
                .map(drop)
                .map_err(|source| Failure::Storage {
                    action: "read",
                    path: self.path.clone(),
                    source,
                })?,
        }
        let checked = check_file(self.job, self.world.ranks(), round, &mut self.stored);
        checked.map_err(|fault| failure(Stop::Wrong(fault.to_string()), method))
    }
}

/// A file that no other program can see.
fn stored_in_memory(path: &Path) -> Result<Vec<u8>, Stop> {
    let name = format!("mem:{}", path.display());
    let read = |comm| -> Result<Vec<u8>, Stop> {
        let file = File::open(&comm, &name, Mode::READ_ONLY, &Info::new())?;
        let length = usize::try_from(file.size()?).map_err(io::Error::other)?;
        let mut bytes = vec![0; length];
        file.read_at(0, bytes.as_mut_slice())?;
        file.close()?;
        Ok(bytes)
    };
    let mut ranks = threads::run(1, read);
    let rank = ranks.pop().expect("there is one rank");
    rank.map_err(|panic| Stop::Failed(panic.to_string()))?
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
        Ok(outcomes) => side.samples.push(elapsed(&outcomes)),
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
