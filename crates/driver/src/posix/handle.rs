//! An open file.

use std::{
    fmt, io,
    ops::Range,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use super::{
    calls::{Calls, SystemCall},
    locks::{Locks, Patience},
    preallocate, sys,
    transfer::{self, beyond_files},
};
use crate::{
    Access, Batch, Completion, Create, Direction, Facts, FileSystem, Handle, LockMode, OpenHow,
    Outcome, RangeLock, background,
    closing::{Closing, Pass},
    detect,
};

/// What the kernel gave us.
#[derive(Debug)]
pub(crate) struct Descriptor {
    /// Locks are on this one's open file description.
    pub(super) buffered: OwnedFd,
}

/// One open file description, and what goes with it.
pub(super) struct PosixHandle {
    file: Closing<Descriptor>,
    how: OpenHow,
    calls: Calls,
    locks: Locks,
    facts: Facts,
}

impl PosixHandle {
    pub(super) fn open(
        path: &Path,
        how: &OpenHow,
        calls: Calls,
        assumed: Option<&FileSystem>,
    ) -> io::Result<Self> {
        let buffered = sys::open(path, flags(how), how.permissions)?;
        if sys::is_directory(buffered.as_fd())? {
            return Err(io::Error::from_raw_os_error(libc::EISDIR));
        }
        let facts = detect::facts(buffered.as_fd(), assumed)?;
        Ok(PosixHandle {
            file: Closing::new(Descriptor { buffered }),
            how: how.clone(),
            locks: Locks::new(how.access, calls.clone()),
            calls,
            facts,
        })
    }

    /// A pass for a call that changes the file.
    fn enter_to_change(&self) -> io::Result<Pass<Descriptor>> {
        let pass = self.file.enter()?;
        self.how.access.require(Direction::Write)?;
        Ok(pass)
    }

    /// A pass for a transfer.
    fn enter_to_move(&self, batch: &Batch<'_>) -> io::Result<Pass<Descriptor>> {
        let pass = self.file.enter()?;
        self.how.access.require(batch.direction())?;
        Ok(pass)
    }
}

/// The flags of `open(2)`.
fn flags(how: &OpenHow) -> libc::c_int {
    let access = match how.access {
        Access::Read => libc::O_RDONLY,
        Access::Write => libc::O_WRONLY,
        Access::ReadWrite => libc::O_RDWR,
    };
    let create = match how.create {
        Create::Never => 0,
        Create::IfMissing => libc::O_CREAT,
        Create::Exclusive => libc::O_CREAT | libc::O_EXCL,
    };
    access | create
}

impl Handle for PosixHandle {
    fn transfer(&self, batch: &Batch<'_>) -> Outcome {
        match self.enter_to_move(batch) {
            Ok(pass) => transfer::run(&self.calls, pass.buffered.as_fd(), batch),
            Err(error) => Outcome::failed(0, error),
        }
    }

    fn submit(&self, batch: Batch<'static>, done: Completion) {
        let pass = match self.enter_to_move(&batch) {
            Ok(pass) => pass,
            Err(error) => return done(Outcome::failed(0, error)),
        };
        let calls = self.calls.clone();
        background::spawn(Box::new(move || {
            let outcome = transfer::run(&calls, pass.buffered.as_fd(), &batch);
            // `done` may close the file, which waits for passes.
            drop(pass);
            done(outcome);
        }));
    }

    fn size(&self) -> io::Result<u64> {
        sys::size(self.file.enter()?.buffered.as_fd())
    }

    fn set_size(&self, bytes: u64) -> io::Result<()> {
        let pass = self.enter_to_change()?;
        let end = i64::try_from(bytes).map_err(|_| beyond_files(0, bytes))?;
        self.calls.make(SystemCall::Truncate, 0, |_| {
            sys::truncate(pass.buffered.as_fd(), end)
        })
    }

    fn preallocate(&self, bytes: u64) -> io::Result<()> {
        let pass = self.enter_to_change()?;
        preallocate::run(&self.calls, pass.buffered.as_fd(), bytes)
    }

    fn sync(&self) -> io::Result<()> {
        let pass = self.file.enter()?;
        self.calls
            .make(SystemCall::Sync, 0, |_| sys::sync(pass.buffered.as_fd()))
    }

    fn lock(&self, range: Range<u64>, mode: LockMode) -> io::Result<RangeLock> {
        let lock = self.locks.take(&self.file, range, mode, Patience::Wait)?;
        Ok(lock.expect("a patient request ends with the lock or an error"))
    }

    fn try_lock(&self, range: Range<u64>, mode: LockMode) -> io::Result<Option<RangeLock>> {
        self.locks.take(&self.file, range, mode, Patience::Try)
    }

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn close(&self) -> io::Result<()> {
        sys::close(self.file.close()?.buffered)
    }
}

impl fmt::Debug for PosixHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PosixHandle")
            .field("how", &self.how)
            .finish_non_exhaustive()
    }
}
