//! Sole use of the file for the duration of a collective write on one node.
//!
//! Rank 0 has a lease, which shows that nobody outside the call has the file open; the others
//! have closed it, and copy. No rank has another write under way, since each holds an exclusive
//! write guard.

use std::sync::{Mutex, PoisonError};

use pario_driver::{Lease, Suspension};
use pario_transport::{Rank, Transport};

use crate::{Result, operation::Operation, writer_lock::WriteGuard};

/// The lease of rank 0; nothing on the other ranks.
#[derive(Debug)]
pub(super) struct CallLease(Mutex<Option<Box<dyn Lease>>>);

impl CallLease {
    /// Whether nobody else can be writing. Once somebody waits to open the file, the lease ends.
    pub(super) fn is_intact(&self) -> bool {
        let mut lease = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let intact = lease.take().filter(|lease| lease.is_intact());
        *lease = intact;
        lease.is_some()
    }
}

/// One rank's part in the sole use.
pub(super) struct SoleUse<'a> {
    pub(super) lease: CallLease,
    pub(super) suspension: Option<Box<dyn Suspension + 'a>>,
    pub(super) guard: WriteGuard,
}

impl<'a> SoleUse<'a> {
    /// *Collective*. `None` on all ranks if somebody else has the file open, or some rank has
    /// a write or another access under way.
    pub(super) fn try_take(
        comm: &dyn Transport,
        operation: &'a Operation,
    ) -> Result<Option<SoleUse<'a>>> {
        let is_holder = comm.rank() == Rank(0);
        let guard = operation.writer_lock().try_exclusive();
        let suspension = match (&guard, is_holder) {
            (Some(_), false) => operation.handle().suspend(),
            _ => None,
        };
        let is_ready = guard.is_some() && (is_holder || suspension.is_some());
        let ready = comm.all_gather(&[u8::from(is_ready)])?;
        let is_ready = ready.iter().all(|rank| rank.as_slice() == [1]);
        let lease = match is_ready && is_holder {
            true => operation.handle().lease(),
            false => None,
        };
        let granted = match is_ready {
            true => comm.broadcast(Rank(0), vec![u8::from(lease.is_some())])? == [1],
            false => false,
        };
        Ok(match (granted, guard) {
            (true, Some(guard)) => Some(SoleUse {
                lease: CallLease(Mutex::new(lease)),
                suspension,
                guard,
            }),
            _ => None,
        })
    }
}
