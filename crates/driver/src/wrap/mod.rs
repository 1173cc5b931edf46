//! Wrappers around drivers that inject faults, slow down or record operations.

mod fault;
mod throttle;
mod trace;

pub use fault::{Fault, Faults};
pub use throttle::Throttle;
pub use trace::{Event, Log};

use std::{
    fmt::Debug,
    io,
    num::NonZeroU32,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    Advice, Batch, Capabilities, Completion, Creation, Direction, Driver, Facts, FileIdentity,
    FileSystem, Handle, Latency, Lease, LockMode, MountView, OpenHow, Outcome, Placement,
    RangeLock, SharedDescription, Suspension, WriterFlag, WriterGroup,
};

/// An operation of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// Open a file.
    Open,
    /// Delete a file.
    Delete,
    /// Read, blocking or in the background.
    Read,
    /// Write, blocking or in the background.
    Write,
    /// Query the size.
    Size,
    /// Truncate or extend.
    SetSize,
    /// Reserve storage.
    Preallocate,
    /// Make data durable.
    Sync,
    /// Take a lock.
    Lock,
    /// Release a lock: only as a system call below a driver.
    Unlock,
    /// Close.
    Close,
}

impl Operation {
    /// All operations with a result. Locks are released when dropped.
    pub const ALL: &'static [Operation] = &[
        Operation::Open,
        Operation::Delete,
        Operation::Read,
        Operation::Write,
        Operation::Size,
        Operation::SetSize,
        Operation::Preallocate,
        Operation::Sync,
        Operation::Lock,
        Operation::Close,
    ];

    /// Operations that move data.
    pub const TRANSFERS: &'static [Operation] = &[Operation::Read, Operation::Write];
}

impl From<Direction> for Operation {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Read => Operation::Read,
            Direction::Write => Operation::Write,
        }
    }
}

/// A call to a wrapped driver that moves no data.
#[derive(Clone, Debug)]
pub struct Call<'c> {
    /// The operation.
    pub operation: Operation,
    /// The file.
    pub path: &'c Path,
    /// The byte range, empty if there is none.
    pub range: Range<u64>,
}

/// Intercepts the calls to a driver. Clones share their state.
pub trait Wrapper: Clone + Debug + Send + Sync + 'static {
    /// Name of the wrapping driver.
    const NAME: &'static str;

    /// Makes a call that moves no data, or fails it.
    fn call<T>(&self, call: &Call<'_>, make: impl FnOnce() -> io::Result<T>) -> io::Result<T>;

    /// Moves a batch.
    fn transfer(&self, file: &Wrapped<dyn Handle>, batch: &Batch<'_>) -> Outcome;

    /// Latency of short transfers, given that of the wrapped file.
    fn latency(&self, inner: Latency) -> Latency {
        inner
    }

    /// Moves a batch in the background.
    fn submit(&self, file: &Wrapped<dyn Handle>, batch: Batch<'static>, done: Completion);
}

/// A wrapped file, as passed to its wrapper.
#[derive(Debug)]
pub struct Wrapped<H: ?Sized> {
    /// Path of the file.
    pub path: Arc<Path>,
    /// The wrapped file.
    pub inner: Arc<H>,
}

/// A driver wrapped around another one.
///
/// ```
/// use pario_driver::{WrappedDriver, Driver, Fault, Faults, Memory, Operation};
/// use std::{path::Path, sync::Arc};
/// let faults = Faults::new();
/// let driver = WrappedDriver::new(Arc::new(Memory::separate()), faults.clone());
/// faults.fail_nth(1, &[Operation::Delete], Fault::Error(5));
/// assert!(driver.delete(Path::new("file")).is_err());
/// assert_eq!(faults.fired(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct WrappedDriver<W> {
    inner: Arc<dyn Driver>,
    wrapper: W,
}

impl<W: Wrapper> WrappedDriver<W> {
    /// Wraps a driver.
    pub fn new(inner: Arc<dyn Driver>, wrapper: W) -> Self {
        WrappedDriver { inner, wrapper }
    }
}

impl<W: Wrapper> Driver for WrappedDriver<W> {
    fn name(&self) -> &'static str {
        W::NAME
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn is_mounted(&self) -> bool {
        self.inner.is_mounted()
    }

    fn open(&self, path: &Path, how: &OpenHow) -> io::Result<Arc<dyn Handle>> {
        let call = Call {
            operation: Operation::Open,
            path,
            range: 0..0,
        };
        let inner = self.wrapper.call(&call, || self.inner.open(path, how))?;
        let file = Wrapped {
            path: Arc::from(path),
            inner,
        };
        Ok(Arc::new(WrappedHandle {
            file,
            wrapper: self.wrapper.clone(),
        }))
    }

    fn file_system(&self, path: &Path) -> io::Result<FileSystem> {
        self.inner.file_system(path)
    }

    fn delete(&self, path: &Path) -> io::Result<()> {
        let call = Call {
            operation: Operation::Delete,
            path,
            range: 0..0,
        };
        self.wrapper.call(&call, || self.inner.delete(path))
    }
}

/// A handle of a wrapped driver.
#[derive(Debug)]
struct WrappedHandle<W> {
    file: Wrapped<dyn Handle>,
    wrapper: W,
}

impl<W: Wrapper> WrappedHandle<W> {
    fn call<T>(
        &self,
        operation: Operation,
        range: Range<u64>,
        make: impl FnOnce(&dyn Handle) -> io::Result<T>,
    ) -> io::Result<T> {
        let call = Call {
            operation,
            path: &self.file.path,
            range,
        };
        self.wrapper.call(&call, || make(&*self.file.inner))
    }
}

impl<W: Wrapper> Handle for WrappedHandle<W> {
    fn transfer(&self, batch: &Batch<'_>) -> Outcome {
        self.wrapper.transfer(&self.file, batch)
    }

    fn submit(&self, batch: Batch<'static>, done: Completion) {
        self.wrapper.submit(&self.file, batch, done);
    }

    /// Transfers that are fast only when cached are made in the background, where
    /// the wrapper sees them.
    fn latency(&self, direction: Direction) -> Latency {
        match self.wrapper.latency(self.file.inner.latency(direction)) {
            Latency::Memory => Latency::Memory,
            _ => Latency::Unknown,
        }
    }

    fn stores_list(&self, pieces: u64, span: u64) -> bool {
        self.file.inner.stores_list(pieces, span)
    }

    fn lease(&self) -> Option<Box<dyn Lease>> {
        self.file.inner.lease()
    }

    fn suspend(&self) -> Option<Box<dyn Suspension + '_>> {
        self.file.inner.suspend()
    }

    fn offer_description(&self, ranks: usize) -> Option<SharedDescription> {
        self.file.inner.offer_description(ranks)
    }

    fn adopt_description(&self, offered: &SharedDescription) -> bool {
        self.file.inner.adopt_description(offered)
    }

    fn writer_group(&self) -> Option<Arc<WriterGroup>> {
        self.file.inner.writer_group()
    }

    fn size(&self) -> io::Result<u64> {
        self.call(Operation::Size, 0..0, |file| file.size())
    }

    fn set_size(&self, bytes: u64) -> io::Result<()> {
        self.call(Operation::SetSize, 0..bytes, |file| file.set_size(bytes))
    }

    fn preallocate(&self, bytes: u64) -> io::Result<()> {
        self.call(Operation::Preallocate, 0..bytes, |file| {
            file.preallocate(bytes)
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.call(Operation::Sync, 0..0, |file| file.sync())
    }

    fn advise(&self, advice: Advice) {
        self.file.inner.advise(advice);
    }

    fn lock(&self, range: Range<u64>, mode: LockMode) -> io::Result<RangeLock> {
        self.call(Operation::Lock, range.clone(), |file| {
            file.lock(range, mode)
        })
    }

    fn try_lock(&self, range: Range<u64>, mode: LockMode) -> io::Result<Option<RangeLock>> {
        self.call(Operation::Lock, range.clone(), |file| {
            file.try_lock(range, mode)
        })
    }

    fn lock_group(&self, group: NonZeroU32) -> io::Result<bool> {
        self.call(Operation::Lock, 0..0, |file| file.lock_group(group))
    }

    fn unlock_group(&self) -> io::Result<()> {
        self.file.inner.unlock_group()
    }

    fn lock_ahead(&self, ranges: &[Range<u64>]) {
        self.file.inner.lock_ahead(ranges);
    }

    fn check(&self) -> io::Result<()> {
        self.file.inner.check()
    }

    fn facts(&self) -> &Facts {
        self.file.inner.facts()
    }

    fn creation(&self) -> Option<&Creation> {
        self.file.inner.creation()
    }

    fn current_placement(&self) -> Option<Placement> {
        self.file.inner.current_placement()
    }

    fn identity(&self) -> io::Result<Option<FileIdentity>> {
        self.file.inner.identity()
    }

    fn mount(&self) -> io::Result<Option<MountView>> {
        self.file.inner.mount()
    }

    fn bypasses_cache(&self) -> bool {
        self.file.inner.bypasses_cache()
    }

    fn reads_back(&self) -> bool {
        self.file.inner.reads_back()
    }

    fn writer_flag(&self) -> io::Result<Option<WriterFlag>> {
        self.file.inner.writer_flag()
    }

    fn node_path(&self) -> Option<PathBuf> {
        self.file.inner.node_path()
    }

    fn access_time(&self) -> io::Result<i64> {
        self.file.inner.access_time()
    }

    fn set_access_time(&self, seconds: i64) -> io::Result<()> {
        self.file.inner.set_access_time(seconds)
    }

    fn close(&self) -> io::Result<()> {
        self.call(Operation::Close, 0..0, |file| file.close())
    }
}
