//! The protocol of operations on collective slots.
//!
//! The operations on a set of slots are numbered from 1. A rank that enters
//! operation k writes its contribution into its slot k mod 2, and then its count
//! of entered operations. It may overwrite the contribution to operation k - 2
//! because it first waits until all have entered k - 1, and so have finished
//! k - 2; most collectives know that without a wait.
//!
//! Most ranks that wait in an operation wait for all others, so only the last
//! that enters wakes them: if everyone did, each of P ranks would wake up to P
//! times, and find that others are still missing.

use std::sync::atomic::Ordering;

use super::cells::Word;
use crate::{Rank, Result, TransportError};

/// The slots of a rank, which are used in rotation.
pub(super) const SLOTS: usize = 2;

/// The slot of an operation.
pub(super) fn slot(operation: u64) -> usize {
    (operation % SLOTS as u64) as usize
}

/// A set of slots, used by one rank.
pub(super) trait Slots {
    type Word: Word;

    fn ranks(&self) -> u32;
    fn own_rank(&self) -> Rank;
    /// How often ranks have entered operations, all of them together.
    fn arrivals(&self) -> &Self::Word;
    /// How many operations a rank has entered.
    fn entered(&self, rank: Rank) -> &Self::Word;
    /// Writes this rank's contribution into the slot of the operation.
    fn write(&self, operation: u64, bytes: &[u8]);
    /// Whether any rank has left.
    fn has_departures(&self) -> bool;
    /// The error of waiting for a rank, if it has left. What it did before is
    /// visible to the caller after this.
    fn absence(&self, rank: Rank) -> Option<TransportError>;
    /// Makes progress with messages.
    fn poll(&self);
    /// Waits on this rank's event.
    fn wait(&self, ready: impl FnMut() -> Result<Option<()>>) -> Result<()>;
    /// Wakes all ranks.
    fn notify_all(&self);
}

/// Which ranks wake the others by entering an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wakes {
    /// The last one: the ranks wait for all others.
    Last,
    /// This one, too: the ranks wait for it alone.
    This,
}

/// Enters an operation with a contribution.
pub(super) fn enter(slots: &impl Slots, operation: u64, bytes: &[u8], wakes: Wakes) -> Result<()> {
    await_all(slots, operation - 1)?;
    slots.write(operation, bytes);
    // Nobody gets here before all have arrived in the operation before it, so
    // that one rank finds that it is the last. A rank that is killed before it
    // has stored its own count has arrived nevertheless.
    let arrivals = slots.arrivals().add(1) + 1;
    slots
        .entered(slots.own_rank())
        .store(operation, Ordering::Release);
    let is_last = arrivals == all_arrived(slots, operation);
    if is_last || wakes == Wakes::This {
        slots.notify_all();
    }
    Ok(())
}

/// The number of arrivals when all ranks are in the operation.
fn all_arrived(slots: &impl Slots, operation: u64) -> u64 {
    operation * u64::from(slots.ranks())
}

/// Returns when all ranks have entered the operation, and fails as soon as one
/// never will. That is asked of every rank, not only of the first that is
/// missing: one that failed in an earlier operation has not entered it and may
/// not come again.
pub(super) fn await_all(slots: &impl Slots, operation: u64) -> Result<()> {
    let all = all_arrived(slots, operation);
    let have_arrived = || slots.arrivals().load(Ordering::Acquire) >= all;
    slots.wait(|| {
        if have_arrived() {
            return Ok(Some(()));
        }
        slots.poll();
        if !slots.has_departures() {
            return Ok(None);
        }
        let mut ranks = (0..slots.ranks()).map(Rank);
        let missing = ranks.try_for_each(|rank| may_enter(slots, rank, operation));
        // A rank may have come and left in between.
        match (have_arrived(), missing) {
            (true, _) => Ok(Some(())),
            (false, missing) => missing.map(|()| None),
        }
    })
}

/// Returns when one rank has entered the operation.
pub(super) fn await_one(slots: &impl Slots, rank: Rank, operation: u64) -> Result<()> {
    slots.wait(|| Ok(has_entered(slots, rank, operation)?.then_some(())))
}

/// Whether the rank has entered the operation; fails if it never will.
fn has_entered(slots: &impl Slots, rank: Rank, operation: u64) -> Result<bool> {
    let entered = slots.entered(rank);
    if entered.load(Ordering::Acquire) >= operation {
        return Ok(true);
    }
    slots.poll();
    may_enter(slots, rank, operation)?;
    Ok(entered.load(Ordering::Acquire) >= operation)
}

/// Fails if the rank has not entered the operation and never will.
fn may_enter(slots: &impl Slots, rank: Rank, operation: u64) -> Result<()> {
    match slots.absence(rank) {
        Some(lost) if slots.entered(rank).load(Ordering::Acquire) < operation => Err(lost),
        _ => Ok(()),
    }
}
