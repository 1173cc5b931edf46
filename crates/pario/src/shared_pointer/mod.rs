//! The shared file pointer: one position for all ranks, in etypes.
//!
//! The pointer has two places, used in turn. Setting a view resets it, but a
//! rank that comes early must not disturb one that still uses the old view:
//! so rank 0 prepares the idle place, where that needs to be done, and every
//! rank turns to it once all have arrived. The place prepared was last used before the previous turn,
//! which all ranks have left behind. No second meeting is needed.

mod memory;
mod side_file;

use std::{
    fmt::Debug,
    io,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use pario_transport::{Rank, Transport};

use crate::{Error, ErrorKind, Result, agree, warning::warn};

/// Two places that all ranks reach, each a position that is changed as a
/// whole.
trait Method: Send + Sync + Debug {
    /// Its name, for explanations.
    fn name(&self) -> &'static str;
    /// Sees to it that a turn, to which no rank has come, starts at zero.
    fn prepare(&self, generation: Generation) -> io::Result<()>;
    /// Replaces the value by what `change` makes of it and returns the old one.
    /// `change` may refuse by `None`, which leaves the value.
    fn update(
        &self,
        generation: Generation,
        change: &dyn Fn(u64) -> Option<u64>,
    ) -> io::Result<u64>;
}

/// How often the pointer was reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Generation(u64);

impl Generation {
    /// The place that is in use.
    fn place(self) -> usize {
        (self.0 % 2) as usize
    }
}

/// Which method to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preference {
    /// Memory where all ranks share it, else a file.
    Automatic,
    /// Memory that the ranks share.
    Memory,
    /// A locked file.
    SideFile,
}

/// The pointer, as one rank holds it.
#[derive(Debug)]
pub(crate) struct SharedPointer {
    /// Or why there is none, for those who use it.
    method: Result<Box<dyn Method>>,
    generations: AtomicU64,
}

impl SharedPointer {
    /// Collective. `beside` is the data file, next to which a side file is
    /// made if one is needed.
    pub(crate) fn new(
        comm: &dyn Transport,
        preference: Preference,
        beside: &Path,
    ) -> Result<SharedPointer> {
        let one_node =
            (0..comm.size()).all(|rank| comm.node_of(Rank(rank)) == comm.node_of(Rank(0)));
        let segment = match preference {
            Preference::SideFile => None,
            _ if !one_node => None,
            // The communicator is the file's own, and lives as long.
            _ => match comm.scratch() {
                Some(scratch) => Some(scratch),
                None => comm.segment(memory::SEGMENT_BYTES)?,
            },
        };
        let made: Result<Box<dyn Method>> = match (segment, preference) {
            (Some(segment), _) => Ok(Box::new(memory::Memory::new(segment))),
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
            // Most files are never used through the shared pointer: those
            // that are will hear of it.
            made => made,
        };
        Ok(SharedPointer {
            method,
            generations: AtomicU64::new(0),
        })
    }

    fn method(&self) -> Result<&dyn Method> {
        match &self.method {
            Ok(method) => Ok(&**method),
            Err(error) => Err(error.clone()),
        }
    }

    /// Which method it is, or why there is none.
    pub(crate) fn explain(&self) -> String {
        match &self.method {
            Ok(method) => method.name().to_owned(),
            Err(error) => format!("none: {error}"),
        }
    }

    fn now(&self) -> Generation {
        Generation(self.generations.load(Ordering::Relaxed))
    }

    /// Where it stands.
    pub(crate) fn load(&self) -> Result<u64> {
        Ok(self.method()?.update(self.now(), &Some)?)
    }

    /// Moves it on by an amount and returns where it stood.
    pub(crate) fn advance(&self, by: u64) -> Result<u64> {
        let past = std::cell::Cell::new(false);
        let old = self.method()?.update(self.now(), &|old| {
            let new = old.checked_add(by);
            past.set(new.is_none());
            new
        })?;
        if past.get() {
            return Err(Error::argument(format!(
                "the shared pointer at {old} cannot move on by {by}: it would guard 2^64 - 1"
            )));
        }
        Ok(old)
    }

    /// Sets it. The caller sees to it that no rank uses it meanwhile.
    pub(crate) fn store(&self, position: u64) -> Result<()> {
        self.method()?.update(self.now(), &|_| Some(position))?;
        Ok(())
    }

    /// Rank 0, before the ranks meet.
    pub(crate) fn prepare_generation(&self) -> Result<()> {
        if let Ok(method) = self.method() {
            let Generation(generation) = self.now();
            method.prepare(Generation(generation + 1))?;
        }
        Ok(())
    }

    /// Every rank, after the ranks met.
    pub(crate) fn advance_generation(&self) {
        self.generations.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointer_test(preference: Preference, name: &'static str) {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let results = pario_transport::threads::run(4, |comm| {
            let pointer = SharedPointer::new(&*comm, preference, &data).unwrap();
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
            taken
        });
        let mut all: Vec<_> = results
            .into_iter()
            .flat_map(|result| result.unwrap())
            .collect();
        all.sort_unstable();
        let expected: Vec<_> = (0..50)
            .flat_map(|round| (0..12).map(move |step| (round, 2 * step)))
            .collect();
        assert_eq!(all, expected);
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            0,
            "leftovers"
        );
    }

    #[test]
    fn memory_gives_each_position_once_over_many_turns() {
        pointer_test(Preference::Automatic, "memory");
    }

    #[test]
    fn a_side_file_gives_each_position_once_and_leaves_nothing() {
        pointer_test(Preference::SideFile, "file");
    }

    #[test]
    fn an_overflow_leaves_the_pointer_where_it_is() {
        let results = pario_transport::threads::run(1, |comm| {
            let pointer =
                SharedPointer::new(&*comm, Preference::Memory, Path::new("unused")).unwrap();
            pointer.store(u64::MAX - 1).unwrap();
            assert!(pointer.advance(2).is_err());
            assert_eq!(pointer.load().unwrap(), u64::MAX - 1);
        });
        results.into_iter().for_each(|result| result.unwrap());
    }
}
