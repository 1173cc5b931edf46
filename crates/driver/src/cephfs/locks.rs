//! Range locks on two levels: a table among the threads of a handle, and the
//! metadata server's locks between handles, processes and nodes.
//!
//! The owner of the latter is the handle, so that two handles of one process
//! exclude each other. The server is asked again and again instead of being left to
//! wait: a client that is evicted never gets its answer.

use std::{
    io,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use super::library::{FileLock, OpenFile};
use crate::{
    Access, LockMode, RangeLock,
    closing::{Closing, WeakAccess},
    lock::{OnConflict, RangeTable},
    posix::LockWait,
};

/// Set in owners that are unique among all of a client; for others, the server
/// also compares process numbers.
const WITHOUT_PROCESS: u64 = 1 << 63;

/// The locks of one handle.
#[derive(Debug)]
pub(super) struct Locks {
    table: Arc<RangeTable>,
    access: Access,
    owner: u64,
}

impl Locks {
    pub(super) fn new(access: Access) -> Self {
        static OWNERS: AtomicU64 = AtomicU64::new(1);
        Locks {
            table: Arc::default(),
            access,
            owner: OWNERS.fetch_add(1, Ordering::Relaxed) | WITHOUT_PROCESS,
        }
    }

    /// Takes a lock; `None` where it would wait and may not.
    pub(super) fn take(
        &self,
        file: &Closing<OpenFile>,
        range: Range<u64>,
        mode: LockMode,
        on_conflict: OnConflict,
    ) -> io::Result<Option<RangeLock>> {
        let guard = file.enter()?;
        self.check_released(file)?;
        mode.require(self.access)?;
        if range.is_empty() {
            return Ok(Some(RangeLock::nothing(range, mode)));
        }
        let ticket = match on_conflict {
            OnConflict::Wait => self.table.acquire(range.clone(), mode),
            OnConflict::Try => match self.table.try_acquire(range.clone(), mode) {
                Some(ticket) => ticket,
                None => return Ok(None),
            },
        };
        let unlock = unlocker(file.weak(), self.owner);
        match self.take_from_server(&guard, &range, mode, on_conflict) {
            Ok(true) => {
                let table = self.table.clone();
                let release = move || table.release(ticket, unlock);
                Ok(Some(RangeLock::new(range, mode, release)))
            }
            refused => {
                self.table.release(ticket, unlock);
                refused.map(|_| None)
            }
        }
    }

    /// Fails if a lock that was let go is still there, after another attempt to
    /// release it: other ranks wait for it.
    pub(super) fn check_released(&self, file: &Closing<OpenFile>) -> io::Result<()> {
        self.table
            .check_released(|| unlocker(file.weak(), self.owner))
    }

    fn take_from_server(
        &self,
        file: &OpenFile,
        range: &Range<u64>,
        mode: LockMode,
        on_conflict: OnConflict,
    ) -> io::Result<bool> {
        let kind = match mode {
            LockMode::Shared => FileLock::Shared,
            LockMode::Exclusive => FileLock::Exclusive,
        };
        let mut wait = LockWait::new();
        loop {
            let tried = Instant::now();
            let taken = file.try_lock(range, kind, self.owner)?;
            if taken || on_conflict == OnConflict::Try {
                return Ok(taken);
            }
            let look = || file.lock_in_the_way(range, kind, self.owner);
            wait.pause(range, tried, look)?;
        }
    }
}

/// Releases locks of an open file. Closing it has released all.
fn unlocker(file: WeakAccess<OpenFile>, owner: u64) -> impl FnMut(Range<u64>) -> io::Result<()> {
    move |part: Range<u64>| match file.enter() {
        Some(file) => file.try_lock(&part, FileLock::None, owner).map(drop),
        None => Ok(()),
    }
}
