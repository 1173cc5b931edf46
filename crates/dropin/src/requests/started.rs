//! One operation that a program has started.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use engine::internal::Unreported;
use pario_mpi::{Host, Moved, MpiTransport, ProgressRegistration, Request};

use crate::errhandler;
use crate::failure::Failure;
use crate::files::{self, FileId, Found, OpenFile};

use super::backoff::{self, YIELD_FOR};

/// An operation that belongs to a request of the host.
#[derive(Debug)]
pub(crate) struct Started {
    file: FileId,
    transport: Arc<MpiTransport>,
    /// Set before the program gets the handle.
    handle: OnceLock<Request>,
    stage: Mutex<Stage>,
    /// Where the error goes if the program frees the request.
    unreported: Option<Unreported>,
    /// Whether the error has been delivered to the program.
    raised: AtomicBool,
    /// Whether completion has been reported to the host.
    announced: AtomicBool,
    /// Whether the host has freed its request.
    freed: AtomicBool,
}

#[derive(Debug)]
enum Stage {
    Running {
        request: engine::Request<u8>,
        registration: Option<ProgressRegistration>,
    },
    Over {
        bytes: u64,
        failure: Option<engine::Error>,
    },
    /// The result is not needed.
    Abandoned,
}

impl Stage {
    /// The stage of a request that is complete.
    fn of_complete(request: engine::Request<u8>) -> Stage {
        let (result, _) = request.wait_with_buffer();
        match result {
            Ok(status) => Stage::Over {
                bytes: status.bytes(),
                failure: None,
            },
            Err(error) => Stage::of_failed(error),
        }
    }

    fn of_failed(error: engine::Error) -> Stage {
        Stage::Over {
            bytes: error.transferred(),
            failure: Some(error),
        }
    }
}

impl Started {
    pub(super) fn new(open: &OpenFile, request: engine::Request<u8>) -> Started {
        let unreported = request.unreported();
        let stage = Stage::Running {
            request,
            registration: open.transport.progress_in_background(),
        };
        Started::at(stage, open, unreported)
    }

    /// An operation that failed in the call that started it: the function that completes its
    /// request delivers the error.
    pub(super) fn failed(
        open: &OpenFile,
        error: engine::Error,
        unreported: Option<Unreported>,
    ) -> Started {
        Started::at(Stage::of_failed(error), open, unreported)
    }

    fn at(stage: Stage, open: &OpenFile, unreported: Option<Unreported>) -> Started {
        Started {
            file: open.id,
            transport: Arc::clone(&open.transport),
            handle: OnceLock::new(),
            stage: Mutex::new(stage),
            unreported,
            raised: AtomicBool::new(false),
            announced: AtomicBool::new(false),
            freed: AtomicBool::new(false),
        }
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_handle(&self, handle: Request) {
        self.handle.get_or_init(|| handle);
    }

    pub(super) fn handle(&self) -> Option<Request> {
        self.handle.get().copied()
    }

    /// Whether the operation is complete. Then the file no longer counts it as pending.
    pub(super) fn is_over(&self) -> bool {
        self.wait_for(Duration::ZERO)
    }

    /// As [`is_over`](Self::is_over), after waiting for at most `bound`.
    pub(super) fn wait_for(&self, bound: Duration) -> bool {
        let mut stage = self.stage();
        let complete = match &*stage {
            Stage::Running { request, .. } if bound.is_zero() => request.is_complete(),
            Stage::Running { request, .. } => request.wait_for(bound),
            Stage::Over { .. } | Stage::Abandoned => return true,
        };
        if !complete {
            return false;
        }
        if let Stage::Running { request, .. } = std::mem::replace(&mut *stage, Stage::Abandoned) {
            *stage = Stage::of_complete(request);
        }
        drop(stage);
        // The operation's last messages may not have been sent yet, and other ranks wait for
        // them.
        if !self.transport.is_one_node() {
            self.transport.make_progress();
        }
        true
    }

    /// Carries out the operation on the calling thread, which is about to wait for it, and
    /// waits for a moment, as a blocking call would, without progress on the host's messages;
    /// returns whether the operation is complete. Not between nodes, where the messages of all
    /// operations need this thread.
    pub(super) fn hasten(&self) -> bool {
        if !self.transport.is_one_node() {
            return false;
        }
        if let Stage::Running { request, .. } = &*self.stage() {
            request.progress();
        }
        self.wait_for(YIELD_FOR)
    }

    /// Waits until the operation is complete, and makes progress on messages.
    pub(super) fn wait(&self) {
        backoff::until_over(&self.transport, |bound| self.wait_for(bound));
    }

    /// Lets the operation continue although nothing waits for it. Progress is made on its
    /// messages as before, because other ranks may wait for them. The next `sync` or `close` of
    /// the file reports the error of a write.
    pub(super) fn abandon(&self) {
        let stage = std::mem::replace(&mut *self.stage(), Stage::Abandoned);
        match stage {
            Stage::Running {
                registration: Some(registration),
                ..
            } => {
                if let Found::Ours(open) = files::find(self.file) {
                    let mut freed = open.freed.lock().unwrap_or_else(PoisonError::into_inner);
                    *freed = Some(registration);
                }
            }
            Stage::Over {
                failure: Some(error),
                ..
            } if !self.raised.load(Ordering::Acquire) => {
                if let Some(unreported) = &self.unreported {
                    unreported.note(error);
                }
            }
            Stage::Running { .. } | Stage::Over { .. } | Stage::Abandoned => {}
        }
    }

    /// The bytes transferred, as far as is known.
    pub(super) fn bytes(&self) -> u64 {
        match &*self.stage() {
            Stage::Over { bytes, .. } => *bytes,
            Stage::Running { .. } | Stage::Abandoned => 0,
        }
    }

    /// Reports completion to the host, once.
    pub(super) fn announce(&self, host: &Host) -> Result<(), Failure> {
        let handle = self.handle();
        let handle = handle.filter(|_| !self.announced.swap(true, Ordering::AcqRel));
        match handle {
            Some(handle) => Ok(host.grequest_complete(handle)?),
            None => Ok(()),
        }
    }

    /// Called when the host frees the request.
    pub(super) fn set_freed(&self) {
        self.freed.store(true, Ordering::Release);
    }

    /// Whether the host has freed the request: a function has completed it.
    pub(super) fn is_freed(&self) -> bool {
        self.freed.load(Ordering::Acquire)
    }

    /// Makes progress on the file's messages and the host's.
    pub(super) fn make_progress(&self) -> Moved {
        self.transport.make_progress()
    }

    /// Delivers the operation's error to the file's handler, if there is one; returns the code
    /// for the program.
    pub(super) fn raise(&self, host: &Host, function: &'static str) -> Option<c_int> {
        let failure = match &*self.stage() {
            Stage::Over {
                failure: Some(failure),
                ..
            } => Failure::from(failure.clone()).in_function(function),
            _ => return None,
        };
        self.raised.store(true, Ordering::Release);
        // The stage is unlocked, because the program's handler may call anything.
        Some(match files::find(self.file) {
            Found::Ours(open) => errhandler::raise_on_file(&open, &failure),
            Found::Closed | Found::Hosts => failure.code(host),
        })
    }
}
