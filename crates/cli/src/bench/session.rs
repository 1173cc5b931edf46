//! A run of the benchmark: rounds of all methods, interleaved, each checked.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use super::array::Array;
use super::engine::{Direction, Engine};
use super::memory::{Frame, Memory};
use super::methods::{Method, Store};
use super::raw::{self, Raw};
use super::report::Row;
use super::wrong::{Fault, check_file};
use crate::failure::Failure;

/// The name of the yardstick in the table and in errors.
const RAW: &str = "raw POSIX";

/// What all rounds share.
pub(crate) struct Session {
    array: Array,
    methods: Vec<Method>,
    raw: Raw,
    dense: Vec<Mutex<Memory>>,
    ghost: Vec<Mutex<Memory>>,
    /// The file that methods write; removed before each write and with the folder at the end.
    path: PathBuf,
}

impl Session {
    /// Allocates every rank's memory.
    pub(crate) fn new(array: Array, methods: Vec<Method>, folder: &Path) -> Self {
        let memories = |frame| {
            (0..array.ranks())
                .map(|rank| Mutex::new(Memory::new(array.block(rank), frame)))
                .collect()
        };
        Session {
            raw: Raw::new(&array),
            dense: memories(Frame::None),
            ghost: memories(Frame::Ghost),
            path: folder.join("array"),
            array,
            methods,
        }
    }

    /// A row for the yardstick and one for each method.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let raw = Row::new(RAW, "-", "dense");
        let methods = self
            .methods
            .iter()
            .map(|method| Row::new(method.name, method.store.prefix(), method.frame.label()));
        std::iter::once(raw).chain(methods).collect()
    }

    /// Runs everything once, adding to the rows, which are those of [`Session::rows`].
    pub(crate) fn round(
        &mut self,
        round: u64,
        rows: &mut [Row],
        mut progress: impl FnMut(),
    ) -> Result<(), Failure> {
        let (raw, methods) = rows
            .split_first_mut()
            .expect("the first row is the yardstick's");
        self.raw_round(round, raw)?;
        progress();
        for memory in self.dense.iter_mut().chain(&mut self.ghost) {
            memory
                .get_mut()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .fill(&self.array, round);
        }
        for (method, row) in self.methods.iter().zip(methods) {
            if row.missing.is_none() {
                match self.method_round(method, round) {
                    Ok((write, read)) => {
                        row.write.push(write);
                        row.read.push(read);
                    }
                    Err(Failure::Unavailable { reason, .. }) => row.missing = Some(reason),
                    Err(failure) => return Err(failure),
                }
            }
            progress();
        }
        Ok(())
    }

    fn raw_round(&mut self, round: u64, row: &mut Row) -> Result<(), Failure> {
        self.raw.fill(round);
        raw::remove(&self.path)?;
        row.write.push(self.raw.write(&self.path)?);
        self.check_stored(round, RAW)?;
        row.read.push(self.raw.read(&self.path)?);
        self.raw.check(round).map_err(wrong_by(RAW))
    }

    /// Times of writing and reading. The memory holds the round's values before and after.
    fn method_round(&self, method: &Method, round: u64) -> Result<(Duration, Duration), Failure> {
        let memories = match method.frame {
            Frame::None => &self.dense,
            Frame::Ghost => &self.ghost,
        };
        let engine = Engine::new(method, &self.array, &self.path);
        engine.delete()?;
        let write = engine.run(Direction::Write, memories)?;
        match method.store {
            Store::Posix | Store::Uring => self.check_stored(round, &method.label())?,
            Store::Mem => engine.check_stored(round)?,
        }
        for memory in memories {
            lock(memory).clear();
        }
        let read = engine.run(Direction::Read, memories)?;
        for (rank, memory) in (0..).zip(memories) {
            lock(memory)
                .check(&self.array, round, rank)
                .map_err(wrong_by(&method.label()))?;
        }
        engine.delete()?;
        Ok((write, read))
    }

    /// Compares the file with the array, reading it as any other program would.
    fn check_stored(&self, round: u64, method: &str) -> Result<(), Failure> {
        File::open(&self.path)
            .and_then(|file| check_file(&self.array, round, file))
            .map_err(|source| Failure::Storage {
                action: "read",
                path: self.path.clone(),
                source,
            })?
            .map_err(wrong_by(method))
    }
}

/// A memory that no rank uses now; one that panicked has been reported already.
fn lock(memory: &Mutex<Memory>) -> std::sync::MutexGuard<'_, Memory> {
    memory
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Says which method a fault belongs to.
pub(crate) fn wrong_by(method: &str) -> impl Fn(Fault) -> Failure {
    move |fault| Failure::Wrong {
        method: method.to_owned(),
        fault,
    }
}

#[cfg(test)]
mod tests {
    use super::super::array::Shape;
    use super::super::methods::METHODS;
    use super::*;

    #[test]
    fn every_method_passes_its_own_check() {
        let folder = tempfile::tempdir().unwrap();
        for (shape, ranks) in [([5, 6, 7], 4), ([1, 1, 9], 3), ([3, 3, 3], 1)] {
            let array = Array::new(Shape(shape), ranks).unwrap();
            let mut session = Session::new(array, METHODS.to_vec(), folder.path());
            let mut rows = session.rows();
            for round in 0..2 {
                session.round(round, &mut rows, || {}).unwrap();
            }
            for row in rows {
                assert!(
                    row.write.best().is_some() || row.missing.is_some(),
                    "{row:?}"
                );
            }
        }
    }

    #[test]
    fn a_file_with_a_wrong_byte_fails_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let array = Array::new(Shape([2, 4, 4]), 4).unwrap();
        let mut session = Session::new(array, Vec::new(), folder.path());
        session.round(0, &mut session.rows(), || {}).unwrap();
        let mut bytes = std::fs::read(&session.path).unwrap();
        bytes[100] ^= 1;
        std::fs::write(&session.path, &bytes).unwrap();
        let failure = session.check_stored(0, "list").unwrap_err();
        let text = failure.to_string();
        assert!(
            text.starts_with("wrong data: list: byte 100 of the file: expected 0x"),
            "{text}"
        );
    }
}
