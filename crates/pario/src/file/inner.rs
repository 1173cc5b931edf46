//! The parts of an open file.

use std::{
    num::NonZeroU32,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pario_driver::{Driver, Handle};
use pario_hints::Hints;
use pario_transport::{Rank, Transport};

use super::{
    Atomicity,
    late_handle::LateHandle,
    settings::{CallSettings, CurrentSettings},
    sharing::FileSharing,
    write_protocol::Writers,
};
use crate::{
    Error, ErrorKind, Mode, Result,
    access::Buffers,
    agree,
    collective::{Background, CollectiveContext},
    collective_call::CollectiveCall,
    shared_pointer::SharedPointer,
    unreported::Unreported,
    view::FlattenedView,
    writer_lock::{Pending, WriterLock},
};

/// How often a rank that waits for its own operations makes progress on messages.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) comm: Arc<dyn Transport>,
    /// As passed to `open`.
    pub(crate) path: PathBuf,
    /// The path without the prefix that selects the driver.
    pub(crate) driver_path: PathBuf,
    pub(crate) mode: Mode,
    pub(crate) driver: Arc<dyn Driver>,
    /// Why this driver was selected.
    pub(crate) driver_reason: String,
    pub(crate) handle: Arc<dyn Handle>,
    /// Through which caches the ranks see the file.
    pub(crate) sharing: FileSharing,
    /// Which ranks opened the file at once, and why.
    pub(crate) opened_by: String,
    /// The handle, if open was deferred.
    pub(crate) late: Option<LateHandle>,
    pub(crate) shared_pointer: SharedPointer,
    pub(crate) writers: Writers,
    pub(crate) buffers: Buffers,
    pub(crate) writer_lock: Arc<WriterLock>,
    /// The group of Lustre's group locks, if writes use them.
    pub(crate) group: Option<NonZeroU32>,
    pub(crate) pending: Pending,
    pub(crate) unreported: Unreported,
    /// For blocking collective calls.
    pub(crate) context: CollectiveContext,
    /// For nonblocking and split collective calls.
    pub(crate) background: Background,
    /// Whether a split collective call is active.
    pub(crate) split: Arc<AtomicBool>,
    pub(crate) state: State,
}

/// State that calls change.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) settings: CurrentSettings,
    /// The individual pointer, in etypes.
    pub(crate) pointer: Mutex<u64>,
    pub(crate) closed: AtomicBool,
}

impl Inner {
    /// The settings for a call that begins now.
    pub(crate) fn settings(&self) -> Arc<CallSettings> {
        self.state.settings.get()
    }

    /// Calls `look` with the current settings. For calls that need them only for a moment:
    /// this takes no reference.
    #[inline]
    pub(crate) fn with_settings<R>(&self, look: impl FnOnce(&CallSettings) -> R) -> R {
        self.state.settings.with(look)
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

    /// Adds the call, the file and the rank to an error.
    pub(crate) fn name_error(&self, error: Error, operation: &'static str) -> Error {
        error
            .in_operation(operation)
            .on_path(&self.path)
            .on_rank(self.comm.rank())
    }

    /// Fails if the file is closed, or with an earlier failure that has not been reported.
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

    /// Fails if requests are pending, for calls that change the file under them. Operations
    /// whose requests were dropped are waited for, because the program cannot tell when they
    /// are done.
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

    /// Waits until no operation is under way, and makes progress on messages.
    pub(super) fn wait_for_operations(&self) -> Result<()> {
        while !self.pending.wait_for_operations(PROGRESS_INTERVAL) {
            self.comm.progress()?;
        }
        self.background.announce_all();
        Ok(())
    }

    /// Fails if a split call is active, which excludes other collective calls.
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

    /// Starts a collective call that moves no data: all ranks go on, or all get the same error.
    pub(crate) fn begin<T>(&self, call: CollectiveCall, mine: Result<T>) -> Result<T> {
        let met = self
            .context
            .meet(self, call, mine.as_ref().err())
            .unwrap_or_else(|| {
                let mine = mine.as_ref().map(drop).map_err(Error::clone);
                agree::agree_in(call.name(), &*self.comm, mine)
            });
        met.and(mine)
    }

    /// As [`begin`](Self::begin), with a message from every rank; returns those of all ranks, by
    /// rank.
    pub(crate) fn begin_with(
        &self,
        call: CollectiveCall,
        mine: Result<Vec<u8>>,
    ) -> Result<Vec<Vec<u8>>> {
        self.meet(call, mine.as_ref().err())?;
        agree::gather_in(call, &*self.comm, mine)
    }

    /// Where accesses start with the exchange protocol, the ranks meet before they gather
    /// anything.
    pub(crate) fn meet(&self, call: CollectiveCall, mine: Option<&Error>) -> Result<()> {
        let met = self.context.meet(self, call, mine);
        met.unwrap_or(Ok(()))
    }

    /// Ends a collective call: all ranks succeed, or all get the same error.
    pub(crate) fn agree<T>(&self, operation: &'static str, mine: Result<T>) -> Result<T> {
        agree::agree_in(operation, &*self.comm, mine)
            .map_err(|error| self.name_error(error, operation))
    }

    /// Closes the file on this rank only; returns whether it was open.
    pub(crate) fn close_locally(&self) -> bool {
        let was_open = !self.state.closed.swap(true, Ordering::AcqRel);
        if was_open {
            self.writers.leave();
            // There is nowhere to report an error.
            let _ = self.handle.close();
            if self.shared_pointer.is_used() && self.has_lost_ranks() {
                let _ = self.shared_pointer.remove();
            }
        }
        was_open
    }

    /// Whether a rank is gone, so that the ranks cannot close the file together.
    fn has_lost_ranks(&self) -> bool {
        (0..self.comm.size()).any(|rank| self.comm.check(Rank(rank)).is_err())
    }
}
