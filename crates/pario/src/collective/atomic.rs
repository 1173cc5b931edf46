//! Collective writes in atomic mode (semantics rule 5): all of the call's
//! bytes are locked before the first write and until the last, and where
//! ranks overlap they write in rank order.

use pario_driver::LockMode;
use pario_plan::{
    Access,
    coverage::{self, Proof},
};
use pario_transport::{Rank, Tag, Transport};

use super::entry;
use crate::{Error, Result, Status, agree::GatherBuffers, operation::Operation};

/// The word that it is the next rank's turn.
const TURN: Tag = Tag(6);
/// Locks for all.
const KEEPER: Rank = Rank(0);

/// Writes every rank's data. One rank holds the lock for all: the others'
/// writes would wait for it if they locked too.
pub(super) fn write(
    comm: &dyn Transport,
    buffers: &mut GatherBuffers,
    operation: &Operation,
    accesses: &[Access],
) -> Result<Status> {
    let spans = || {
        accesses
            .iter()
            .filter(|access| !access.is_empty())
            .map(Access::span)
    };
    let start = spans().map(|span| span.start).min().unwrap_or(0);
    let end = spans().map(|span| span.end).max().unwrap_or(0);
    let lock = match comm.rank() {
        KEEPER => operation
            .handle()
            .lock(start..end, LockMode::Exclusive)
            .map(Some),
        _ => Ok(None),
    };
    let _lock = buffers.agree(comm, lock.map_err(Error::from))?;
    let result = match coverage::disjoint(accesses) {
        Proof::Disjoint => operation.run_unlocked(),
        Proof::Unknown => in_rank_order(comm, operation),
    };
    // The lock is held until all ranks are done.
    entry::finish_individual(comm, buffers, result)
}

fn in_rank_order(comm: &dyn Transport, operation: &Operation) -> Result<Status> {
    let me = comm.rank().0;
    if me > 0 {
        comm.receive(Rank(me - 1), TURN)?;
    }
    // A rank that fails gives the word on all the same.
    let result = operation.run_unlocked();
    if me + 1 < comm.size() {
        comm.send(Rank(me + 1), TURN, &[])?;
    }
    result
}
