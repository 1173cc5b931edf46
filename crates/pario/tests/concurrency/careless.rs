//! A driver that does what tests of concurrency fear: it takes its time
//! before every transfer, so that others get in between, and it can ignore
//! locks. What passes in its presence does not pass by luck; and what fails
//! with it shows that the test can fail.

use std::{io, ops::Range, path::Path, sync::Arc, thread, time::Duration};

use pario_driver::{
    Advice, Batch, Capabilities, Completion, Direction, Driver, Facts, Handle, Latency, Lease,
    LockMode, OpenHow, Outcome, RangeLock, SharedDescription, Suspension, WriterFlag, WriterGroup,
};

/// Long enough for another thread to be scheduled.
const PAUSE: Duration = Duration::from_micros(30);

/// What becomes of locks and leases.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Locks {
    Kept,
    Ignored,
}

#[derive(Debug)]
pub(crate) struct Careless {
    driver: Arc<dyn Driver>,
    locks: Locks,
}

impl Careless {
    pub(crate) fn over(driver: impl Driver + 'static, locks: Locks) -> Arc<dyn Driver> {
        Arc::new(Careless {
            driver: Arc::new(driver),
            locks,
        })
    }
}

impl Driver for Careless {
    fn name(&self) -> &'static str {
        "careless"
    }

    fn capabilities(&self) -> Capabilities {
        self.driver.capabilities()
    }

    fn open(&self, path: &Path, how: &OpenHow) -> io::Result<Arc<dyn Handle>> {
        Ok(Arc::new(CarelessHandle {
            handle: self.driver.open(path, how)?,
            locks: self.locks,
        }))
    }

    fn delete(&self, path: &Path) -> io::Result<()> {
        self.driver.delete(path)
    }
}

#[derive(Debug)]
struct CarelessHandle {
    handle: Arc<dyn Handle>,
    locks: Locks,
}

impl CarelessHandle {
    fn locked(&self, range: Range<u64>) -> Range<u64> {
        match self.locks {
            Locks::Kept => range,
            Locks::Ignored => 0..0,
        }
    }
}

/// A lease that nobody granted.
#[derive(Debug)]
struct Forged;

impl Lease for Forged {
    fn is_intact(&self) -> bool {
        true
    }
}

impl Suspension for Forged {}

impl Handle for CarelessHandle {
    fn transfer(&self, batch: &Batch<'_>) -> Outcome {
        thread::sleep(PAUSE);
        self.handle.transfer(batch)
    }

    fn latency(&self, direction: Direction) -> Latency {
        self.handle.latency(direction)
    }

    fn transfer_cached(&self, batch: &Batch<'_>) -> Option<Outcome> {
        self.handle.transfer_cached(batch)
    }

    fn submit(&self, batch: Batch<'static>, done: Completion) {
        self.handle.submit(batch, done);
    }

    fn size(&self) -> io::Result<u64> {
        self.handle.size()
    }

    fn set_size(&self, bytes: u64) -> io::Result<()> {
        self.handle.set_size(bytes)
    }

    fn preallocate(&self, bytes: u64) -> io::Result<()> {
        self.handle.preallocate(bytes)
    }

    fn advise(&self, advice: Advice) {
        self.handle.advise(advice);
    }

    fn sync(&self) -> io::Result<()> {
        self.handle.sync()
    }

    fn lock(&self, range: Range<u64>, mode: LockMode) -> io::Result<RangeLock> {
        self.handle.lock(self.locked(range), mode)
    }

    fn try_lock(&self, range: Range<u64>, mode: LockMode) -> io::Result<Option<RangeLock>> {
        self.handle.try_lock(self.locked(range), mode)
    }

    fn lease(&self) -> Option<Box<dyn Lease>> {
        match self.locks {
            Locks::Kept => self.handle.lease(),
            Locks::Ignored => Some(Box::new(Forged)),
        }
    }

    fn suspend(&self) -> Option<Box<dyn Suspension + '_>> {
        match self.locks {
            Locks::Kept => self.handle.suspend(),
            Locks::Ignored => Some(Box::new(Forged)),
        }
    }

    fn offer_description(&self, ranks: usize) -> Option<SharedDescription> {
        self.handle.offer_description(ranks)
    }

    fn adopt_description(&self, offered: &SharedDescription) -> bool {
        self.handle.adopt_description(offered)
    }

    fn writer_group(&self) -> Option<Arc<WriterGroup>> {
        match self.locks {
            Locks::Kept => self.handle.writer_group(),
            Locks::Ignored => None,
        }
    }

    fn writer_flag(&self) -> io::Result<Option<WriterFlag>> {
        self.handle.writer_flag()
    }

    fn facts(&self) -> &Facts {
        self.handle.facts()
    }

    fn close(&self) -> io::Result<()> {
        self.handle.close()
    }
}
