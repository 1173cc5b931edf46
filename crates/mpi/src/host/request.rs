//! Requests.

#![allow(unsafe_code)] // Calls the host.

use std::ffi::{c_int, c_void};

use super::abi::Slot;
use super::message::Probed;
use super::status::Status;
use super::{Host, call};
use crate::error::MpiError;
use crate::handles::Request;

/// The functions of a generalized request.
///
/// If `query` returns an error, the host calls the error handler of a communicator, which by
/// default ends the program: return 0.
#[derive(Clone, Copy, Debug)]
pub struct GeneralizedCallbacks {
    /// Writes the status of a complete request: the extra state, the status.
    pub query: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
    /// Frees the extra state.
    pub free: unsafe extern "C" fn(*mut c_void) -> c_int,
    /// Asks to cancel: the extra state, whether the request is complete already.
    pub cancel: unsafe extern "C" fn(*mut c_void, c_int) -> c_int,
}

/// The result of a request that completed.
pub type Waited = Probed;

impl Host {
    /// The result of a request if it is complete; then the request is null.
    pub fn test(&self, request: &mut Request) -> Result<Option<Waited>, MpiError> {
        let (mut flag, mut status) = (0, Status::new());
        let mut slot = Slot::new(self.flavour(), request.0);
        let outcome = call!(self, test(slot.pointer(), &mut flag, status.pointer()));
        *request = Request(slot.handle());
        outcome?;
        match flag {
            0 => Ok(None),
            _ => self.probed(&mut status).map(Some),
        }
    }

    /// Whether a request is complete; it is null then. Cheaper than [`test`](Self::test).
    pub fn is_complete(&self, request: &mut Request) -> Result<bool, MpiError> {
        let (mut flag, ignore) = (0, self.status_ignore());
        let mut slot = Slot::new(self.flavour(), request.0);
        let outcome = call!(self, test(slot.pointer(), &mut flag, ignore));
        *request = Request(slot.handle());
        outcome?;
        Ok(flag != 0)
    }

    /// Waits until a request is complete.
    pub fn wait(&self, request: &mut Request) -> Result<Waited, MpiError> {
        let mut status = Status::new();
        let mut slot = Slot::new(self.flavour(), request.0);
        let outcome = call!(self, wait(slot.pointer(), status.pointer()));
        *request = Request(slot.handle());
        outcome?;
        self.probed(&mut status)
    }

    /// Asks to cancel a request, which is still to be completed.
    pub fn cancel(&self, request: Request) -> Result<(), MpiError> {
        let mut slot = Slot::new(self.flavour(), request.0);
        call!(self, cancel(slot.pointer()))
    }

    /// Frees a request without waiting for it.
    pub fn request_free(&self, request: Request) -> Result<(), MpiError> {
        let mut slot = Slot::new(self.flavour(), request.0);
        call!(self, request_free(slot.pointer()))
    }

    /// Starts a generalized request.
    ///
    /// # Safety
    /// `extra` must be what the callbacks expect, until `free` has been called.
    pub unsafe fn grequest_start(
        &self,
        callbacks: GeneralizedCallbacks,
        extra: *mut c_void,
    ) -> Result<Request, MpiError> {
        let GeneralizedCallbacks {
            query,
            free,
            cancel,
        } = callbacks;
        let mut slot = self.slot();
        call!(
            self,
            grequest_start(
                query as *mut c_void,
                free as *mut c_void,
                cancel as *mut c_void,
                extra,
                slot.pointer(),
            )
        )?;
        Ok(Request(slot.handle()))
    }

    /// Completes a generalized request.
    pub fn grequest_complete(&self, request: Request) -> Result<(), MpiError> {
        call!(self, grequest_complete(request.0))
    }
}
