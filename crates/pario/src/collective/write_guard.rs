//! What a collective call holds while its data moves: the write guards of collective writes, and
//! the range that an aggregator has announced.
//!
//! A rank that excludes its own other writes does not wait for other ranks, unless all ranks
//! hold their guards. Otherwise a call in the background and one in the foreground could wait
//! for each other, each holding the guard of one rank, and a rank's independent write would
//! wait for ranks that have not made the collective call yet.

use pario_driver::{Direction, RangeLock, Suspension};
use pario_plan::Rounds;
use pario_transport::Transport;

use super::{
    access_range::AccessRange,
    atomic,
    attempts::Attempts,
    holes::{self, Holes},
    leased::{CallLease, SoleUse},
    planning::CallPlan,
};
use crate::{Result, agree::GatherBuffers, operation::Operation, writer_lock::WriteGuard};

/// The longest range that one rank locks for all. Others wait until the call ends, and give up
/// after minutes.
const LOCKED_BYTES_MAX: u64 = 1 << 30;

/// The guard of a call, and what the call may do under it.
pub(super) struct CollectiveWriteGuard<'a> {
    /// Before the write guard is released, the file is open again.
    suspension: Option<Box<dyn Suspension + 'a>>,
    /// Reads need none, unless other calls use group locks.
    _guard: Option<WriteGuard>,
    _range: Option<AccessRange>,
    /// On the rank that locks for all.
    _lock: Option<RangeLock>,
    /// Whether one rank has locked everything for all.
    pub(super) is_locked: bool,
    pub(super) holes: Holes,
    /// What shows that the holes may be written back, unless that is known for the whole call.
    pub(super) lease: Option<CallLease>,
}

impl<'a> CollectiveWriteGuard<'a> {
    /// For a call that does not rewrite holes.
    pub(super) fn ordinary(operation: &Operation) -> Self {
        let guard = match operation.direction() {
            Direction::Read => operation.reading_guard(),
            Direction::Write => Some(operation.writer_lock().shared()),
        };
        CollectiveWriteGuard::of(guard, Holes::Leave)
    }

    fn of(guard: Option<WriteGuard>, holes: Holes) -> Self {
        CollectiveWriteGuard {
            suspension: None,
            _guard: guard,
            _range: None,
            _lock: None,
            is_locked: false,
            holes,
            lease: None,
        }
    }

    /// Whether this rank has closed the file until the guard is released.
    pub(super) fn is_suspended(&self) -> bool {
        self.suspension.is_some()
    }

    /// For a call through windows: exclusive on all ranks if holes are to be rewritten. They
    /// are not if some rank has another write under way. All ranks have made the call when they
    /// get here.
    pub(super) fn of_windows(
        comm: &dyn Transport,
        operation: &'a Operation,
        call: &CallPlan<'_>,
        rounds: &Rounds,
    ) -> Result<Self> {
        let mut guard = Self::without_range(comm, operation, rounds)?;
        guard._range = AccessRange::announce(comm.rank(), operation, rounds, call.accesses);
        Ok(guard)
    }

    /// The same for windows in shared memory, which rank 0 can write for all if it has a lease,
    /// and lock for all: where locks are requests to a server, one per window would take as long
    /// as writing it. Windows of aggregators that share a range still exclude each other by locks.
    pub(super) fn of_shared_windows(
        comm: &dyn Transport,
        buffers: &mut GatherBuffers,
        operation: &'a Operation,
        call: &CallPlan<'_>,
        rounds: &Rounds,
        attempts: &mut Attempts,
    ) -> Result<Self> {
        let holes = holes::holes(operation).between(rounds);
        let wants_lease = operation.direction() == Direction::Write
            && holes == Holes::RewriteLeased
            && call.is_worth_lease;
        if !wants_lease || !attempts.is_due() {
            let mut guard = Self::of_windows(comm, operation, call, rounds)?;
            if !operation.locks_writes()
                || !operation.writes_by_requests()
                || !holes::have_own_ranges(rounds)
            {
                return Ok(guard);
            }
            let region = atomic::region(call.accesses);
            if region.end - region.start <= LOCKED_BYTES_MAX {
                guard._lock = atomic::lock_for_all(comm, buffers, operation, region)?;
                guard.is_locked = true;
            }
            return Ok(guard);
        }
        let sole_use = SoleUse::try_take(comm, operation)?;
        attempts.note(sole_use.is_some());
        Ok(match sole_use {
            None => Self::ordinary(operation),
            Some(SoleUse {
                lease,
                suspension,
                guard,
            }) => CollectiveWriteGuard {
                suspension,
                lease: Some(lease),
                ..Self::of(Some(guard), holes)
            },
        })
    }

    fn without_range(
        comm: &dyn Transport,
        operation: &'a Operation,
        rounds: &Rounds,
    ) -> Result<Self> {
        if operation.direction() == Direction::Read {
            return Ok(Self::ordinary(operation));
        }
        let holes = holes::holes(operation).between(rounds);
        match holes {
            Holes::Leave | Holes::RewriteLocked => Ok(CollectiveWriteGuard {
                holes,
                ..Self::ordinary(operation)
            }),
            Holes::Rewrite => Self::exclusive(comm, operation),
            Holes::RewriteLeased => Ok(Self::ordinary(operation)),
        }
    }

    /// For a file that is known to have no other writers.
    fn exclusive(comm: &dyn Transport, operation: &'a Operation) -> Result<Self> {
        let guard = operation.writer_lock().try_exclusive();
        let all = comm.all_gather(&[u8::from(guard.is_some())])?;
        if all.iter().all(|alone| alone.as_slice() == [1]) {
            return Ok(Self::of(guard, Holes::Rewrite));
        }
        drop(guard);
        Ok(Self::ordinary(operation))
    }
}
