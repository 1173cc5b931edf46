//! Collective writes under one lock. In atomic mode (semantics rule 5), all bytes of the call are locked
//! from before the first write until after the last, and ranks that overlap write in rank order.

use std::ops::Range;

use pario_driver::{LockMode, RangeLock};
use pario_plan::{
    Access,
    coverage::{self, Proof},
};
use pario_transport::{Rank, Tag, Transport};

use super::entry;
use crate::{
    Error, Result, Status,
    agree::GatherBuffers,
    operation::{Operation, Others},
};

/// Sent when the next rank may write.
const NEXT_RANK: Tag = Tag(6);
/// The rank that locks for all.
const LOCK_HOLDER: Rank = Rank(0);

/// Writes every rank's data. One rank holds the lock for all, and the others do not lock: their
/// writes would wait for it.
pub(super) fn write(
    comm: &dyn Transport,
    buffers: &mut GatherBuffers,
    operation: &Operation,
    accesses: &[Access],
) -> Result<Status> {
    let _lock = lock_for_all(comm, buffers, operation, region(accesses))?;
    let result = match coverage::disjoint(accesses) {
        Proof::Disjoint if !operation.rewrites_in_turn() => operation.run_unlocked(Others::Write),
        Proof::Disjoint | Proof::Unknown => in_rank_order(comm, operation),
    };
    // The lock is held until all ranks are done.
    entry::finish_individual(comm, buffers, result)
}

/// From the first byte that any rank accesses to the end of the last.
pub(super) fn region(accesses: &[Access]) -> Range<u64> {
    let spans = || {
        accesses
            .iter()
            .filter(|access| !access.is_empty())
            .map(Access::span)
    };
    let start = spans().map(|span| span.start).min().unwrap_or(0);
    start..spans().map(|span| span.end).max().unwrap_or(0)
}

/// Locks a range for all ranks, until the result is dropped. *Collective*; all have made the call,
/// and none locks any of it meanwhile.
pub(super) fn lock_for_all(
    comm: &dyn Transport,
    buffers: &mut GatherBuffers,
    operation: &Operation,
    range: Range<u64>,
) -> Result<Option<RangeLock>> {
    let lock = match comm.rank() {
        LOCK_HOLDER => operation
            .handle()
            .lock(range, LockMode::Exclusive)
            .map(Some),
        _ => Ok(None),
    };
    buffers.agree(comm, lock.map_err(Error::from))
}

fn in_rank_order(comm: &dyn Transport, operation: &Operation) -> Result<Status> {
    let me = comm.rank().0;
    if me > 0 {
        comm.receive(Rank(me - 1), NEXT_RANK)?;
    }
    // A rank that fails still lets the next one write.
    let result = operation.run_unlocked(Others::Wait);
    if me + 1 < comm.size() {
        comm.send(Rank(me + 1), NEXT_RANK, &[])?;
    }
    result
}
