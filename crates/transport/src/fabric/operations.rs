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
//!
//! Many ranks find out through a common count of arrivals whether all are there. Few ranks look at
//! each other's words: a common one changes its owner for every arrival and every look.

use std::sync::atomic::Ordering;

use super::cells::Word;
use crate::{Rank, Result, TransportError};

/// The slots of a rank, which are used in rotation.
pub(super) const SLOTS: usize = 2;

/// The slot of an operation.
pub(super) fn slot(operation: u64) -> usize {
    (operation % SLOTS as u64) as usize
}

/// The word by which a rank says that it has entered an operation, and what it contributed if that
/// is a single byte: most agreements are, and need not look into slots then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry(u64);

impl Entry {
    const HAS_BYTE: u64 = 1 << u8::BITS;
    const OPERATION_SHIFT: u32 = u8::BITS + 1;

    fn new(operation: u64, contribution: &[u8]) -> Entry {
        let byte = match contribution {
            [byte] => Self::HAS_BYTE | u64::from(*byte),
            _ => 0,
        };
        Entry(operation << Self::OPERATION_SHIFT | byte)
    }

    fn operation(self) -> u64 {
        self.0 >> Self::OPERATION_SHIFT
    }

    fn has_byte(self, byte: u8) -> bool {
        self == Entry::new(self.operation(), &[byte])
    }
}

/// A set of slots, used by one rank.
pub(super) trait Slots {
    type Word: Word;

    fn ranks(&self) -> u32;
    fn own_rank(&self) -> Rank;
    /// Whether ranks count their arrivals together.
    fn counts_arrivals(&self) -> bool;
    /// How often ranks have entered operations, all of them together.
    fn arrivals(&self) -> &Self::Word;
    /// The last operation that a rank has entered, an [`Entry`].
    fn entered(&self, rank: Rank) -> &Self::Word;
    /// Writes this rank's contribution into the slot of the operation.
    fn write(&self, operation: u64, bytes: &[u8]);
    /// Whether the slot of the operation holds a rank's contribution of one byte, this one.
    fn holds(&self, rank: Rank, operation: u64, byte: u8) -> bool;
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
    let entry = Entry::new(operation, bytes);
    let is_last = match slots.counts_arrivals() {
        true => arrive(slots, entry),
        false => store_entry(slots, entry),
    };
    if is_last || wakes == Wakes::This {
        slots.notify_all();
    }
    Ok(())
}

/// Counts this rank's arrival; whether it is the last one. Nobody gets here before all have arrived
/// in the operation before it, so that one rank finds that it is. A rank that is killed before it
/// has stored its entry has arrived nevertheless.
fn arrive(slots: &impl Slots, entry: Entry) -> bool {
    let arrivals = slots.arrivals().add(1) + 1;
    let entered = slots.entered(slots.own_rank());
    entered.store(entry.0, Ordering::Release);
    arrivals == all_arrived(slots, entry.operation())
}

/// Stores this rank's entry; whether all others have stored theirs. The rank whose fence is the last
/// finds that, and perhaps others.
fn store_entry<S: Slots>(slots: &S, entry: Entry) -> bool {
    let entered = slots.entered(slots.own_rank());
    entered.store(entry.0, Ordering::Release);
    S::Word::fence();
    have_all_entered(slots, entry.operation())
}

/// The number of arrivals when all ranks are in the operation.
fn all_arrived(slots: &impl Slots, operation: u64) -> u64 {
    operation * u64::from(slots.ranks())
}

fn have_all_entered(slots: &impl Slots, operation: u64) -> bool {
    (0..slots.ranks()).all(|rank| entry(slots, Rank(rank)).operation() >= operation)
}

fn entry(slots: &impl Slots, rank: Rank) -> Entry {
    Entry(slots.entered(rank).load(Ordering::Acquire))
}

/// Whether every rank contributed this one byte to an operation that [all have
/// entered](await_all).
pub(super) fn have_all_given(slots: &impl Slots, operation: u64, byte: u8) -> bool {
    (0..slots.ranks()).map(Rank).all(|rank| {
        let entry = entry(slots, rank);
        match entry.operation() == operation {
            true => entry.has_byte(byte),
            // It is in the next operation, or has arrived and not yet stored its entry.
            false => slots.holds(rank, operation, byte),
        }
    })
}

/// Returns when all ranks have entered the operation, and fails as soon as one
/// never will. That is asked of every rank, not only of the first that is
/// missing: one that failed in an earlier operation has not entered it and may
/// not come again.
pub(super) fn await_all(slots: &impl Slots, operation: u64) -> Result<()> {
    let all = all_arrived(slots, operation);
    let have_arrived = || match slots.counts_arrivals() {
        true => slots.arrivals().load(Ordering::Acquire) >= all,
        false => have_all_entered(slots, operation),
    };
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
    let has_entered = || entry(slots, rank).operation() >= operation;
    if has_entered() {
        return Ok(true);
    }
    slots.poll();
    may_enter(slots, rank, operation)?;
    Ok(has_entered())
}

/// Fails if the rank has not entered the operation and never will.
fn may_enter(slots: &impl Slots, rank: Rank, operation: u64) -> Result<()> {
    match slots.absence(rank) {
        Some(lost) if entry(slots, rank).operation() < operation => Err(lost),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_holds_a_single_byte() {
        for operation in [1, 2, 1 << 54] {
            let entry = Entry::new(operation, &[7]);
            assert_eq!(entry.operation(), operation);
            assert!(entry.has_byte(7) && !entry.has_byte(8) && !entry.has_byte(0));
            for other in [&[][..], &[0, 7]] {
                let entry = Entry::new(operation, other);
                assert_eq!(entry.operation(), operation);
                assert!(!entry.has_byte(0) && !entry.has_byte(7));
            }
        }
    }
}
