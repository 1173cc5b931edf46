//! A communicator of this process alone.
//!
//! Errors on it are returned, while those on `MPI_COMM_SELF` go to a handler of the program. A
//! receive that never completes is pending on it: testing it makes the MPI progress and has no
//! other effect.
#![allow(unsafe_code)] // a pending receive

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use super::Host;
use crate::error::MpiError;
use crate::handles::{Comm, Request};

/// Made when first needed.
#[derive(Debug, Default)]
pub(crate) struct Own(Mutex<Option<Parts>>);

#[derive(Debug)]
struct Parts {
    comm: Comm,
    never: Request,
}

impl Own {
    fn lock(&self) -> MutexGuard<'_, Option<Parts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Host {
    /// The communicator. Programs that use only sessions have none.
    pub(crate) fn own_comm(&self) -> Result<Comm, MpiError> {
        // Held while it is made, which threads must not do at the same time.
        let mut parts = self.own().lock();
        Ok(self.parts(&mut parts)?.comm)
    }

    /// The communicator, if it has been made and the MPI has not ended.
    pub(crate) fn made_own_comm(&self) -> Option<Comm> {
        self.own().lock().as_ref().map(|parts| parts.comm)
    }

    /// Makes what [`make_progress`](Self::make_progress) needs, if anything.
    pub fn prepare_progress(&self) -> Result<(), MpiError> {
        match self.functions.opal_progress {
            Some(_) => Ok(()),
            None => self.own_comm().map(drop),
        }
    }

    /// Makes the MPI progress, and nothing else.
    pub fn make_progress(&self) -> Result<(), MpiError> {
        if let Some(progress) = self.functions.opal_progress {
            // SAFETY: it takes nothing; what it returns is a number of events.
            unsafe { progress() };
            return Ok(());
        }
        let mut parts = match self.own().0.try_lock() {
            Ok(parts) => parts,
            Err(TryLockError::Poisoned(parts)) => parts.into_inner(),
            // Another thread makes progress.
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        let parts = self.parts(&mut parts)?;
        self.is_complete(&mut parts.never).map(drop)
    }

    fn parts<'a>(&self, parts: &'a mut Option<Parts>) -> Result<&'a mut Parts, MpiError> {
        match parts {
            Some(parts) => Ok(parts),
            None => Ok(parts.insert(self.make_own()?)),
        }
    }

    /// Split off rather than duplicated: duplicating calls the copy functions of the program's
    /// attributes.
    fn make_own(&self) -> Result<Parts, MpiError> {
        let own = self.predefined().comm_self;
        let comm = self.comm_split(own, Some(0), 0)?.unwrap_or(own);
        self.comm_return_errors(comm)?;
        let nothing = std::ptr::slice_from_raw_parts_mut(std::ptr::null_mut(), 0);
        // SAFETY: the buffer is empty.
        let never = unsafe { self.irecv(nothing, Some(0), Some(0), comm) }?;
        Ok(Parts { comm, never })
    }

    /// Frees it, at the end of the MPI.
    pub fn end_own(&self) {
        let parts = self.own().lock().take();
        if let Some(Parts { comm, mut never }) = parts {
            // Errors cannot be handled: the MPI ends.
            let _ = self.cancel(never).and_then(|()| self.wait(&mut never));
            let _ = self.comm_free(comm);
        }
    }
}
