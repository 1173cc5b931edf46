//! A driver that tells what is asked of the one below it, and lets a test
//! delay or reject it.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    fmt, fs, io,
    ops::Range,
    os::fd::AsFd,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use pario_driver::{
    Access, Advice, Batch, Capabilities, Completion, Direction, Driver, Facts, Handle, LockMode,
    OpenHow, Outcome, Posix, RangeLock, WriterFlag,
};

/// A call of a driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Open,
    /// Pieces of the file: first byte and length.
    Read(Vec<(u64, usize)>),
    Write(Vec<(u64, usize)>),
    SetSize(u64),
    Preallocate(u64),
    Sync,
    /// Asked for; a lock that is had is `Locked`.
    Lock,
    Locked(Range<u64>),
    Unlocked(Range<u64>),
    Close,
    Delete,
}

type Hook = dyn Fn(&Event) -> io::Result<()> + Send + Sync;

struct Shared {
    hook: Box<Hook>,
    log: Mutex<Vec<Event>>,
}

impl Shared {
    /// Asks the hook first: what it rejects did not happen.
    fn note(&self, event: Event) -> io::Result<()> {
        (self.hook)(&event)?;
        self.log.lock().expect("no hook panics").push(event);
        Ok(())
    }
}

/// The driver. Its clones share one log.
#[derive(Clone)]
pub(crate) struct Probe {
    inner: Arc<dyn Driver>,
    shared: Arc<Shared>,
    /// What this one claims about the file system.
    change_facts: fn(&mut Facts),
    /// Whether its handles claim to bypass the caches of NFS clients.
    is_uncached: bool,
    /// Whether handles for writing only can read what will be written back.
    reads_back: bool,
}

impl Probe {
    /// On POSIX files; `hook` is called before each call and may reject it.
    pub(crate) fn new(
        hook: impl Fn(&Event) -> io::Result<()> + Send + Sync + 'static,
    ) -> Arc<Probe> {
        Probe::over(Arc::new(Posix::default()), hook)
    }

    pub(crate) fn over(
        inner: Arc<dyn Driver>,
        hook: impl Fn(&Event) -> io::Result<()> + Send + Sync + 'static,
    ) -> Arc<Probe> {
        let shared = Shared {
            hook: Box::new(hook),
            log: Mutex::default(),
        };
        Arc::new(Probe {
            inner,
            shared: Arc::new(shared),
            change_facts: |_| (),
            is_uncached: false,
            reads_back: false,
        })
    }

    /// One that only listens, with other facts about the file system.
    pub(crate) fn with_facts(change_facts: fn(&mut Facts)) -> Arc<Probe> {
        let probe = Probe::listening();
        Arc::new(Probe {
            change_facts,
            ..(*probe).clone()
        })
    }

    /// One that only listens, and stands for several NFS clients.
    pub(crate) fn uncached() -> Arc<Probe> {
        let probe = Probe::listening();
        Arc::new(Probe {
            is_uncached: true,
            ..(*probe).clone()
        })
    }

    /// As [`Probe::uncached`], where users may read what they may write.
    pub(crate) fn reading_back() -> Arc<Probe> {
        let probe = Probe::uncached();
        Arc::new(Probe {
            reads_back: true,
            ..(*probe).clone()
        })
    }

    /// One that only listens.
    pub(crate) fn listening() -> Arc<Probe> {
        Probe::new(|_| Ok(()))
    }

    /// What happened since the last time.
    pub(crate) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.shared.log.lock().expect("no hook panics"))
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Probe").field(&self.inner).finish()
    }
}

impl Driver for Probe {
    fn name(&self) -> &'static str {
        "probe"
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn open(&self, path: &Path, how: &OpenHow) -> io::Result<Arc<dyn Handle>> {
        self.shared.note(Event::Open)?;
        let reads_back = self.reads_back && how.read_back;
        let inner = match reads_back {
            true => {
                let access = Access::ReadWrite;
                let how = how.clone();
                self.inner.open(path, &OpenHow { access, ..how })?
            }
            false => self.inner.open(path, how)?,
        };
        let mut facts = inner.facts().clone();
        (self.change_facts)(&mut facts);
        Ok(Arc::new(ProbeHandle {
            inner,
            shared: self.shared.clone(),
            facts,
            uncached: self.is_uncached.then(|| path.to_owned()),
            reads_back,
        }))
    }

    fn delete(&self, path: &Path) -> io::Result<()> {
        self.shared.note(Event::Delete)?;
        self.inner.delete(path)
    }
}

struct ProbeHandle {
    inner: Arc<dyn Handle>,
    shared: Arc<Shared>,
    facts: Facts,
    /// The file, if the handle claims to bypass caches.
    uncached: Option<PathBuf>,
    reads_back: bool,
}

impl ProbeHandle {
    fn watch(&self, lock: RangeLock) -> io::Result<RangeLock> {
        let (range, mode) = (lock.range(), lock.mode());
        self.shared.note(Event::Locked(range.clone()))?;
        let (shared, unlocked) = (self.shared.clone(), range.clone());
        Ok(RangeLock::new(range, mode, move || {
            let _ = shared.note(Event::Unlocked(unlocked));
            drop(lock);
        }))
    }
}

fn describe(batch: &Batch<'_>) -> Event {
    let pieces = batch.pieces().iter();
    let pieces = pieces.map(|piece| (piece.offset, piece.len)).collect();
    match batch.direction() {
        Direction::Read => Event::Read(pieces),
        Direction::Write => Event::Write(pieces),
    }
}

fn transfer(inner: &dyn Handle, shared: &Shared, batch: &Batch<'_>) -> Outcome {
    match shared.note(describe(batch)) {
        Ok(()) => inner.transfer(batch),
        Err(error) => Outcome::failed(0, error),
    }
}

impl Handle for ProbeHandle {
    fn transfer(&self, batch: &Batch<'_>) -> Outcome {
        transfer(&*self.inner, &self.shared, batch)
    }

    /// On an I/O thread, so that a hook may take its time.
    fn submit(&self, batch: Batch<'static>, done: Completion) {
        let (inner, shared) = (self.inner.clone(), self.shared.clone());
        pario_driver::spawn(Box::new(move || {
            let outcome = transfer(&*inner, &shared, &batch);
            done(outcome);
        }));
    }

    fn size(&self) -> io::Result<u64> {
        self.inner.size()
    }

    fn set_size(&self, bytes: u64) -> io::Result<()> {
        self.shared.note(Event::SetSize(bytes))?;
        self.inner.set_size(bytes)
    }

    fn preallocate(&self, bytes: u64) -> io::Result<()> {
        self.shared.note(Event::Preallocate(bytes))?;
        self.inner.preallocate(bytes)
    }

    fn advise(&self, advice: Advice) {
        self.inner.advise(advice);
    }

    fn sync(&self) -> io::Result<()> {
        self.shared.note(Event::Sync)?;
        self.inner.sync()
    }

    fn lock(&self, range: Range<u64>, mode: LockMode) -> io::Result<RangeLock> {
        self.shared.note(Event::Lock)?;
        self.watch(self.inner.lock(range, mode)?)
    }

    fn try_lock(&self, range: Range<u64>, mode: LockMode) -> io::Result<Option<RangeLock>> {
        self.shared.note(Event::Lock)?;
        let lock = self.inner.try_lock(range, mode)?;
        lock.map(|lock| self.watch(lock)).transpose()
    }

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn bypasses_cache(&self) -> bool {
        self.uncached.is_some()
    }

    fn reads_back(&self) -> bool {
        self.reads_back
    }

    fn writer_flag(&self) -> io::Result<Option<WriterFlag>> {
        let open = |path| WriterFlag::of(fs::File::open(path)?.as_fd());
        self.uncached.as_ref().map(open).transpose()
    }

    fn close(&self) -> io::Result<()> {
        self.shared.note(Event::Close)?;
        self.inner.close()
    }
}

impl fmt::Debug for ProbeHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProbeHandle").field(&self.inner).finish()
    }
}
