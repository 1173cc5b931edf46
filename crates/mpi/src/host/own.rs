//! A communicator of this process alone, for what concerns no other.
//!
//! Errors on it are returned, where those on `MPI_COMM_SELF` go to a handler of
//! the program's. A receive that nothing is ever sent to is pending on it: testing
//! it makes the MPI progress, and has no other effect.
#![allow(unsafe_code)] // a pending receive

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use super::Host;
use crate::error::MpiError;
use crate::handles::{Comm, Request};

/// Made when it is first needed.
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
    /// The communicator. There is none in programs that only have sessions.
    pub(crate) fn own_comm(&self) -> Result<Comm, MpiError> {
        // Held while it is made: threads must not do that at the same time.
        let mut parts = self.own().lock();
        Ok(self.parts(&mut parts)?.comm)
    }

    /// Makes what [`make_progress`](Self::make_progress) needs, where it needs something.
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
            // Another thread is at it.
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

    /// Split off rather than duplicated: a duplicate calls functions of the program's attributes.
    fn make_own(&self) -> Result<Parts, MpiError> {
        let own = self.predefined().comm_self;
        let comm = self.comm_split(own, Some(0), 0)?.unwrap_or(own);
        self.comm_return_errors(comm)?;
        let nothing = std::ptr::slice_from_raw_parts_mut(std::ptr::null_mut(), 0);
        // SAFETY: there is no memory to be left alone.
        let never = unsafe { self.irecv(nothing, Some(0), Some(0), comm) }?;
        Ok(Parts { comm, never })
    }

    /// Frees it, at the end of the MPI.
    pub fn end_own(&self) {
        let parts = self.own().lock().take();
        if let Some(Parts { comm, mut never }) = parts {
            // Nothing to be done about errors: the MPI ends.
            let _ = self.cancel(never).and_then(|()| self.wait(&mut never));
            let _ = self.comm_free(comm);
        }
    }
}
