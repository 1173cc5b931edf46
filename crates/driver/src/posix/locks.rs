//! Range locks on two levels: a table among the threads of a handle, and
//! open-file-description locks between handles and processes.
//!
//! The table comes first and is kept while the kernel is asked, so two
//! threads never ask it for conflicting ranges; nothing in the table waits
//! for a thread that waits for the table.
//!
//! The kernel is asked again and again instead of being left to wait: network
//! file systems can lose an unlock, and the kernel's own wait then has no end.
//!
//! An unlock that keeps failing is not the end of it either: locks go with their
//! description. The file is opened once more, calls use the new description from
//! then on, and the old one is closed.

use std::{io, ops::Range, os::fd::BorrowedFd, sync::Arc, thread, time::Duration};

use super::{
    calls::{Calls, SystemCall},
    descriptor::Descriptor,
    lock_wait::LockWait,
    sys::{self, KernelLock},
};
use crate::{
    Access, Direction, LockMode, RangeLock,
    closing::{Closing, WeakAccess},
    lock::{OnConflict, RangeTable, Unlock},
};

/// How often a lock that cannot be released is tried in a row. The pauses in
/// between, each twice the one before, come to some 25 ms.
const UNLOCK_TRIES: u32 = 8;
const UNLOCK_PAUSE: Duration = Duration::from_micros(200);

/// The locks of one handle.
#[derive(Debug)]
pub(super) struct Locks {
    table: Arc<RangeTable>,
    access: Access,
    calls: Calls,
}

impl Locks {
    pub(super) fn new(access: Access, calls: Calls) -> Self {
        Locks {
            table: Arc::default(),
            access,
            calls,
        }
    }

    /// Takes a lock; `None` where it would wait and may not. `unshare` gives the file a
    /// description that no other rank has.
    pub(super) fn take(
        &self,
        file: &Closing<Descriptor>,
        range: Range<u64>,
        mode: LockMode,
        on_conflict: OnConflict,
        unshare: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<Option<RangeLock>> {
        drop(file.enter()?);
        self.check_released(file)?;
        mode.require(self.access)?;
        if range.is_empty() {
            return Ok(Some(RangeLock::nothing(range, mode)));
        }
        let wanted = range.clone();
        let take_from_kernel = || {
            // While the table has the range, the description stays the same, and once the file has
            // been entered, no other one is adopted.
            drop(file.enter()?);
            unshare()?;
            let file = file.enter()?;
            self.take_from_kernel(file.buffered(), &wanted, mode, on_conflict)
        };
        let releaser = self.releaser(file);
        self.table
            .take(range, mode, on_conflict, releaser, take_from_kernel)
    }

    /// Whether this handle has no locks.
    pub(super) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    fn releaser(&self, file: &Closing<Descriptor>) -> Releaser {
        Releaser {
            calls: self.calls.clone(),
            file: file.weak(),
        }
    }

    /// An error if a lock that was let go is still there, after trying once
    /// more to release it: other ranks wait for it.
    #[inline]
    pub(super) fn check_released(&self, file: &Closing<Descriptor>) -> io::Result<()> {
        self.table.check_released(|| self.releaser(file))
    }

    /// The kernel wants a descriptor that reads for a shared lock, so a
    /// write-only handle asks for more than it needs.
    fn kernel_lock(&self, mode: LockMode) -> KernelLock {
        match mode {
            LockMode::Shared if self.access.allows(Direction::Read) => KernelLock::Shared,
            LockMode::Shared | LockMode::Exclusive => KernelLock::Exclusive,
        }
    }

    fn take_from_kernel(
        &self,
        fd: BorrowedFd<'_>,
        range: &Range<u64>,
        mode: LockMode,
        on_conflict: OnConflict,
    ) -> io::Result<bool> {
        let kernel = self.kernel_lock(mode);
        let attempt = || {
            self.calls.make(SystemCall::Lock, 0, |_| {
                sys::lock_try(fd, range.clone(), kernel)
            })
        };
        let look = || sys::lock_in_the_way(fd, range.clone(), kernel);
        LockWait::take(range, on_conflict, attempt, look)
    }
}

/// Releases locks of an open file. Closing it has released all.
struct Releaser {
    calls: Calls,
    file: WeakAccess<Descriptor>,
}

impl Unlock for Releaser {
    fn unlock(&mut self, part: Range<u64>) -> io::Result<()> {
        match self.file.enter() {
            Some(file) => unlock(&self.calls, file.buffered(), part),
            None => Ok(()),
        }
    }

    /// Transfers under way keep the old description and its locks until they
    /// are over.
    fn unlock_all(&mut self) -> io::Result<()> {
        self.file.replace(Descriptor::reopen, Descriptor::close)
    }
}

/// Releases a lock, with retries: an interruption and most errors of a
/// network pass.
fn unlock(calls: &Calls, fd: BorrowedFd<'_>, part: Range<u64>) -> io::Result<()> {
    let mut pause = UNLOCK_PAUSE;
    let mut tries = 1;
    loop {
        let unlocked = calls.make_once(SystemCall::Unlock, 0, |_| {
            sys::lock_try(fd, part.clone(), KernelLock::None)
        });
        match unlocked {
            Ok(_) => return Ok(()),
            Err(error) if tries == UNLOCK_TRIES => return Err(error),
            Err(_) => thread::sleep(pause),
        }
        tries += 1;
        pause *= 2;
    }
}
