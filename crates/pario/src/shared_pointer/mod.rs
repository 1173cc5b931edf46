//! The shared file pointer: one position for all ranks, in etypes.
//!
//! The position alternates between two slots. Setting a view resets the pointer, but a rank
//! that is early must not disturb one that still uses the old view. So rank 0 prepares the idle
//! slot, if necessary, and every rank switches to it once all have arrived. The idle slot was
//! last used before the previous switch, which all ranks have made, so no second
//! synchronisation is needed.

mod log;
mod memory;
mod owner;
mod side_file;

use std::{
    fmt::Debug,
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

pub(crate) use log::{Log, Record};
use pario_driver::Driver;
use pario_transport::{Rank, Transport};

use crate::{Error, ErrorKind, Result, agree, file::FileSharing, warning::warn};

/// Two slots that all ranks can reach, each a position that changes atomically.
trait Method: Send + Sync + Debug {
    /// The name, for explanations.
    fn name(&self) -> &'static str;
    /// Sets the position before the first use. Called on all ranks, which synchronise afterwards.
    fn start_at(&self, rank: Rank, position: u64) -> io::Result<()> {
        match rank {
            Rank(0) => self.update(Generation(0), Change::Set(position)).map(drop),
            _ => Ok(()),
        }
    }
    /// Makes a generation that no rank uses yet start at zero.
    fn prepare(&self, generation: Generation) -> io::Result<()>;
    /// Changes the value and returns the old one.
    fn update(&self, generation: Generation, change: Change) -> io::Result<u64>;
    /// Whether this rank has used something that must be removed.
    fn is_used(&self) -> bool {
        false
    }
    /// Removes it. Called on one rank, when no rank uses the pointer any more.
    fn remove(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A change of the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// None: the position is only read.
    Keep,
    /// Advances by so many etypes, unless the result would exceed 64 bits.
    Add(u64),
    /// Sets it.
    Set(u64),
}

impl Change {
    /// The new value; `None` if the old one stays.
    fn of(self, old: u64) -> Option<u64> {
        match self {
            Change::Keep => None,
            Change::Add(by) => old.checked_add(by),
            Change::Set(position) => Some(position),
        }
    }
}

/// The number of times that the pointer has been reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Generation(u64);

impl Generation {
    /// The slot that is in use.
    fn slot(self) -> usize {
        (self.0 % 2) as usize
    }
}

/// Where to keep the pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preference {
    /// In memory if all ranks share it, otherwise in a file.
    Automatic,
    /// In memory that the ranks share.
    Memory,
    /// In a locked file.
    SideFile,
    /// At rank 0, which the others ask.
    Owner,
    /// As for `Automatic`, and each rank logs what it writes, to be merged later.
    Logs,
}

/// The data file, next to which a side file is created.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beside<'a> {
    pub(crate) driver: &'a Arc<dyn Driver>,
    pub(crate) path: &'a Path,
    pub(crate) sharing: &'a FileSharing,
}

/// One rank's access to the pointer.
#[derive(Debug)]
pub(crate) struct SharedPointer {
    /// The method, or the reason why there is none, for callers that use the pointer.
    method: Result<Box<dyn Method>>,
    generations: AtomicU64,
    /// What this rank writes at the pointer, if it is not written at once.
    log: Option<Log>,
}

impl SharedPointer {
    /// *Collective*. A side file is next to the data file `beside`; it is created when a rank first
    /// uses the pointer.
    pub(crate) fn new(
        comm: &dyn Transport,
        preference: Preference,
        beside: Beside<'_>,
    ) -> Result<SharedPointer> {
        let segment = match preference {
            Preference::SideFile | Preference::Owner => None,
            _ if comm.spans_nodes() => None,
            // The transport belongs to the file and lives as long.
            _ => match comm.scratch() {
                Some(scratch) => Some(scratch),
                None => comm.segment(memory::SEGMENT_BYTES)?,
            },
        };
        let made: Result<Box<dyn Method>> = match (segment, preference) {
            (Some(segment), _) => Ok(Box::new(memory::Memory::new(segment))),
            (None, Preference::Owner) => owner::Owner::new(comm).map(|owner| Box::new(owner) as _),
            (None, preference) => {
                if preference == Preference::Memory && comm.rank() == Rank(0) {
                    warn(
                        "the hint pario_shared_pointer asks for memory, but the ranks share none: \
                         the shared pointer is in a file",
                    );
                }
                side_file::SideFile::new(comm, beside).map(|file| Box::new(file) as _)
            }
        };
        let method = match agree::agree(comm, made) {
            Err(error) if error.kind() == ErrorKind::PeerLost => return Err(error),
            // Most files are never accessed through the shared pointer. Accesses that do so get
            // the error.
            made => made,
        };
        let log = match preference {
            Preference::Logs => Some(Log::new(&**beside.driver, beside.path)),
            _ => None,
        };
        Ok(SharedPointer {
            method,
            generations: AtomicU64::new(0),
            log,
        })
    }

    /// Has calls that use the pointer fail if it is in a side file and `probe`, which finds out
    /// whether locks work, fails. *Collective*.
    pub(crate) fn require(&mut self, probe: impl FnOnce() -> Result<()>) -> Result<()> {
        let in_file = self.method().is_ok_and(|it| it.name() == side_file::NAME);
        match in_file.then(probe) {
            Some(Err(error)) if error.kind() == ErrorKind::PeerLost => Err(error),
            Some(Err(error)) => {
                self.method = Err(error);
                Ok(())
            }
            Some(Ok(())) | None => Ok(()),
        }
    }

    /// The log of this rank, if it has one.
    pub(crate) fn log(&self) -> Option<&Log> {
        self.log.as_ref()
    }

    fn method(&self) -> Result<&dyn Method> {
        match &self.method {
            Ok(method) => Ok(&**method),
            Err(error) => Err(error.clone()),
        }
    }

    /// The name of the method, or why there is none.
    pub(crate) fn explain(&self) -> String {
        let logs = match &self.log {
            Some(_) => ", and a log per rank",
            None => "",
        };
        match &self.method {
            Ok(method) => format!("{}{logs}", method.name()),
            Err(error) => format!("none: {error}"),
        }
    }

    fn now(&self) -> Generation {
        Generation(self.generations.load(Ordering::Relaxed))
    }

    /// The position.
    pub(crate) fn load(&self) -> Result<u64> {
        Ok(self.method()?.update(self.now(), Change::Keep)?)
    }

    /// Advances the pointer and returns the old position.
    pub(crate) fn advance(&self, by: u64) -> Result<u64> {
        let change = Change::Add(by);
        let old = self.method()?.update(self.now(), change)?;
        if change.of(old).is_none() {
            return Err(Error::argument(format!(
                "the shared pointer at {old} cannot advance by {by}: it would exceed 2^64 - 1"
            )));
        }
        Ok(old)
    }

    /// Sets the position. No rank may use the pointer at the same time.
    pub(crate) fn store(&self, position: u64) -> Result<()> {
        self.method()?.update(self.now(), Change::Set(position))?;
        Ok(())
    }

    /// Sets the position before the first use, on all ranks, which synchronise afterwards.
    pub(crate) fn start_at(&self, rank: Rank, position: u64) -> Result<()> {
        match &self.method {
            Ok(method) => Ok(method.start_at(rank, position)?),
            // For callers that use the pointer.
            Err(_) => Ok(()),
        }
    }

    /// Whether this rank has used something that must be removed.
    pub(crate) fn is_used(&self) -> bool {
        self.method.as_ref().is_ok_and(|method| method.is_used())
    }

    /// Removes it. Called on one rank, when no rank uses the pointer any more.
    pub(crate) fn remove(&self) -> Result<()> {
        match &self.method {
            Ok(method) => Ok(method.remove()?),
            Err(_) => Ok(()),
        }
    }

    /// Called by rank 0 before the ranks synchronise.
    pub(crate) fn prepare_generation(&self) -> Result<()> {
        if let Ok(method) = self.method() {
            let Generation(generation) = self.now();
            method.prepare(Generation(generation + 1))?;
        }
        Ok(())
    }

    /// Called by every rank after the ranks have synchronised.
    pub(crate) fn advance_generation(&self) {
        self.generations.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use pario_driver::{Memory, Posix};

    use super::*;

    fn pointer_test(preference: Preference, name: &'static str) {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        let driver: Arc<dyn Driver> = Arc::new(Posix::new());
        let beside = Beside {
            driver: &driver,
            path: &data,
            sharing: &FileSharing::alone(),
        };
        let results = pario_transport::threads::run(4, |comm| {
            let pointer = SharedPointer::new(&*comm, preference, beside).unwrap();
            pointer.start_at(comm.rank(), 7).unwrap();
            comm.barrier().unwrap();
            assert_eq!(pointer.explain(), name);
            let mut taken = Vec::new();
            for round in 0..50u64 {
                for _ in 0..3 {
                    taken.push((round, pointer.advance(2).unwrap()));
                }
                if comm.rank() == Rank(0) {
                    pointer.prepare_generation().unwrap();
                }
                comm.barrier().unwrap();
                pointer.advance_generation();
            }
            if comm.rank() == Rank(0) {
                pointer.remove().unwrap();
            }
            taken
        });
        let mut all: Vec<_> = results
            .into_iter()
            .flat_map(|result| result.unwrap())
            .collect();
        all.sort_unstable();
        let expected: Vec<_> = (0..50)
            .flat_map(|round| {
                let start = if round == 0 { 7 } else { 0 };
                (0..12).map(move |step| (round, start + 2 * step))
            })
            .collect();
        assert_eq!(all, expected);
        assert_eq!(
            std::fs::read_dir(directory.path()).unwrap().count(),
            0,
            "leftovers"
        );
    }

    #[test]
    fn memory_gives_each_position_once_over_many_generations() {
        pointer_test(Preference::Automatic, "memory");
    }

    #[test]
    fn a_side_file_gives_each_position_once_and_leaves_nothing() {
        pointer_test(Preference::SideFile, "file");
    }

    #[test]
    fn the_owner_gives_each_position_once() {
        pointer_test(Preference::Owner, "owner");
    }

    #[test]
    fn a_pointer_that_is_not_used_creates_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        let driver: Arc<dyn Driver> = Arc::new(Posix::new());
        let results = pario_transport::threads::run(2, |comm| {
            let beside = Beside {
                driver: &driver,
                path: &data,
                sharing: &FileSharing::alone(),
            };
            let pointer = SharedPointer::new(&*comm, Preference::SideFile, beside).unwrap();
            pointer.start_at(comm.rank(), 5).unwrap();
            comm.barrier().unwrap();
            let files = || std::fs::read_dir(directory.path()).unwrap().count();
            assert_eq!((files(), pointer.is_used()), (0, false));
            comm.barrier().unwrap();
            if comm.rank() == Rank(1) {
                assert_eq!(pointer.load().unwrap(), 5);
                assert_eq!((files(), pointer.is_used()), (1, true));
                pointer.remove().unwrap();
                pointer.remove().unwrap();
                assert_eq!(files(), 0);
            }
        });
        results.into_iter().for_each(|result| result.unwrap());
    }

    #[test]
    fn locks_that_do_not_work_fail_the_calls_that_need_a_side_file() {
        let driver: Arc<dyn Driver> = Arc::new(Posix::new());
        let beside = Beside {
            driver: &driver,
            path: Path::new("unused"),
            sharing: &FileSharing::alone(),
        };
        let results = pario_transport::threads::run(2, |comm| {
            for (preference, is_probed) in
                [(Preference::SideFile, true), (Preference::Memory, false)]
            {
                let mut pointer = SharedPointer::new(&*comm, preference, beside).unwrap();
                let refused = || Err(Error::new(ErrorKind::UnsupportedOperation, "no locks"));
                pointer.require(refused).unwrap();
                pointer.start_at(comm.rank(), 3).unwrap();
                assert_eq!(pointer.load().is_err(), is_probed);
            }
        });
        results.into_iter().for_each(|result| result.unwrap());
    }

    #[test]
    fn an_overflow_leaves_the_pointer_where_it_is() {
        let results = pario_transport::threads::run(1, |comm| {
            let driver: Arc<dyn Driver> = Arc::new(Memory::new());
            let unused = Beside {
                driver: &driver,
                path: Path::new("unused"),
                sharing: &FileSharing::alone(),
            };
            let pointer = SharedPointer::new(&*comm, Preference::Memory, unused);
            let pointer = pointer.unwrap();
            pointer.store(u64::MAX - 1).unwrap();
            assert!(pointer.advance(2).is_err());
            assert_eq!(pointer.load().unwrap(), u64::MAX - 1);
        });
        results.into_iter().for_each(|result| result.unwrap());
    }
}
