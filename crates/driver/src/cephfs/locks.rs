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
        let wanted = range.clone();
        let take_from_server = || self.take_from_server(&guard, &wanted, mode, on_conflict);
        let unlock = unlocker(file.weak(), self.owner);
        self.table
            .take(range, mode, on_conflict, unlock, take_from_server)
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
        let attempt = || file.try_lock(range, kind, self.owner);
        let look = || file.lock_in_the_way(range, kind, self.owner);
        LockWait::take(range, on_conflict, attempt, look)
    }
}

/// Releases locks of an open file. Closing it has released all.
fn unlocker(file: WeakAccess<OpenFile>, owner: u64) -> impl FnMut(Range<u64>) -> io::Result<()> {
    move |part: Range<u64>| match file.enter() {
        Some(file) => file.try_lock(&part, FileLock::None, owner).map(drop),
        None => Ok(()),
    }
}
