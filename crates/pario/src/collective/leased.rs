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

/// When a lease is tried, the same on all ranks of a context. Someone who has the file open
/// usually keeps it open, so after each failure twice as many calls do without.
#[derive(Debug, Default)]
pub(super) struct LeaseAttempts {
    /// Calls that do without before the next attempt.
    waiting: u32,
    failures_in_a_row: u32,
}

/// Calls between attempts, at most: two to this power.
const WAITING_POWER_MAX: u32 = 6;

impl LeaseAttempts {
    pub(super) fn is_due(&mut self) -> bool {
        let is_due = self.waiting == 0;
        self.waiting = self.waiting.saturating_sub(1);
        is_due
    }

    pub(super) fn note(&mut self, was_granted: bool) {
        self.failures_in_a_row = match was_granted {
            true => 0,
            false => (self.failures_in_a_row + 1).min(WAITING_POWER_MAX),
        };
        self.waiting = (1 << self.failures_in_a_row) - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_become_rare_where_they_fail() {
        let mut attempts = LeaseAttempts::default();
        let mut calls_until_due = || {
            let calls = 1 + (0..).take_while(|_| !attempts.is_due()).count();
            attempts.note(false);
            calls
        };
        let calls: Vec<_> = (0..9).map(|_| calls_until_due()).collect();
        assert_eq!(calls, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
        attempts.note(true);
        assert!(attempts.is_due() && attempts.is_due());
    }
}
