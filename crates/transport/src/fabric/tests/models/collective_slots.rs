//! The collective slots: a rank that is an operation ahead does not overwrite
//! what another still reads, and none sleeps for ever.

use std::sync::atomic::Ordering;

use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;

use super::super::super::operations::{self, SLOTS, Slots, Wakes};
use crate::memory::Sleepers;
use crate::memory::models::{EventWords, check};
use crate::{Loss, Rank, Result, TransportError};

/// What a rank has in shared memory.
#[derive(Default)]
struct Place {
    entered: AtomicU64,
    slots: [AtomicU64; SLOTS],
    left: AtomicU64,
    event: EventWords,
}

struct World {
    counts_arrivals: bool,
    arrivals: AtomicU64,
    departures: AtomicU64,
    places: Vec<Place>,
}

struct SlotsOfRank<'a>(&'a World, Rank);

impl Slots for SlotsOfRank<'_> {
    type Word = AtomicU64;

    fn ranks(&self) -> u32 {
        self.0.places.len() as u32
    }

    fn own_rank(&self) -> Rank {
        self.1
    }

    fn counts_arrivals(&self) -> bool {
        self.0.counts_arrivals
    }

    fn arrivals(&self) -> &AtomicU64 {
        &self.0.arrivals
    }

    fn entered(&self, rank: Rank) -> &AtomicU64 {
        &self.0.places[rank.index()].entered
    }

    fn write(&self, operation: u64, bytes: &[u8]) {
        let slot = &self.0.places[self.1.index()].slots[operations::slot(operation)];
        slot.store(u64::from(bytes[0]), Ordering::Relaxed);
    }

    fn holds(&self, rank: Rank, operation: u64, byte: u8) -> bool {
        let slot = &self.0.places[rank.index()].slots[operations::slot(operation)];
        slot.load(Ordering::Relaxed) == u64::from(byte)
    }

    fn has_departures(&self) -> bool {
        self.0.departures.load(Ordering::Acquire) == 1
    }

    fn absence(&self, rank: Rank) -> Option<TransportError> {
        let reason = Loss::Ended;
        let has_left = self.0.places[rank.index()].left.load(Ordering::Acquire) == 1;
        has_left.then_some(TransportError::PeerLost { rank, reason })
    }

    fn poll(&self) {}

    fn wait(&self, ready: impl FnMut() -> Result<Option<()>>) -> Result<()> {
        self.0.places[self.1.index()].event.wait(&|| Ok(()), ready)
    }

    fn notify_all(&self) {
        Sleepers::notify_each(self.0.places.iter().map(|place| place.event.sleepers()));
    }
}

impl SlotsOfRank<'_> {
    /// Enters an operation with a byte that no other operation has.
    fn enter(&self, operation: u64, wakes: Wakes) -> Result<()> {
        operations::enter(self, operation, &[contribution(self.1, operation)], wakes)
    }

    fn check(&self, rank: Rank, operation: u64) {
        let slot = &self.0.places[rank.index()].slots[operations::slot(operation)];
        let found = slot.load(Ordering::Relaxed);
        assert_eq!(found, u64::from(contribution(rank, operation)));
    }

    fn all_gather(&self, operation: u64) -> Result<()> {
        self.enter(operation, Wakes::Last)?;
        operations::await_all(self, operation)?;
        (0..self.ranks()).for_each(|rank| self.check(Rank(rank), operation));
        Ok(())
    }

    /// All ranks give the same byte, which differs from that of the operations before and after.
    fn agree(&self, operation: u64, byte: u8) -> Result<bool> {
        operations::enter(self, operation, &[byte], Wakes::Last)?;
        operations::await_all(self, operation)?;
        Ok(operations::have_all_given(self, operation, byte))
    }

    fn broadcast(&self, root: Rank, operation: u64) -> Result<()> {
        self.enter(
            operation,
            if self.1 == root {
                Wakes::This
            } else {
                Wakes::Last
            },
        )?;
        operations::await_one(self, root, operation)?;
        self.check(root, operation);
        Ok(())
    }

    fn leave(&self) {
        let place = &self.0.places[self.1.index()];
        place.left.store(1, Ordering::Release);
        self.0.departures.store(1, Ordering::Release);
        self.notify_all();
    }
}

fn contribution(rank: Rank, operation: u64) -> u8 {
    16 * (rank.0 as u8 + 1) + operation as u8
}

/// Every rank runs the body; the last in the thread of the model. Once as few ranks do, and once as
/// many.
fn ranks(ranks: u32, preemptions: usize, body: fn(&SlotsOfRank<'_>)) {
    for counts_arrivals in [false, true] {
        model(ranks, preemptions, counts_arrivals, body);
    }
}

fn model(ranks: u32, preemptions: usize, counts_arrivals: bool, body: fn(&SlotsOfRank<'_>)) {
    check(preemptions, move || {
        let places = (0..ranks).map(|_| Place::default()).collect();
        let arrivals = AtomicU64::default();
        let departures = AtomicU64::new(0);
        let world = Arc::new(World {
            counts_arrivals,
            arrivals,
            departures,
            places,
        });
        let others: Vec<_> = (0..ranks - 1)
            .map(|rank| {
                let world = Arc::clone(&world);
                thread::spawn(move || body(&SlotsOfRank(&world, Rank(rank))))
            })
            .collect();
        body(&SlotsOfRank(&world, Rank(ranks - 1)));
        others.into_iter().for_each(|it| it.join().unwrap());
    });
}

#[test]
fn gathers_follow_each_other() {
    ranks(2, 2, |slots| {
        (1..=3).for_each(|operation| slots.all_gather(operation).unwrap());
    });
}

#[test]
fn three_ranks_gather() {
    ranks(3, 1, |slots| {
        (1..=2).for_each(|operation| slots.all_gather(operation).unwrap());
    });
}

/// A rank that is an operation ahead has another entry, and its contribution is in its slot.
#[test]
fn agreements_follow_each_other() {
    ranks(2, 2, |slots| {
        assert_eq!(slots.agree(1, 7), Ok(true));
        assert_eq!(slots.agree(2, 8), Ok(true));
        // They disagree.
        assert_eq!(slots.agree(3, slots.own_rank().0 as u8), Ok(false));
    });
}

#[test]
fn three_ranks_agree() {
    ranks(3, 1, |slots| {
        assert_eq!(slots.agree(1, 7), Ok(true));
        assert_eq!(slots.agree(2, 8), Ok(true));
    });
}

/// The root does not wait for the others in its operation.
#[test]
fn broadcasts_follow_each_other() {
    ranks(2, 2, |slots| {
        (1..=3).for_each(|operation| slots.broadcast(Rank(0), operation).unwrap());
    });
}

/// Ranks that wait for one rank, and ranks that are still missing for those that
/// wait for all.
#[test]
fn a_gather_follows_a_broadcast_of_three_ranks() {
    ranks(3, 1, |slots| {
        slots.broadcast(Rank(1), 1).unwrap();
        slots.all_gather(2).unwrap();
    });
}

#[test]
fn a_rank_that_leaves_ends_the_operation_of_the_others() {
    ranks(2, 3, |slots| {
        slots.all_gather(1).unwrap();
        match slots.own_rank() {
            Rank(0) => slots.leave(),
            _ => {
                let (rank, reason) = (Rank(0), Loss::Ended);
                let lost = TransportError::PeerLost { rank, reason };
                assert_eq!(slots.all_gather(2), Err(lost));
            }
        }
    });
}
