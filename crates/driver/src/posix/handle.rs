//! An open file.

use std::{
    fmt, io,
    num::NonZeroU32,
    ops::Range,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use super::{
    announcements,
    calls::{Calls, SystemCall},
    descriptor::{Descriptor, ListMethod, Means, Striped, access_flags, create_flags},
    lease::{self, FileLease, Suspended},
    locks::Locks,
    passing::SharedDescription,
    preallocate::{self, Filling},
    sys, transfer,
    writer_group::{Lost, WriterGroup},
};
use crate::{
    Access, Advice, AsyncMethod, Batch, Completion, Creation, Direction, Facts, FileIdentity,
    FileSystem, Handle, IoMode, Latency, Lease, LockMode, MountView, OnePiece, OpenHow, Outcome,
    Placement, RangeLock, ScatteredWrites, Suspension, WriterFlag, background,
    batch::beyond_files,
    closing::{Closing, ResourceGuard, Visit, lock},
    control::Control,
    creation,
    detect::{self, Detected},
    gpfs,
    lock::{OnConflict, below_end},
    lustre::{self, GroupLock},
    mapped::{Copier, Populate, Stores},
    uring,
    write_back::WriteBack,
};

/// One rank's open file.
pub(crate) struct PosixHandle {
    pub(super) file: Closing<Descriptor>,
    how: OpenHow,
    calls: Calls,
    pub(super) locks: Locks,
    facts: Facts,
    view: MountView,
    creation: Option<Creation>,
    control: Control,
    group_lock: GroupLock,
    /// Whether the file can be leased.
    is_leasable: bool,
    /// What was last advised.
    advice: Mutex<Option<Advice>>,
    /// Why the file could not be opened again after a suspension.
    lost: Lost,
    /// The ranks that use the same description.
    group: Mutex<Option<Arc<WriterGroup>>>,
    written: WriteBack,
}

/// What a handle takes over from its driver.
pub(crate) struct Setup {
    pub(crate) calls: Calls,
    pub(crate) lists: ListMethod,
    pub(crate) assumed: Option<FileSystem>,
    pub(crate) control: Control,
}

impl PosixHandle {
    pub(crate) fn open(path: &Path, how: &OpenHow, setup: Setup) -> io::Result<Self> {
        uring::renew();
        let Setup {
            calls,
            lists,
            assumed,
            control,
        } = setup;
        let flags = access_flags(how) | create_flags(how);
        let (opened, creation) = creation::open(path, flags, how, assumed.as_ref(), &control)?;
        let file = Descriptor::of(opened, how, calls.clone(), lists)?;
        let Detected {
            facts,
            may_use_ring,
            view,
        } = detect::facts(file.buffered(), assumed.as_ref(), &control)?;
        let file = match may_use_ring {
            true => file,
            false => file.without_ring(),
        };
        let file = match facts.file_system.has_late_sizes() {
            true => file.refreshing_sizes(),
            false => file,
        };
        let file = match stores(lists, how, assumed.as_ref(), &facts) {
            Some(stores) => file.with_stores(stores),
            None => file,
        };
        let is_leasable = is_leasable(how, assumed.as_ref(), &facts);
        let file = match stripes(how, &facts) {
            Some(striped) => file.with_stripes(striped),
            None => file,
        };
        Ok(PosixHandle {
            file: Closing::new(file),
            how: how.clone(),
            locks: Locks::new(how.access, calls.clone()),
            calls,
            facts,
            view,
            creation,
            control,
            group_lock: GroupLock::default(),
            is_leasable,
            advice: Mutex::default(),
            lost: Lost::default(),
            group: Mutex::default(),
            written: WriteBack::default(),
        })
    }

    /// Advises a new description as the last one was.
    pub(super) fn renew_advice(&self, file: &Descriptor) {
        if let Some(advice) = *lock(&self.advice) {
            sys::advise(file.buffered(), advice);
        }
    }

    /// Notes that the file could not be opened again. It counts as closed from now on.
    pub(super) fn note_lost(&self, error: &io::Error) {
        let message = format!(
            "the file was closed while another rank used it alone, and could not be opened \
             again: {error}"
        );
        let _ = self.lost.set((error.kind(), message));
    }

    /// The error of a call on a closed file.
    fn closed(&self, error: io::Error) -> io::Error {
        match self.lost.get() {
            Some((kind, message)) => io::Error::new(*kind, message.clone()),
            None => error,
        }
    }

    /// A pass, unless a lock of this handle's is stuck: someone waits for it,
    /// so the next call of whatever kind reports it.
    pub(crate) fn enter(&self) -> io::Result<ResourceGuard<Descriptor>> {
        self.locks.check_released(&self.file)?;
        self.file.enter().map_err(|error| self.closed(error))
    }

    /// A pass for a call that changes the file.
    pub(crate) fn enter_to_change(&self) -> io::Result<ResourceGuard<Descriptor>> {
        let pass = self.enter()?;
        self.how.access.require(Direction::Write)?;
        Ok(pass)
    }

    /// A pass for a transfer that may continue after the call.
    pub(crate) fn enter_to_move(&self, batch: &Batch<'_>) -> io::Result<ResourceGuard<Descriptor>> {
        let pass = self.enter()?;
        self.check_movable(batch)?;
        Ok(pass)
    }

    /// A pass for a transfer that ends with the call.
    #[inline]
    fn visit_to_move(&self, batch: &Batch<'_>) -> io::Result<Visit<'_, Descriptor>> {
        self.locks.check_released(&self.file)?;
        let pass = self.file.visit().map_err(|error| self.closed(error))?;
        self.check_movable(batch)?;
        Ok(pass)
    }

    /// As [`visit_to_move`](Self::visit_to_move), for one piece.
    #[inline]
    fn visit_to_move_one(&self, one: &OnePiece<'_>) -> io::Result<Visit<'_, Descriptor>> {
        self.locks.check_released(&self.file)?;
        let pass = self.file.visit().map_err(|error| self.closed(error))?;
        self.how.access.require(one.direction())?;
        one.require_addressable()?;
        Ok(pass)
    }

    #[inline]
    fn check_movable(&self, batch: &Batch<'_>) -> io::Result<()> {
        self.how.access.require(batch.direction())?;
        batch.require_addressable()
    }

    /// The group, if this rank uses the same description as others.
    fn shared_group(&self) -> Option<Arc<WriterGroup>> {
        let group = lock(&self.group).clone();
        group.filter(|group| group.is_shared())
    }

    /// The part of a range that is locked.
    fn lockable(&self, range: Range<u64>) -> Range<u64> {
        match self.facts.file_system.rewrites_under_locks() {
            true => below_end(&range),
            false => range,
        }
    }

    /// Gives this handle a description of its own, which locks need.
    fn unshare(&self) -> io::Result<()> {
        self.shared_group().map_or(Ok(()), |group| group.unshare())
    }

    /// Joins the ranks that use a description, while nothing uses the file, if it could be
    /// opened again. `share` returns what they share and this rank's part in it.
    fn join<T>(
        &self,
        share: impl FnOnce(&Descriptor) -> io::Result<(T, WriterGroup)>,
    ) -> Option<T> {
        if !self.is_leasable || !lease::last_long_enough() {
            return None;
        }
        let (file, vacancy) = self.file.suspend()?;
        let can_join = self.locks.is_empty() && lease::way_back(&file).is_ok();
        let joined = can_join.then(|| share(&file).ok()).flatten();
        let joined = joined.map(|(shared, group)| {
            *lock(&self.group) = Some(Arc::new(group));
            shared
        });
        vacancy.put_back(file);
        joined
    }

    fn new_group(&self, lock_file: BorrowedFd<'_>) -> io::Result<WriterGroup> {
        WriterGroup::new(self.file.weak(), lock_file, self.lost.clone())
    }

    /// Puts written data on storage.
    fn flush(&self, file: &Descriptor) -> io::Result<()> {
        let synced = self
            .calls
            .make(SystemCall::Sync, 0, |_| sys::sync(file.buffered()));
        self.written.settle(synced)
    }

    /// Whether the ring takes this batch.
    fn goes_by_ring(&self, file: &Descriptor, batch: &Batch<'_>) -> bool {
        let wanted = match self.how.asynchronous {
            AsyncMethod::Automatic => {
                batch.pieces().len() <= RING_PIECES_MAX && uring::is_available()
            }
            AsyncMethod::Uring => true,
            AsyncMethod::Pool => false,
        };
        wanted && file.may_use_ring() && file.is_plain(batch)
    }
}

/// The stores that a file allows.
fn stores(
    lists: ListMethod,
    how: &OpenHow,
    assumed: Option<&FileSystem>,
    facts: &Facts,
) -> Option<Stores> {
    let file_system = &facts.file_system;
    let (copier, is_allowed) = match lists {
        ListMethod::Ring => return None,
        ListMethod::Mapping(Copier::Program) => (Copier::Program, file_system.keeps_stores()),
        ListMethod::Mapping(Copier::Kernel) => {
            // Interceptors are to see all calls.
            let is_hidden_allowed = how.scattered == ScatteredWrites::Automatic
                && how.asynchronous != AsyncMethod::Pool;
            // What is assumed may not be so.
            let is_allowed = assumed.is_none() && is_hidden_allowed && file_system.refuses_stores();
            (Copier::Kernel, is_allowed)
        }
    };
    let populate = match (copier, file_system) {
        (Copier::Kernel, FileSystem::Tmpfs) => Populate::Read,
        _ => Populate::Write,
    };
    // Blocks longer than pages are huge pages, which are mapped by other rules.
    let has_plain_pages = facts.block_size <= sys::page_size();
    (is_allowed && has_plain_pages).then(|| Stores::new(copier, populate, how.stored_pieces))
}

/// Whether leases tell who else has the file open: all accesses go through this kernel, and
/// those of this handle through one description.
fn is_leasable(how: &OpenHow, assumed: Option<&FileSystem>, facts: &Facts) -> bool {
    let is_buffered = [Direction::Read, Direction::Write]
        .into_iter()
        .all(|direction| how.mode(direction) == IoMode::Buffered);
    how.access == Access::ReadWrite
        && is_buffered
        && assumed.is_none()
        && facts.file_system.grants_leases()
}

/// How lists of stripes are moved: those on several servers at the same time.
fn stripes(how: &OpenHow, facts: &Facts) -> Option<Striped> {
    let placement = facts.placement.as_ref()?;
    let is_wanted = how.scattered == ScatteredWrites::Automatic && placement.striping().count > 1;
    is_wanted.then(|| Striped {
        placement: placement.clone(),
        // Interceptors are to see all calls.
        means: match how.asynchronous {
            AsyncMethod::Pool => Means::Threads,
            AsyncMethod::Automatic | AsyncMethod::Uring => Means::Ring,
        },
    })
}

/// Longer lists go to a thread unless the ring is asked for: a thread makes
/// one call after the other without a round trip through the ring's server.
const RING_PIECES_MAX: usize = 16;

impl Handle for PosixHandle {
    fn transfer(&self, batch: &Batch<'_>) -> Outcome {
        match self.visit_to_move(batch) {
            Ok(file) => file.transfer(batch),
            Err(error) => Outcome::failed(0, error),
        }
    }

    fn transfer_one(&self, one: &OnePiece<'_>) -> Outcome {
        match self.visit_to_move_one(one) {
            Ok(file) => file.transfer_one(one),
            Err(error) => Outcome::failed(0, error),
        }
    }

    fn submit(&self, batch: Batch<'static>, done: Completion) {
        let file = match self.enter_to_move(&batch) {
            Ok(file) => file,
            Err(error) => return background::fail(error, done),
        };
        if self.goes_by_ring(&file, &batch) {
            return uring::submit(uring::Operation::new(file, batch, done));
        }
        background::spawn(Box::new(move || {
            let outcome = file.transfer(&batch);
            // `done` may close the file, which waits for passes.
            drop(file);
            done(outcome);
        }));
    }

    /// Libraries that intercept libc may not know the call that reads what is
    /// cached; who asks for the pool wants them to see everything.
    fn latency(&self, direction: Direction) -> Latency {
        let known = match self.how.mode(direction) {
            IoMode::Direct => Latency::Unknown,
            IoMode::Buffered => self.facts.file_system.latency(direction),
        };
        match (known, self.how.asynchronous) {
            (Latency::WhereCached, AsyncMethod::Pool) => Latency::Unknown,
            _ => known,
        }
    }

    fn transfer_cached(&self, batch: &Batch<'_>) -> Option<Outcome> {
        let file = self.visit_to_move(batch).ok()?;
        file.is_plain(batch)
            .then(|| transfer::read_cached(file.buffered(), batch))?
    }

    fn stores_list(&self, pieces: u64, span: u64) -> bool {
        let Ok(file) = self.file.enter() else {
            return false;
        };
        self.how.mode(Direction::Write) == IoMode::Buffered
            && file
                .stores()
                .is_some_and(|stores| stores.take(pieces, span))
    }

    fn size(&self) -> io::Result<u64> {
        sys::size(self.enter()?.buffered())
    }

    fn set_size(&self, bytes: u64) -> io::Result<()> {
        let file = self.enter_to_change()?;
        let end = i64::try_from(bytes).map_err(|_| beyond_files(0, bytes))?;
        let _alone = file.stores().map(Stores::exclude);
        self.calls.make(SystemCall::Truncate, 0, |_| {
            sys::truncate(file.buffered(), end)
        })
    }

    fn preallocate(&self, bytes: u64) -> io::Result<()> {
        let file = self.enter_to_change()?;
        let filling = Filling::on(self.facts.client);
        preallocate::run(&self.calls, file.buffered(), bytes, filling)
    }

    fn sync(&self) -> io::Result<()> {
        let file = self.enter()?;
        self.flush(&file)
    }

    fn advise(&self, advice: Advice) {
        *lock(&self.advice) = Some(advice);
        let Ok(file) = self.file.enter() else { return };
        match self.facts.file_system {
            FileSystem::Gpfs => gpfs::advise(&self.control, file.buffered(), advice),
            _ => sys::advise(file.buffered(), advice),
        }
    }

    fn lock(&self, range: Range<u64>, mode: LockMode) -> io::Result<RangeLock> {
        let unshare = || self.unshare();
        let range = self.lockable(range);
        let lock = self
            .locks
            .take(&self.file, range, mode, OnConflict::Wait, unshare)?;
        Ok(lock.expect("a patient request ends with the lock or an error"))
    }

    fn try_lock(&self, range: Range<u64>, mode: LockMode) -> io::Result<Option<RangeLock>> {
        let unshare = || self.unshare();
        let range = self.lockable(range);
        self.locks
            .take(&self.file, range, mode, OnConflict::Try, unshare)
    }

    fn writer_flag(&self) -> io::Result<Option<WriterFlag>> {
        match self.facts.file_system.rewrites_under_locks() {
            false => Ok(None),
            true => WriterFlag::of(self.enter()?.buffered()).map(Some),
        }
    }

    fn lock_group(&self, group: NonZeroU32) -> io::Result<bool> {
        let file = self.enter_to_change()?;
        // Direct writes use another descriptor, which would wait for this lock.
        let is_direct = self.how.mode(Direction::Write) == IoMode::Direct;
        if self.facts.file_system != FileSystem::Lustre || is_direct {
            return Ok(false);
        }
        self.group_lock
            .take(&self.control, file.buffered(), group)
            .map(|()| true)
    }

    fn unlock_group(&self) -> io::Result<()> {
        let file = self.file.enter()?;
        self.group_lock
            .release(&self.control, file.buffered(), || self.flush(&file))
    }

    fn lock_ahead(&self, ranges: &[Range<u64>]) {
        // Direct writes leave the locks to the servers.
        let is_direct = self.how.mode(Direction::Write) == IoMode::Direct;
        if self.facts.file_system != FileSystem::Lustre || is_direct {
            return;
        }
        if let Ok(file) = self.file.enter() {
            lustre::lock_ahead::request(&self.control, file.buffered(), ranges);
        }
    }

    fn lease(&self) -> Option<Box<dyn Lease>> {
        if !self.is_leasable {
            return None;
        }
        let lease = FileLease::take(self.file.enter().ok()?)?;
        Some(Box::new(lease))
    }

    fn suspend(&self) -> Option<Box<dyn Suspension + '_>> {
        if !self.is_leasable {
            return None;
        }
        if self.shared_group().is_some() {
            return Some(Box::new(StillOpen));
        }
        Some(Box::new(Suspended::new(self)?))
    }

    fn offer_description(&self, ranks: usize) -> Option<SharedDescription> {
        self.join(|file| {
            let shared = SharedDescription {
                file: file.duplicate()?,
                lock_file: announcements::file(ranks)?,
            };
            let group = self.new_group(shared.lock_file.as_fd())?;
            Ok((shared, group))
        })
    }

    fn adopt_description(&self, offered: &SharedDescription) -> bool {
        let joined = self.join(|file| {
            // First: the group is the way to a description of one's own again.
            let group = self.new_group(offered.lock_file.as_fd())?;
            file.adopt(offered.file.as_fd())?;
            Ok(((), group))
        });
        joined.is_some()
    }

    fn writer_group(&self) -> Option<Arc<WriterGroup>> {
        self.shared_group()
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

    fn current_placement(&self) -> Option<Placement> {
        let file = self.file.enter().ok()?;
        detect::placement(file.buffered(), &self.facts.file_system, &self.control)
    }

    fn identity(&self) -> io::Result<Option<FileIdentity>> {
        let file = self.file.enter()?;
        FileIdentity::of(file.buffered(), &self.facts).map(Some)
    }

    fn mount(&self) -> io::Result<Option<MountView>> {
        Ok(Some(self.view.clone()))
    }

    fn node_path(&self) -> Option<PathBuf> {
        let file = self.file.enter().ok()?;
        let number = file.buffered().as_raw_fd();
        Some(format!("/proc/{}/fd/{number}", std::process::id()).into())
    }

    fn access_time(&self) -> io::Result<i64> {
        sys::access_time(self.file.enter()?.buffered())
    }

    fn set_access_time(&self, seconds: i64) -> io::Result<()> {
        sys::set_access_time(self.file.enter()?.buffered(), seconds)
    }

    fn close(&self) -> io::Result<()> {
        // Closing releases the lock, but someone may have waited for it.
        let released = self.locks.check_released(&self.file);
        let file = self.file.close().map_err(|error| self.closed(error))?;
        if let Some(group) = lock(&self.group).take() {
            group.close(file.buffered());
        }
        let closed = self.written.settle(file.close());
        closed.and(self.file.replaced_outcome()).and(released)
    }
}

/// In the place of a suspension where the ranks have one description: there is nothing to close.
#[derive(Debug)]
struct StillOpen;

impl Suspension for StillOpen {}

impl fmt::Debug for PosixHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PosixHandle")
            .field("how", &self.how)
            .finish_non_exhaustive()
    }
}
