//! An open file.

use std::{fmt, io, ops::Range};

use super::uncached::Uncached;
use crate::{
    Access, Advice, Batch, Completion, Direction, Facts, FileIdentity, Handle, LockMode, MountView,
    OpenHow, Outcome, RangeLock, WriterFlag, background,
    batch::beyond_files,
    closing::{Closing, ResourceGuard},
    lock::below_end,
    posix::{Calls, Descriptor, PosixHandle, SystemCall, sys},
};

/// Magic number of NFS.
const NFS_MAGIC: u32 = 0x6969;

/// One rank's open file: a POSIX handle for everything but data, and a descriptor
/// without a cache.
pub(super) struct NfsHandle {
    posix: PosixHandle,
    /// `None` on other file systems.
    data: Option<Closing<Uncached>>,
    /// Whether `data` can read although the handle is for writing only.
    reads_back: bool,
    calls: Calls,
}

impl NfsHandle {
    /// Fails if the file is on NFS and cannot be opened without a cache.
    pub(super) fn new(posix: PosixHandle, how: &OpenHow, calls: Calls) -> io::Result<NfsHandle> {
        let file = posix.enter()?;
        if sys::magic(file.buffered())? != NFS_MAGIC {
            drop(file);
            return Ok(NfsHandle {
                posix,
                data: None,
                reads_back: false,
                calls,
            });
        }
        let reopen = |access| Uncached::reopen(file.buffered(), access);
        // The user may be allowed to write the file but not to read it.
        let readable = match how.access {
            Access::Write if how.read_back => reopen(libc::O_RDWR),
            _ => None,
        };
        let reads_back = readable.is_some();
        let data = readable.or_else(|| {
            reopen(match how.access {
                Access::Read => libc::O_RDONLY,
                Access::Write => libc::O_WRONLY,
                Access::ReadWrite => libc::O_RDWR,
            })
        });
        let data = data.ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::Unsupported,
                "the file is on NFS and cannot be opened without a cache (O_DIRECT)",
            )
        })?;
        drop(file);
        Ok(NfsHandle {
            posix,
            data: Some(Closing::new(data)),
            reads_back,
            calls,
        })
    }

    /// Passes for a transfer.
    fn enter(
        &self,
        data: &Closing<Uncached>,
        batch: &Batch<'_>,
    ) -> io::Result<(ResourceGuard<Descriptor>, ResourceGuard<Uncached>)> {
        let posix = match batch.direction() {
            Direction::Read if self.reads_back => {
                batch.require_addressable()?;
                self.posix.enter()?
            }
            _ => self.posix.enter_to_move(batch)?,
        };
        Ok((posix, data.enter()?))
    }
}

impl Handle for NfsHandle {
    fn transfer(&self, batch: &Batch<'_>) -> Outcome {
        let Some(data) = &self.data else {
            return self.posix.transfer(batch);
        };
        match self.enter(data, batch) {
            Ok((_posix, data)) => data.transfer(&self.calls, batch),
            Err(error) => Outcome::failed(0, error),
        }
    }

    fn submit(&self, batch: Batch<'static>, done: Completion) {
        let Some(data) = &self.data else {
            return self.posix.submit(batch, done);
        };
        let (posix, data) = match self.enter(data, &batch) {
            Ok(guards) => guards,
            Err(error) => return background::fail(error, done),
        };
        let calls = self.calls.clone();
        background::spawn(Box::new(move || {
            let outcome = data.transfer(&calls, &batch);
            // `done` may close the file, which waits for guards.
            drop((posix, data));
            done(outcome);
        }));
    }

    fn size(&self) -> io::Result<u64> {
        sys::fresh_size(self.posix.enter()?.buffered())
    }

    fn set_size(&self, bytes: u64) -> io::Result<()> {
        self.posix.set_size(bytes)
    }

    /// Where the server cannot reserve storage, the file is only extended:
    /// writing zeros at an end that this client remembers could overwrite what
    /// another has appended.
    fn preallocate(&self, bytes: u64) -> io::Result<()> {
        let file = self.posix.enter_to_change()?;
        let end = i64::try_from(bytes).map_err(|_| beyond_files(0, bytes))?;
        if end == 0 {
            return Ok(());
        }
        let allocate = |_| sys::allocate(file.buffered(), end);
        match self.calls.make(SystemCall::Allocate, 0, allocate) {
            Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS)) => {
            }
            result => return result,
        }
        if sys::fresh_size(file.buffered())? >= bytes {
            return Ok(());
        }
        let extend = |_| sys::truncate(file.buffered(), end);
        self.calls.make(SystemCall::Truncate, 0, extend)
    }

    fn sync(&self) -> io::Result<()> {
        self.posix.sync()
    }

    fn advise(&self, advice: Advice) {
        self.posix.advise(advice);
    }

    fn lock(&self, range: Range<u64>, mode: LockMode) -> io::Result<RangeLock> {
        let lock = self.posix.lock(below_end(&range), mode)?;
        Ok(RangeLock::new(range, mode, move || drop(lock)))
    }

    fn try_lock(&self, range: Range<u64>, mode: LockMode) -> io::Result<Option<RangeLock>> {
        let lock = self.posix.try_lock(below_end(&range), mode)?;
        Ok(lock.map(|lock| RangeLock::new(range, mode, move || drop(lock))))
    }

    fn check(&self) -> io::Result<()> {
        self.posix.check()
    }

    fn facts(&self) -> &Facts {
        self.posix.facts()
    }

    fn identity(&self) -> io::Result<Option<FileIdentity>> {
        self.posix.identity()
    }

    fn mount(&self) -> io::Result<Option<MountView>> {
        self.posix.mount()
    }

    fn bypasses_cache(&self) -> bool {
        self.data.is_some()
    }

    fn reads_back(&self) -> bool {
        self.reads_back
    }

    fn writer_flag(&self) -> io::Result<Option<WriterFlag>> {
        match &self.data {
            None => Ok(None),
            Some(_) => WriterFlag::of(self.posix.enter()?.buffered()).map(Some),
        }
    }

    fn access_time(&self) -> io::Result<i64> {
        self.posix.access_time()
    }

    fn set_access_time(&self, seconds: i64) -> io::Result<()> {
        self.posix.set_access_time(seconds)
    }

    /// `close(2)` of the last descriptor reports errors of write-back, of which
    /// there is none: data has been on the server since its write returned.
    fn close(&self) -> io::Result<()> {
        let data = match &self.data {
            None => Ok(()),
            Some(data) => data
                .close()
                .and_then(|data| sys::close(data.into_descriptor())),
        };
        self.posix.close().and(data)
    }
}

impl fmt::Debug for NfsHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NfsHandle")
            .field("posix", &self.posix)
            .finish_non_exhaustive()
    }
}
