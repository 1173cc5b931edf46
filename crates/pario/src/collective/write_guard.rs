//! What a collective call holds while its data moves: the write guards of collective writes, and
//! the range that an aggregator has announced.
//!
//! A rank that excludes its own other writes does not wait for other ranks, unless all ranks
//! hold their guards. Otherwise a call in the background and one in the foreground could wait
//! for each other, each holding the guard of one rank, and a rank's independent write would
//! wait for ranks that have not made the collective call yet.

use pario_driver::Direction;
use pario_plan::Rounds;
use pario_transport::Transport;

use super::{
    access_range::AccessRange,
    planning::{self, CallPlan, Holes},
};
use crate::{Result, operation::Operation, writer_lock::WriteGuard};

/// The guard of a call, and what the call may do under it.
pub(super) struct CollectiveWriteGuard {
    /// Reads need none.
    _guard: Option<WriteGuard>,
    _range: Option<AccessRange>,
    pub(super) holes: Holes,
}

impl CollectiveWriteGuard {
    /// For a call that does not rewrite holes.
    pub(super) fn ordinary(operation: &Operation) -> CollectiveWriteGuard {
        CollectiveWriteGuard {
            _guard: match operation.direction() {
                Direction::Read => None,
                Direction::Write => Some(operation.writer_lock().shared()),
            },
            _range: None,
            holes: Holes::Leave,
        }
    }

    /// For a call through windows: exclusive on all ranks if holes are to be rewritten. They
    /// are not if some rank has another write under way. All ranks have made the call when they
    /// get here.
    pub(super) fn of_windows(
        comm: &dyn Transport,
        operation: &Operation,
        call: &CallPlan<'_>,
        rounds: &Rounds,
    ) -> Result<CollectiveWriteGuard> {
        let mut guard = CollectiveWriteGuard::without_range(comm, operation, rounds)?;
        guard._range = AccessRange::announce(comm.rank(), operation, rounds, call.accesses);
        Ok(guard)
    }

    fn without_range(
        comm: &dyn Transport,
        operation: &Operation,
        rounds: &Rounds,
    ) -> Result<CollectiveWriteGuard> {
        let ordinary = CollectiveWriteGuard::ordinary;
        if operation.direction() == Direction::Read {
            return Ok(ordinary(operation));
        }
        let holes = planning::holes(operation).between(rounds);
        if holes != Holes::Rewrite {
            return Ok(CollectiveWriteGuard {
                holes,
                ..ordinary(operation)
            });
        }
        let guard = operation.writer_lock().try_exclusive();
        let all = comm.all_gather(&[u8::from(guard.is_some())])?;
        if all.iter().all(|alone| alone.as_slice() == [1]) {
            return Ok(CollectiveWriteGuard {
                _guard: guard,
                _range: None,
                holes,
            });
        }
        drop(guard);
        Ok(ordinary(operation))
    }
}
