//! File systems behind one small trait. (skeleton: the owner of this crate completes it)
mod batch;
pub use batch::{Batch, Direction, Piece};

use std::{fmt::Debug, io, ops::Range, path::Path, sync::Arc};

/// A file system, or the way we speak to one.
pub trait Driver: Send + Sync + Debug {
    /// Its name, as in `PREFIX:path` and in explanations.
    fn name(&self) -> &'static str;
    /// What it can do, as data.
    fn capabilities(&self) -> Capabilities;
    /// Opens a file for one rank.
    fn open(&self, path: &Path, how: &OpenHow) -> io::Result<Arc<dyn Handle>>;
    /// Removes a file.
    fn delete(&self, path: &Path) -> io::Result<()>;
}

/// An open file of one rank: one open file description, used by any number of threads.
pub trait Handle: Send + Sync + Debug {
    /// Moves a batch; returns when done. Short and interrupted system calls are continued,
    /// a transfer of any size is split as needed. EOF on read ends it.
    fn transfer(&self, batch: &Batch<'_>) -> Outcome;
    /// Moves a batch in the background; `done` is called once, from any thread.
    fn submit(&self, batch: Batch<'static>, done: Completion);
    /// Size in bytes.
    fn size(&self) -> io::Result<u64>;
    /// Truncates or extends.
    fn set_size(&self, bytes: u64) -> io::Result<()>;
    /// Reserves storage for the first `bytes` bytes, extending the file if shorter, never touching data.
    fn preallocate(&self, bytes: u64) -> io::Result<()>;
    /// Makes what was written durable.
    fn sync(&self) -> io::Result<()>;
    /// Waits for and takes a lock on a byte range, against other ranks and other threads of this one.
    fn lock(&self, range: Range<u64>, mode: LockMode) -> io::Result<RangeLock>;
    /// What is known about this file's file system.
    fn facts(&self) -> &Facts;
    /// Closes, reporting what `close(2)` says. Later calls fail.
    fn close(&self) -> io::Result<()>;
}

/// What a transfer did: the bytes of the longest prefix of the batch that was moved.
#[derive(Debug)]
pub struct Outcome {
    /// Bytes moved, as a prefix of the batch.
    pub bytes: u64,
    /// Why it stopped, unless complete or at end of file.
    pub error: Option<io::Error>,
}

/// Called with the outcome of a submitted batch.
pub type Completion = Box<dyn FnOnce(Outcome) + Send>;

/// Placeholder
#[derive(Debug, Clone, Copy)] pub struct Capabilities;
/// Placeholder
#[derive(Debug, Clone)] pub struct OpenHow;
/// Placeholder
#[derive(Debug, Clone)] pub struct Facts;
/// Placeholder
#[derive(Debug, Clone, Copy)] pub enum LockMode { /// shared
 Shared, /// exclusive
 Exclusive }
/// Placeholder
#[derive(Debug)] pub struct RangeLock;
