//! An open file.

use std::{
    fmt, io,
    ops::Range,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{library::OpenFile, locks::Locks, transfer};
use crate::{
    Access, Advice, Batch, Client, Coherence, Completion, Creation, Direction, Facts, FileIdentity,
    FileSystem, Handle, LockMode, LockReach, OpenHow, Outcome, Placement, RangeLock, background,
    batch::beyond_files,
    closing::{Closing, ResourceGuard},
    lock::OnConflict,
    write_back::WriteBack,
};

/// Preferred transfer size of files whose layout is not known.
const BLOCK_BYTES: u64 = 4 << 20;

/// One rank's open file.
pub(super) struct CephHandle {
    file: Closing<OpenFile>,
    access: Access,
    locks: Locks,
    facts: Facts,
    creation: Option<Creation>,
    node_path: Option<PathBuf>,
    identity: FileIdentity,
    written: Arc<Written>,
}

/// What was found when the file was opened.
pub(super) struct Found {
    pub(super) placement: Option<Placement>,
    pub(super) creation: Option<Creation>,
    /// The path by which others can open it.
    pub(super) node_path: Option<PathBuf>,
}

/// What has become of the data that was written.
#[derive(Debug, Default)]
struct Written {
    /// Whether there is any that may not be on the servers.
    is_dirty: AtomicBool,
    /// The first failure to put it there.
    back: WriteBack,
}

impl CephHandle {
    pub(super) fn new(file: OpenFile, how: &OpenHow, found: Found) -> io::Result<Self> {
        let (inode, user) = (file.inode(), file.user());
        let number = inode.number();
        let cluster = inode.attribute(c"ceph.cluster_fsid", user)?;
        let born = inode.attributes(user)?.born;
        Ok(CephHandle {
            identity: FileIdentity::in_cluster(&FileSystem::Ceph, &cluster, number, born),
            facts: facts(found.placement),
            file: Closing::new(file),
            access: how.access,
            locks: Locks::new(how.access),
            creation: found.creation,
            node_path: found.node_path,
            written: Arc::default(),
        })
    }

    /// A guard, unless a lock of this handle could not be released: someone waits for
    /// it, so the next call of whatever kind reports it.
    fn enter(&self) -> io::Result<ResourceGuard<OpenFile>> {
        self.locks.check_released(&self.file)?;
        self.file.enter()
    }

    /// A guard for a call that changes the file.
    fn enter_to_change(&self) -> io::Result<ResourceGuard<OpenFile>> {
        let guard = self.enter()?;
        self.access.require(Direction::Write)?;
        Ok(guard)
    }

    /// A guard for a transfer.
    fn enter_to_move(&self, batch: &Batch<'_>) -> io::Result<ResourceGuard<OpenFile>> {
        let guard = self.enter()?;
        self.access.require(batch.direction())?;
        batch.require_addressable()?;
        if batch.direction() == Direction::Write {
            self.written.is_dirty.store(true, Ordering::Relaxed);
        }
        Ok(guard)
    }
}

fn facts(placement: Option<Placement>) -> Facts {
    let striping = placement.as_ref().map(Placement::striping);
    Facts {
        file_system: FileSystem::Ceph,
        mount_point: None,
        block_size: striping.map_or(BLOCK_BYTES, |striping| striping.unit),
        direct_alignment: None,
        striping,
        placement,
        lock_granularity: None,
        coherence: Coherence::Everywhere,
        client: Client::Library,
        source: String::new(),
        locks: LockReach::Everywhere,
    }
}

impl Handle for CephHandle {
    fn transfer(&self, batch: &Batch<'_>) -> Outcome {
        match self.enter_to_move(batch) {
            Ok(file) => transfer::run(&file, self.facts.placement.as_ref(), batch),
            Err(error) => Outcome::failed(0, error),
        }
    }

    fn submit(&self, batch: Batch<'static>, done: Completion) {
        let file = match self.enter_to_move(&batch) {
            Ok(file) => file,
            Err(error) => return background::fail(error, done),
        };
        let placement = self.facts.placement.clone();
        background::spawn(Box::new(move || {
            let outcome = transfer::run(&file, placement.as_ref(), &batch);
            // `done` may close the file, which waits for guards.
            drop(file);
            done(outcome);
        }));
    }

    fn size(&self) -> io::Result<u64> {
        let file = self.enter()?;
        Ok(file.inode().attributes(file.user())?.size)
    }

    fn set_size(&self, bytes: u64) -> io::Result<()> {
        let file = self.enter_to_change()?;
        i64::try_from(bytes).map_err(|_| beyond_files(0, bytes))?;
        file.inode().set_size(bytes, file.user())
    }

    /// Only extends the file: CephFS does not reserve storage.
    fn preallocate(&self, bytes: u64) -> io::Result<()> {
        let file = self.enter_to_change()?;
        i64::try_from(bytes).map_err(|_| beyond_files(0, bytes))?;
        let (inode, user) = (file.inode(), file.user());
        match inode.attributes(user)?.size < bytes {
            true => inode.set_size(bytes, user),
            false => Ok(()),
        }
    }

    fn sync(&self) -> io::Result<()> {
        let file = self.enter()?;
        self.written.is_dirty.store(false, Ordering::Relaxed);
        self.written.back.settle(file.sync())
    }

    fn advise(&self, _advice: Advice) {}

    fn lock(&self, range: Range<u64>, mode: LockMode) -> io::Result<RangeLock> {
        let lock = self.locks.take(&self.file, range, mode, OnConflict::Wait)?;
        Ok(lock.expect("a request that may wait ends with the lock or an error"))
    }

    fn try_lock(&self, range: Range<u64>, mode: LockMode) -> io::Result<Option<RangeLock>> {
        self.locks.take(&self.file, range, mode, OnConflict::Try)
    }

    fn check(&self) -> io::Result<()> {
        self.locks.check_released(&self.file)
    }

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn creation(&self) -> Option<&Creation> {
        self.creation.as_ref()
    }

    fn identity(&self) -> io::Result<Option<FileIdentity>> {
        Ok(Some(self.identity))
    }

    fn node_path(&self) -> Option<PathBuf> {
        self.node_path.clone()
    }

    fn access_time(&self) -> io::Result<i64> {
        let file = self.enter()?;
        Ok(file.inode().attributes(file.user())?.accessed)
    }

    fn set_access_time(&self, seconds: i64) -> io::Result<()> {
        let file = self.enter()?;
        file.inode().set_access_time(seconds, file.user())
    }

    /// Puts written data on the servers first: it is in the memory of this process,
    /// which may exit.
    fn close(&self) -> io::Result<()> {
        // Closing releases the lock, but someone may have waited for it.
        let released = self.locks.check_released(&self.file);
        let file = self.file.close()?;
        let synced = match self.written.is_dirty.load(Ordering::Relaxed) {
            true => file.sync(),
            false => Ok(()),
        };
        let closed = file.close();
        self.written.back.settle(synced.and(closed)).and(released)
    }
}

impl fmt::Debug for CephHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CephHandle")
            .field("access", &self.access)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}
