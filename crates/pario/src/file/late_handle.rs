//! A file that this rank opens when it first needs it.
//!
//! Opening late takes no part in creating the file. It goes through the descriptor of
//! a rank of the same node that has the file open, so that it leads to the same file
//! even if the name has changed or gone; without one, through the absolute path of the
//! open. Either way the file is compared with the one that the node's rank opened.

use std::{
    io,
    num::NonZeroU32,
    ops::Range,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use pario_driver::{
    Advice, Batch, Completion, Create, Creation, Direction, Driver, Facts, FileComparison,
    FileIdentity, Handle, Latency, Lease, LockMode, OpenHow, Outcome, Placement, RangeLock,
    SharedDescription, Suspension, WriterGroup,
};

/// How the file is opened.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) driver: Arc<dyn Driver>,
    /// Absolute.
    pub(super) path: PathBuf,
    /// The descriptor of the node's rank that has the file open.
    pub(super) node_path: Option<PathBuf>,
    pub(super) how: OpenHow,
    /// The file that the node's rank opened.
    pub(super) identity: Option<FileIdentity>,
}

impl Opening {
    /// Whether the file can be opened through the node's descriptor, as far as that
    /// can be known without opening it.
    pub(super) fn is_reachable(&self, facts: &Facts) -> bool {
        let Some(path) = &self.node_path else {
            return false;
        };
        if !self.driver.is_mounted() {
            // What the driver needs is there; only opening shows more.
            return self.driver.file_system(path).is_ok();
        }
        let found = FileIdentity::at(path, self.how.access, &facts.file_system);
        found.is_ok_and(|found| self.is_same(Some(found)))
    }

    fn is_same(&self, found: Option<FileIdentity>) -> bool {
        match (self.identity, found) {
            (Some(expected), Some(found)) => expected.compare(&found) == FileComparison::Same,
            // Names identify the files of such drivers.
            (expected, found) => expected.is_none() && found.is_none(),
        }
    }

    fn open(&self) -> io::Result<Arc<dyn Handle>> {
        if let Some(path) = &self.node_path
            && let Ok(Some(handle)) = self.open_at(path)
        {
            return Ok(handle);
        }
        self.open_at(&self.path)?.ok_or_else(|| {
            let message = format!(
                "{:?} is no longer the file that was opened: it has been replaced, and this rank \
                 had not opened it yet",
                self.path
            );
            io::Error::new(io::ErrorKind::NotFound, message)
        })
    }

    /// `None` if the path leads to another file.
    fn open_at(&self, path: &Path) -> io::Result<Option<Arc<dyn Handle>>> {
        let how = self.how.clone().create(Create::Never);
        let handle = self.driver.open(path, &how)?;
        if self.is_same(handle.identity()?) {
            return Ok(Some(handle));
        }
        handle.close()?;
        Ok(None)
    }
}

/// A handle that opens its file when it is first used.
#[derive(Clone, Debug)]
pub(crate) struct LateHandle(Arc<Late>);

#[derive(Debug)]
struct Late {
    opening: Opening,
    facts: Facts,
    opened: OnceLock<Arc<dyn Handle>>,
    /// Whether the file has been changed through this handle.
    is_changed: AtomicBool,
    state: Mutex<State>,
}

/// What happens before the file is opened.
#[derive(Debug, Default)]
struct State {
    is_closed: bool,
    advice: Vec<Advice>,
}

impl LateHandle {
    pub(super) fn new(opening: Opening, facts: Facts) -> LateHandle {
        LateHandle(Arc::new(Late {
            opening,
            facts,
            opened: OnceLock::new(),
            is_changed: AtomicBool::new(false),
            state: Mutex::default(),
        }))
    }

    /// A handle of a file that is open.
    pub(super) fn opened(opening: Opening, handle: Arc<dyn Handle>) -> LateHandle {
        let late = LateHandle::new(opening, handle.facts().clone());
        let _ = late.0.opened.set(handle);
        late
    }

    /// Opens the file unless it is open.
    pub(super) fn open(&self) -> io::Result<()> {
        self.0.open().map(drop)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.0.opened.get().is_some()
    }

    /// Whether the file can be opened later through the node's descriptor.
    pub(super) fn is_reachable(&self) -> bool {
        self.0.opening.is_reachable(&self.0.facts)
    }
}

impl Late {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A failure is not kept: the next call tries again.
    fn open(&self) -> io::Result<&Arc<dyn Handle>> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let state = self.state();
        if state.is_closed {
            return Err(io::Error::other("the file is closed"));
        }
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let handle = self.opening.open().map_err(|error| {
            let message = format!(
                "this rank did not open the file until now, and cannot: {error} (deferred open; \
                 the hint pario_deferred_open=disable opens it on all ranks at once)"
            );
            io::Error::new(error.kind(), message)
        })?;
        state
            .advice
            .iter()
            .for_each(|advice| handle.advise(*advice));
        Ok(self.opened.get_or_init(|| handle))
    }

    /// Opens the file for a call that changes it.
    fn open_to_change(&self) -> io::Result<&Arc<dyn Handle>> {
        let handle = self.open()?;
        self.is_changed.store(true, Ordering::Release);
        Ok(handle)
    }

    fn open_to_move(&self, batch: &Batch<'_>) -> io::Result<&Arc<dyn Handle>> {
        match batch.direction() {
            Direction::Read => self.open(),
            Direction::Write => self.open_to_change(),
        }
    }
}

/// Keeps a file from being opened.
#[derive(Debug)]
struct Unopened<'a> {
    _state: MutexGuard<'a, State>,
}

impl Suspension for Unopened<'_> {}

impl Handle for LateHandle {
    fn transfer(&self, batch: &Batch<'_>) -> Outcome {
        match self.0.open_to_move(batch) {
            Ok(handle) => handle.transfer(batch),
            Err(error) => Outcome::failed(0, error),
        }
    }

    fn submit(&self, batch: Batch<'static>, done: Completion) {
        if self.is_open() {
            return match self.0.open_to_move(&batch) {
                Ok(handle) => handle.submit(batch, done),
                Err(error) => done(Outcome::failed(0, error)),
            };
        }
        // Opening may wait for the file system, and the caller must not.
        let late = self.0.clone();
        pario_driver::spawn(Box::new(move || match late.open_to_move(&batch) {
            Ok(handle) => handle.submit(batch, done),
            Err(error) => done(Outcome::failed(0, error)),
        }));
    }

    fn latency(&self, direction: Direction) -> Latency {
        let opened = self.0.opened.get();
        opened.map_or(Latency::Unknown, |handle| handle.latency(direction))
    }

    fn transfer_cached(&self, batch: &Batch<'_>) -> Option<Outcome> {
        self.0.opened.get()?.transfer_cached(batch)
    }

    fn stores_list(&self, pieces: u64, span: u64) -> bool {
        let opened = self.0.opened.get();
        opened.is_some_and(|handle| handle.stores_list(pieces, span))
    }

    fn size(&self) -> io::Result<u64> {
        self.0.open()?.size()
    }

    fn set_size(&self, bytes: u64) -> io::Result<()> {
        self.0.open_to_change()?.set_size(bytes)
    }

    fn preallocate(&self, bytes: u64) -> io::Result<()> {
        self.0.open_to_change()?.preallocate(bytes)
    }

    /// Only ranks that have changed the file have something to make durable.
    fn sync(&self) -> io::Result<()> {
        match self.0.opened.get() {
            Some(handle) if self.0.is_changed.load(Ordering::Acquire) => handle.sync(),
            _ => Ok(()),
        }
    }

    fn advise(&self, advice: Advice) {
        if let Advice::AccessRange { .. } = advice {
            // The access follows, and reports if the file cannot be opened.
            let _ = self.0.open();
        }
        let mut state = self.0.state();
        match self.0.opened.get() {
            Some(handle) => handle.advise(advice),
            None if state.advice.last() == Some(&advice) => {}
            None if matches!(
                advice,
                Advice::AccessRange { .. } | Advice::FreeRange { .. }
            ) => {}
            None => state.advice.push(advice),
        }
    }

    fn lock(&self, range: Range<u64>, mode: LockMode) -> io::Result<RangeLock> {
        self.0.open()?.lock(range, mode)
    }

    fn try_lock(&self, range: Range<u64>, mode: LockMode) -> io::Result<Option<RangeLock>> {
        self.0.open()?.try_lock(range, mode)
    }

    fn lock_group(&self, group: NonZeroU32) -> io::Result<bool> {
        self.0.open()?.lock_group(group)
    }

    fn lock_ahead(&self, ranges: &[Range<u64>]) {
        // The write follows, and reports if the file cannot be opened.
        if let Ok(handle) = self.0.open() {
            handle.lock_ahead(ranges);
        }
    }

    fn lease(&self) -> Option<Box<dyn Lease>> {
        self.0.opened.get()?.lease()
    }

    /// A file that is not open yet cannot be opened during the suspension.
    fn suspend(&self) -> Option<Box<dyn Suspension + '_>> {
        let state = self.0.state();
        match self.0.opened.get() {
            Some(handle) => handle.suspend(),
            None => Some(Box::new(Unopened { _state: state })),
        }
    }

    fn offer_description(&self, ranks: usize) -> Option<SharedDescription> {
        self.0.opened.get()?.offer_description(ranks)
    }

    fn adopt_description(&self, offered: &SharedDescription) -> bool {
        let opened = self.0.opened.get();
        opened.is_some_and(|handle| handle.adopt_description(offered))
    }

    fn writer_group(&self) -> Option<Arc<WriterGroup>> {
        self.0.opened.get()?.writer_group()
    }

    fn unlock_group(&self) -> io::Result<()> {
        let opened = self.0.opened.get();
        opened.map_or(Ok(()), |handle| handle.unlock_group())
    }

    fn creation(&self) -> Option<&Creation> {
        self.0.opened.get()?.creation()
    }

    fn current_placement(&self) -> Option<Placement> {
        self.0.opened.get()?.current_placement()
    }

    fn check(&self) -> io::Result<()> {
        self.0.opened.get().map_or(Ok(()), |handle| handle.check())
    }

    fn facts(&self) -> &Facts {
        &self.0.facts
    }

    fn identity(&self) -> io::Result<Option<FileIdentity>> {
        match self.0.opened.get() {
            Some(handle) => handle.identity(),
            None => Ok(self.0.opening.identity),
        }
    }

    fn node_path(&self) -> Option<PathBuf> {
        self.0.opened.get()?.node_path()
    }

    fn access_time(&self) -> io::Result<i64> {
        self.0.open()?.access_time()
    }

    fn set_access_time(&self, seconds: i64) -> io::Result<()> {
        self.0.open()?.set_access_time(seconds)
    }

    fn close(&self) -> io::Result<()> {
        self.0.state().is_closed = true;
        self.0.opened.get().map_or(Ok(()), |handle| handle.close())
    }
}
