//! Range locks on two levels: a table among the threads of a handle, and
//! open-file-description locks between handles and processes.
//!
//! The table comes first and is kept while the kernel is asked, so two
//! threads never ask it for conflicting ranges; nothing in the table waits
//! for a thread that waits for the table.

use std::{io, ops::Range, os::fd::BorrowedFd, sync::Arc};

use super::{
    calls::{Calls, SystemCall},
    descriptor::Descriptor,
    sys::{self, KernelLock},
};
use crate::{
    Access, Direction, LockMode, RangeLock,
    closing::{Closing, Pass},
    lock::RangeTable,
};

/// What to do about a conflicting lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    Wait,
    Try,
}

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

    /// Takes a lock; `None` where it would wait and may not.
    pub(super) fn take(
        &self,
        file: &Closing<Descriptor>,
        range: Range<u64>,
        mode: LockMode,
        patience: Patience,
    ) -> io::Result<Option<RangeLock>> {
        let pass = file.enter()?;
        mode.require(self.access)?;
        if range.is_empty() {
            return Ok(Some(RangeLock::nothing(range, mode)));
        }
        let ticket = match patience {
            Patience::Wait => self.table.acquire(range.clone(), mode),
            Patience::Try => match self.table.try_acquire(range.clone(), mode) {
                Some(ticket) => ticket,
                None => return Ok(None),
            },
        };
        let fd = pass.buffered();
        match self.take_from_kernel(fd, &range, self.kernel_lock(mode), patience) {
            Ok(true) => {
                let (table, door) = (self.table.clone(), file.door());
                let release = move || {
                    let pass = door.enter();
                    table.release(ticket, |part| unlock(pass.as_ref(), part));
                };
                Ok(Some(RangeLock::new(range, mode, release)))
            }
            refused => {
                self.table.release(ticket, |part| unlock(Some(&pass), part));
                refused.map(|_| None)
            }
        }
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
        kernel: KernelLock,
        patience: Patience,
    ) -> io::Result<bool> {
        let call = match patience {
            Patience::Wait => sys::lock_wait,
            Patience::Try => sys::lock_try,
        };
        self.calls
            .make(SystemCall::Lock, 0, |_| call(fd, range.clone(), kernel))
    }
}

/// Unlocking own ranges fails only for want of kernel memory when it splits
/// one; no one can act on that, and closing the file unlocks all.
fn unlock(pass: Option<&Pass<Descriptor>>, part: Range<u64>) {
    if let Some(pass) = pass {
        let _ = sys::lock_try(pass.buffered(), part, KernelLock::None);
    }
}
