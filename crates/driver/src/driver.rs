//! The two traits that drivers implement.

use std::{
    fmt::Debug,
    io,
    num::NonZeroU32,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    Advice, Batch, Capabilities, Creation, Direction, Facts, FileIdentity, FileSystem, Lease,
    LockMode, MountView, OnePiece, OpenHow, Placement, RangeLock, SharedDescription, Suspension,
    WriterFlag, WriterGroup, detect,
};

/// Access to one kind of file system.
pub trait Driver: Send + Sync + Debug {
    /// Name, as in `PREFIX:path` and in explanations.
    fn name(&self) -> &'static str;

    /// What the driver supports.
    fn capabilities(&self) -> Capabilities;

    /// Opens a file for one rank.
    fn open(&self, path: &Path, how: &OpenHow) -> io::Result<Arc<dyn Handle>>;

    /// Deletes a file. Open handles keep it alive.
    fn delete(&self, path: &Path) -> io::Result<()>;

    /// Whether names are paths of this node's kernel, which has the file system
    /// mounted.
    fn is_mounted(&self) -> bool {
        true
    }

    /// The file system of a file that need not exist yet, without opening it.
    fn file_system(&self, path: &Path) -> io::Result<FileSystem> {
        Ok(detect::of_path(path)?.0)
    }
}

/// A file opened by one rank: one open file description, used by any number of
/// threads.
///
/// # Short transfers
/// The driver continues short and interrupted system calls. An [`Outcome`]
/// without an error is complete, or ends at the end of the file (reads only), so
/// callers need no retry loop.
///
/// # Memory after the prefix
/// When a read stops at the end of the file, memory beyond the counted prefix is
/// untouched, provided that the offsets of the batch ascend. After an error it
/// is unspecified, since drivers may move pieces in parallel. A failed write may
/// have written later pieces of the batch, but no byte outside it.
pub trait Handle: Send + Sync + Debug {
    /// Moves a batch and returns when done. Transfers of any size are split as
    /// needed.
    fn transfer(&self, batch: &Batch<'_>) -> Outcome;

    /// Moves one piece on the calling thread, as [`transfer`](Handle::transfer) moves a batch
    /// of it. Short accesses are of this kind, and building a batch would be a part of
    /// their cost.
    fn transfer_one(&self, one: &OnePiece<'_>) -> Outcome {
        self.transfer(&one.batch())
    }

    /// Moves a batch in the background. `done` is called exactly once, on a
    /// thread of the driver, even if the batch fails immediately. It may submit
    /// again, take locks that the caller of `submit` holds, and close the file
    /// if this was the last transfer in flight; it must not wait for other
    /// transfers.
    ///
    /// Never blocks: what cannot be started yet is queued.
    fn submit(&self, batch: Batch<'static>, done: Completion);

    /// Expected latency of a short transfer in this direction on the calling
    /// thread. By default unknown.
    fn latency(&self, _direction: Direction) -> Latency {
        Latency::Unknown
    }

    /// Moves a batch on the calling thread if that needs no storage access.
    /// `None` if it might: the whole batch is then still to be moved, though
    /// parts of it may have been. Meant for [`Latency::WhereCached`].
    fn transfer_cached(&self, _batch: &Batch<'_>) -> Option<Outcome> {
        None
    }

    /// Whether a list of so many pieces, evenly distributed over so many bytes of
    /// the file, would be written through a mapping, many pieces per call. By
    /// default, runs of pieces are written by one call each.
    fn stores_list(&self, _pieces: u64, _span: u64) -> bool {
        false
    }

    /// Size in bytes.
    fn size(&self) -> io::Result<u64>;

    /// Truncates or extends; added bytes read as zeros.
    fn set_size(&self, bytes: u64) -> io::Result<()>;

    /// Reserves storage for the first `bytes` bytes and extends a shorter file.
    /// Never modifies data.
    fn preallocate(&self, bytes: u64) -> io::Result<()>;

    /// Makes written data durable.
    fn sync(&self) -> io::Result<()>;

    /// Tells the file system how the file will be used; may have no effect.
    fn advise(&self, advice: Advice);

    /// Waits for and takes a lock on a byte range, which excludes other ranks
    /// and other threads of this one. An empty range locks nothing. Exclusive
    /// locks need a handle that can write.
    ///
    /// Locks of one handle do not nest: a thread that requests a range that
    /// conflicts with one it holds deadlocks.
    fn lock(&self, range: Range<u64>, mode: LockMode) -> io::Result<RangeLock>;

    /// As [`Handle::lock`], but returns `None` instead of waiting.
    fn try_lock(&self, range: Range<u64>, mode: LockMode) -> io::Result<Option<RangeLock>>;

    /// Takes a lock on the whole file that all handles with the same group hold
    /// together, if the file system has such locks; returns whether it does.
    /// Everyone else waits. Holders must write different pages, and must not
    /// rely on the file system's cache while they hold it.
    fn lock_group(&self, group: NonZeroU32) -> io::Result<bool> {
        let _ = group;
        Ok(false)
    }

    /// Puts written data on the servers and releases
    /// [`lock_group`](Handle::lock_group)'s lock, even if the former fails.
    fn unlock_group(&self) -> io::Result<()> {
        Ok(())
    }

    /// Requests locks on ranges that are about to be written, if the file system
    /// has locks that can be had in advance. The ranges must ascend. Nothing but
    /// time depends on it.
    fn lock_ahead(&self, ranges: &[Range<u64>]) {
        let _ = ranges;
    }

    /// Excludes everyone else from the file. `None` if others have it open, or where
    /// that cannot be known: only the kernel's own file systems can tell.
    fn lease(&self) -> Option<Box<dyn Lease>> {
        None
    }

    /// Closes the file until the returned value is dropped, so that another handle can
    /// have a [`lease`](Handle::lease). `None` if the file is in use, locked, or could
    /// not be opened again.
    fn suspend(&self) -> Option<Box<dyn Suspension + '_>> {
        None
    }

    /// Lets so many ranks, this one included, use the open description of this handle. `None` if the file is in use
    /// or locked, or where leases do not tell who has a file open.
    fn offer_description(&self, ranks: usize) -> Option<SharedDescription> {
        let _ = ranks;
        None
    }

    /// Uses a description of the same file that another rank has offered, in place of this
    /// handle's; returns whether it does. It does not if the file is in use or locked. Locks
    /// on the file need a description that is not shared, so taking one ends this.
    fn adopt_description(&self, offered: &SharedDescription) -> bool {
        let _ = offered;
        false
    }

    /// What coordinates writes with the ranks that use the same description.
    fn writer_group(&self) -> Option<Arc<WriterGroup>> {
        None
    }

    /// Reports an earlier failure that no call could return, such as a lock that
    /// could not be released. Transfers, locks, sizes and close report it too;
    /// collective calls check first, so that no rank waits for the lock.
    fn check(&self) -> io::Result<()> {
        Ok(())
    }

    /// Facts about the file system of this file.
    fn facts(&self) -> &Facts;

    /// How the placement of the file was determined, if this handle created it
    /// on a file system that stripes files.
    fn creation(&self) -> Option<&Creation> {
        None
    }

    /// Where the bytes of the file are now: a file system may decide while the
    /// file is written. Without a query, as in [`facts`](Handle::facts).
    fn current_placement(&self) -> Option<Placement> {
        self.facts().placement.clone()
    }

    /// Identifies the file across processes and nodes; `None` where its name
    /// does.
    fn identity(&self) -> io::Result<Option<FileIdentity>> {
        Ok(None)
    }

    /// How this process sees the file system of the file; `None` if it is not a
    /// mounted one.
    fn mount(&self) -> io::Result<Option<MountView>> {
        Ok(None)
    }

    /// Whether the handle may be used together with handles of other NFS clients:
    /// completed writes are on the server, and reads get what is there.
    fn bypasses_cache(&self) -> bool {
        false
    }

    /// Whether transfers may read although the handle allows only writes, to write back
    /// what lies between the pieces of a write.
    fn reads_back(&self) -> bool {
        false
    }

    /// The flag by which handles of other clients know whether this one writes without
    /// locks; `None` if there is none.
    fn writer_flag(&self) -> io::Result<Option<WriterFlag>> {
        Ok(None)
    }

    /// A path by which processes of this node can open the same file while the
    /// handle is open, even if the file has been renamed or deleted. It may lead
    /// to another file later, so its user compares identities. `None` if there
    /// is none.
    fn node_path(&self) -> Option<PathBuf> {
        None
    }

    /// Last access time in seconds. Processes use it to leave a mark that others
    /// can see, because programs rarely depend on it.
    fn access_time(&self) -> io::Result<i64> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sets [`access_time`](Handle::access_time).
    fn set_access_time(&self, seconds: i64) -> io::Result<()> {
        let _ = seconds;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Closes the file after the calls in progress on this handle, background
    /// transfers included, and reports the error of `close(2)`. Later calls
    /// fail; locks still held are released.
    fn close(&self) -> io::Result<()>;
}

/// Whether a transfer of a few pages on the calling thread takes no longer than
/// a copy of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Latency {
    /// It may take as long as storage does.
    Unknown,
    /// [`Handle::transfer_cached`] decides for a given transfer.
    WhereCached,
    /// It goes to memory: the page cache of a local file system, or a file in
    /// memory.
    Memory,
}

/// The result of a transfer: the length of the longest prefix of the batch that
/// was moved.
#[derive(Debug)]
pub struct Outcome {
    /// Bytes moved, as a prefix of the batch.
    pub bytes: u64,
    /// Why it stopped, unless complete or at the end of the file.
    pub error: Option<io::Error>,
}

impl Outcome {
    /// Moved `bytes`, and either the batch or the file ended.
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
