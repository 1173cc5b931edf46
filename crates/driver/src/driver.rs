//! The two traits that every file system implements.

use std::{fmt::Debug, io, ops::Range, path::Path, sync::Arc};

use crate::{
    Advice, Batch, Capabilities, Direction, Facts, FileIdentity, LockMode, OpenHow, RangeLock,
};

/// A file system, or the way we speak to one.
pub trait Driver: Send + Sync + Debug {
    /// Its name, as in `PREFIX:path` and in explanations.
    fn name(&self) -> &'static str;

    /// What it can do, as data.
    fn capabilities(&self) -> Capabilities;

    /// Opens a file for one rank.
    fn open(&self, path: &Path, how: &OpenHow) -> io::Result<Arc<dyn Handle>>;

    /// Removes a file. Handles that are open keep it alive.
    fn delete(&self, path: &Path) -> io::Result<()>;
}

/// An open file of one rank: one open file description, used by any number
/// of threads.
///
/// # Who continues
/// The driver does. A short or interrupted system call never surfaces: an
/// [`Outcome`] without an error is complete, or ends at the end of the file
/// (reads only). Callers need no loop of their own.
///
/// # Memory after the prefix
/// When a read stops at the end of the file, memory beyond the counted prefix
/// is untouched, provided that the offsets of the batch ascend. After an
/// error it is unspecified, as drivers may move pieces in parallel. A write
/// that fails may have written later pieces of the batch, and no byte outside
/// of it.
pub trait Handle: Send + Sync + Debug {
    /// Moves a batch and returns when done. A transfer of any size is split
    /// as needed.
    fn transfer(&self, batch: &Batch<'_>) -> Outcome;

    /// Moves a batch in the background. `done` is called exactly once, from a
    /// thread of the driver, for a batch that fails at once too; it may submit
    /// again, lock what the caller of `submit` holds, and close the file if
    /// this was the last transfer in flight; it must not wait for others.
    ///
    /// Never blocks: what the engine cannot start yet is queued.
    fn submit(&self, batch: Batch<'static>, done: Completion);

    /// How a short transfer of this direction goes on the calling thread. A
    /// driver that says nothing is never trusted to be prompt.
    fn latency(&self, _direction: Direction) -> Latency {
        Latency::Unknown
    }

    /// Moves a batch on the calling thread if that needs no storage. `None` if
    /// it might: then the whole batch is still to be moved, though some of it
    /// may have been. Meant for [`Latency::WhereCached`].
    fn transfer_cached(&self, _batch: &Batch<'_>) -> Option<Outcome> {
        None
    }

    /// Size in bytes.
    fn size(&self) -> io::Result<u64>;

    /// Truncates or extends; what is added reads as zeros.
    fn set_size(&self, bytes: u64) -> io::Result<()>;

    /// Reserves storage for the first `bytes` bytes, extending the file if
    /// shorter, never touching data.
    fn preallocate(&self, bytes: u64) -> io::Result<()>;

    /// Makes what was written durable.
    fn sync(&self) -> io::Result<()>;

    /// Tells the file system how the file will be used. It may do nothing.
    fn advise(&self, advice: Advice);

    /// Waits for and takes a lock on a byte range, against other ranks and
    /// other threads of this one. An empty range locks nothing. Exclusive
    /// locks need a handle that writes.
    ///
    /// Locks of one handle do not nest: a thread that asks for a range that
    /// conflicts with one it holds waits for ever.
    fn lock(&self, range: Range<u64>, mode: LockMode) -> io::Result<RangeLock>;

    /// As [`Handle::lock`], but `None` where it would wait.
    fn try_lock(&self, range: Range<u64>, mode: LockMode) -> io::Result<Option<RangeLock>>;

    /// Whether an earlier failure that no call could return is still to be
    /// reported, such as a lock that could not be released. Transfers, locks,
    /// sizes and close report it too; a call of several ranks asks first, so
    /// that none waits for the lock meanwhile.
    fn check(&self) -> io::Result<()> {
        Ok(())
    }

    /// What is known about this file's file system.
    fn facts(&self) -> &Facts;

    /// What tells the file from others, wherever it is seen from; `None` where
    /// its name does.
    fn identity(&self) -> io::Result<Option<FileIdentity>> {
        Ok(None)
    }

    /// When the file was read last, in seconds: what a process marks a file with
    /// that another may see too, because no program minds.
    fn access_time(&self) -> io::Result<i64> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sets [`access_time`](Handle::access_time).
    fn set_access_time(&self, seconds: i64) -> io::Result<()> {
        let _ = seconds;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Closes, reporting what `close(2)` says, after the calls in progress on
    /// this handle (background ones too) have ended. Later calls fail; locks
    /// still held are released.
    fn close(&self) -> io::Result<()>;
}

/// Whether a transfer of a few pages can be made on the calling thread without
/// keeping it for longer than a copy of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Latency {
    /// It may take as long as storage takes.
    Unknown,
    /// [`Handle::transfer_cached`] tells.
    WhereCached,
    /// It goes to memory: the page cache of a local file system, or files that
    /// are memory themselves.
    Memory,
}

/// What a transfer did: the bytes of the longest prefix of the batch that was
/// moved.
#[derive(Debug)]
pub struct Outcome {
    /// Bytes moved, as a prefix of the batch.
    pub bytes: u64,
    /// Why it stopped, unless complete or at end of file.
    pub error: Option<io::Error>,
}

impl Outcome {
    /// Moved `bytes`, and either that was all or the file ended.
    pub fn moved(bytes: u64) -> Self {
        Outcome { bytes, error: None }
    }

    /// Moved `bytes`, then failed.
    pub fn failed(bytes: u64, error: io::Error) -> Self {
        Outcome {
            bytes,
            error: Some(error),
        }
    }

    /// The bytes moved, or the error.
    pub fn into_result(self) -> io::Result<u64> {
        match self.error {
            None => Ok(self.bytes),
            Some(error) => Err(error),
        }
    }
}

/// Called with the outcome of a submitted batch.
pub type Completion = Box<dyn FnOnce(Outcome) + Send>;
