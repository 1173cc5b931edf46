//! A log per rank of what it writes at the shared pointer (Chaarawi 2011, section 3.5): the rank
//! need not know where its data will be, so it neither waits for other ranks nor takes a lock.
//! The ranks merge their logs later, in the order of time, by collective writes.
//!
//! For files that are only written, since a rank cannot read what is in a log.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use pario_driver::{Access, Batch, Create, Driver, Handle, OpenHow, Posix};

use super::side_file::{elsewhere, nonce, path_of};
use crate::{
    Result,
    view::{FlattenedView, Use, View},
};

/// Data that a rank has logged in one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Record {
    /// When, in nanoseconds; later records of a rank have later times.
    pub(crate) time: u64,
    /// Its length in the file.
    pub(crate) bytes: u64,
}

/// The log of one rank.
#[derive(Debug)]
pub(crate) struct Log {
    /// Next to which file it is created.
    beside: PathBuf,
    handle: OnceLock<Arc<dyn Handle>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    records: Vec<Record>,
    bytes: u64,
    /// The bytes of a log, in the representation of the file's view.
    view: Option<Arc<FlattenedView>>,
    /// How many collective writes have been made.
    writes: u64,
}

impl Log {
    /// Nothing is created before the first record.
    pub(super) fn new(driver: &dyn Driver, path: &Path) -> Log {
        let beside = match driver.is_mounted() {
            true => path.to_owned(),
            false => elsewhere(path),
        };
        Log {
            beside,
            handle: OnceLock::new(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file of the log, which has no name.
    pub(crate) fn handle(&self) -> io::Result<&Arc<dyn Handle>> {
        if let Some(handle) = self.handle.get() {
            return Ok(handle);
        }
        // The program may not be allowed to create files next to its own.
        let handle = create(&self.beside).or_else(|_| create(&elsewhere(&self.beside)))?;
        // If another thread was faster, this file goes away again.
        Ok(self.handle.get_or_init(|| handle))
    }

    /// The log as a view: its bytes, in the representation of the file's view.
    pub(crate) fn view(&self, of_file: &FlattenedView) -> Result<Arc<FlattenedView>> {
        let name = of_file.representation().name().to_owned();
        let known = |view: &Arc<FlattenedView>| view.representation().name() == name;
        if let Some(view) = self.state().view.clone().filter(known) {
            return Ok(view);
        }
        let bytes = View::bytes().representation(name.clone());
        let view = Arc::new(FlattenedView::new(&bytes, 0, Use::Writable, None)?);
        self.state().view = Some(view.clone());
        Ok(view)
    }

    /// Makes a record of this length; where it starts in the log.
    pub(crate) fn append(&self, bytes: u64) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |now| now.as_nanos() as u64);
        let mut state = self.state();
        let time = match state.records.last() {
            Some(last) => now.max(last.time + 1),
            None => now,
        };
        let start = state.bytes;
        state.records.push(Record { time, bytes });
        state.bytes += bytes;
        start
    }

    /// The length of all records.
    pub(crate) fn bytes(&self) -> u64 {
        self.state().bytes
    }

    /// The records, in order.
    pub(crate) fn records(&self) -> Vec<Record> {
        self.state().records.clone()
    }

    /// Reads part of the log. What could not be written reads as zeros.
    pub(crate) fn read(&self, start: u64, data: &mut [u8]) -> io::Result<()> {
        let read = self.handle()?.transfer(&Batch::read(start, data));
        let read = read.into_result()?;
        data[read as usize..].fill(0);
        Ok(())
    }

    /// The family of views for the next collective write: the same on all ranks, and not one that
    /// `set_view` gives.
    pub(crate) fn next_family(&self) -> u64 {
        let mut state = self.state();
        state.writes += 1;
        u64::MAX - state.writes
    }

    /// Empties the log.
    pub(crate) fn clear(&self) -> io::Result<()> {
        let mut state = self.state();
        (state.records, state.bytes) = (Vec::new(), 0);
        match self.handle.get() {
            Some(handle) => handle.set_size(0),
            None => Ok(()),
        }
    }
}

/// Creates a file next to another one, without a name.
fn create(beside: &Path) -> io::Result<Arc<dyn Handle>> {
    let path = path_of(beside, nonce());
    let mut how = OpenHow::new(Access::ReadWrite).create(Create::Exclusive);
    how.permissions = 0o600;
    let handle = Posix::new().open(&path, &how)?;
    std::fs::remove_file(&path)?;
    Ok(handle)
}
