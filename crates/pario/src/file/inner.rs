//! What an open file consists of.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pario_driver::{Driver, Handle};
use pario_hints::Hints;
use pario_transport::Transport;

use super::{
    Atomicity,
    settings::{CallSettings, CurrentSettings},
};
use crate::{
    Error, ErrorKind, Mode, Result, Unreported,
    access::Buffers,
    agree,
    collective::{Background, CollectiveContext},
    shared_pointer::SharedPointer,
    view::FlattenedView,
    writer_lock::{Pending, WriterLock},
};

/// How often a rank that waits for operations of its own looks after messages.
const ATTEND_EVERY: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) comm: Arc<dyn Transport>,
    /// As the program gave it.
    pub(crate) path: PathBuf,
    /// As the driver knows it.
    pub(crate) driver_path: PathBuf,
    pub(crate) mode: Mode,
    pub(crate) driver: Arc<dyn Driver>,
    /// Why this driver.
    pub(crate) driver_reason: String,
    pub(crate) handle: Arc<dyn Handle>,
    pub(crate) shared_pointer: SharedPointer,
    pub(crate) buffers: Buffers,
    pub(crate) writer_lock: Arc<WriterLock>,
    pub(crate) pending: Pending,
    pub(crate) unreported: Unreported,
    /// Where blocking collective calls take place.
    pub(crate) context: CollectiveContext,
    /// Where nonblocking and split ones do.
    pub(crate) background: Background,
    /// Whether a split collective call is active.
    pub(crate) split: Arc<AtomicBool>,
    pub(crate) state: State,
}

/// What calls change.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) settings: CurrentSettings,
    /// The individual pointer, in etypes.
    pub(crate) pointer: Mutex<u64>,
    pub(crate) closed: AtomicBool,
}

impl Inner {
    /// What a call that begins now goes by.
    pub(crate) fn settings(&self) -> Arc<CallSettings> {
        self.state.settings.get()
    }

    pub(crate) fn hints(&self) -> Arc<Hints> {
        self.settings().hints.clone()
    }

    pub(crate) fn view(&self) -> Arc<FlattenedView> {
        self.settings().view.clone()
    }

    pub(crate) fn pointer(&self) -> MutexGuard<'_, u64> {
        self.state
            .pointer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn atomicity(&self) -> Atomicity {
        self.settings().atomicity
    }

    /// Names the call, the file and the rank in an error.
    pub(crate) fn name_error(&self, error: Error, operation: &'static str) -> Error {
        error
            .in_operation(operation)
            .on_path(&self.path)
            .on_rank(self.comm.rank())
    }

    /// The file is open, and no earlier failure is left to be reported.
    pub(crate) fn check_open(&self) -> Result<()> {
        self.check_not_closed()?;
        Ok(self.handle.check()?)
    }

    pub(crate) fn check_not_closed(&self) -> Result<()> {
        match self.state.closed.load(Ordering::Acquire) {
            false => Ok(()),
            true => Err(Error::new(ErrorKind::Handle, "the file is closed")),
        }
    }

    /// Requests that are pending forbid what changes the file under them. Of
    /// operations whose requests were freed nobody else can tell when they are
    /// over, so they are waited for.
    pub(crate) fn check_idle(&self) -> Result<()> {
        match self.pending.requests() {
            0 => self.wait_for_operations(),
            count => Err(Error::new(
                ErrorKind::FileInUse,
                format!(
                    "{count} nonblocking operations on the file are pending: wait for them first"
                ),
            )),
        }
    }

    /// Waits until no operation is under way, while messages move on.
    pub(super) fn wait_for_operations(&self) -> Result<()> {
        while !self.pending.wait_for_operations(ATTEND_EVERY) {
            self.comm.progress()?;
        }
        self.background.announce_all();
        Ok(())
    }

    /// An active split call forbids other collective ones.
    pub(crate) fn check_no_split(&self) -> Result<()> {
        match self.split.load(Ordering::Acquire) {
            false => Ok(()),
            true => Err(Error::new(
                ErrorKind::FileInUse,
                "a split collective call on the file is active: end it first",
            )),
        }
    }

    pub(crate) fn check_not_sequential(&self) -> Result<()> {
        if self.mode.contains(Mode::SEQUENTIAL) {
            return Err(Error::new(
                ErrorKind::UnsupportedOperation,
                "a file opened SEQUENTIAL does not allow this call",
            ));
        }
        Ok(())
    }

    /// Ends a collective call: all ranks succeed, or all get the same error.
    pub(crate) fn agree<T>(&self, operation: &'static str, mine: Result<T>) -> Result<T> {
        agree::agree(&*self.comm, mine).map_err(|error| self.name_error(error, operation))
    }

    /// Closes without a word to the others; whether it was open.
    pub(crate) fn close_locally(&self) -> bool {
        let was_open = !self.state.closed.swap(true, Ordering::AcqRel);
        if was_open {
            // Nobody is left to hear of an error.
            let _ = self.handle.close();
        }
        was_open
    }
}
