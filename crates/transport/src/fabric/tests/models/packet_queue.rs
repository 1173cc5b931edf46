//! The queue of packets: none is lost, doubled, torn or out of order, and none
//! of those who use it sleeps for ever.

use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;

use super::super::super::{cells, waiting_senders};
use super::ring::{Packet, Ring, TailNotMoved};
use crate::memory::models::{EventWords, check};

/// A queue that leads to rank 0, with all that its users sleep on.
struct World {
    ring: Ring,
    /// The ranks that wait for space.
    waiting: AtomicU64,
    events: Vec<EventWords>,
}

impl World {
    fn new(cells: usize, ranks: usize) -> Self {
        World {
            ring: Ring::new(cells, ranks),
            waiting: AtomicU64::new(0),
            events: (0..ranks).map(|_| EventWords::default()).collect(),
        }
    }

    /// Sends packets, numbered from 0.
    fn push(&self, from: u32, packets: u64) {
        for packet in (0..packets).map(|number| (from, number)) {
            let try_push = || Ok(self.try_push_or_be_woken(packet).then_some(()));
            let event = &self.events[from as usize];
            event.wait(&|| Ok(()), try_push).unwrap();
            self.events[0].sleepers().notify();
        }
    }

    fn try_push_or_be_woken(&self, packet: Packet) -> bool {
        self.ring.try_push(packet) || {
            waiting_senders::add_to(&self.waiting, 1 << packet.0);
            self.ring.try_push(packet)
        }
    }

    /// Notes that a rank has ended, as a supervisor does.
    fn end(&self, rank: u32) {
        self.ring.end(rank);
        self.events[0].sleepers().notify();
    }

    fn try_take(&self, head: &mut u64) -> Option<Packet> {
        let before = *head;
        let packet = self.ring.take(head);
        if *head != before {
            for sender in waiting_senders::take_from([&self.waiting].into_iter()) {
                self.events[sender.index()].sleepers().notify();
            }
        }
        packet
    }

    /// Takes the packets of all ranks, so many of each, which have to come in
    /// order.
    fn take(&self, packets: &[u64]) {
        let mut next = vec![0; packets.len()];
        let mut head = 0;
        while next != packets {
            let packet = self.events[0].wait(&|| Ok(()), || Ok(self.try_take(&mut head)));
            let (from, number) = packet.unwrap();
            assert_eq!(number, next[from as usize], "from rank {from}");
            next[from as usize] += 1;
        }
    }
}

/// Ranks from 1 on send so many packets each through a queue of so many cells.
fn producers<const N: usize>(cells: usize, packets: [u64; N], preemptions: usize) {
    check(preemptions, move || {
        let world = Arc::new(World::new(cells, N));
        let producers: Vec<_> = (1..N)
            .map(|rank| {
                let world = Arc::clone(&world);
                thread::spawn(move || world.push(rank as u32, packets[rank]))
            })
            .collect();
        world.take(&packets);
        producers.into_iter().for_each(|it| it.join().unwrap());
    });
}

#[test]
fn one_producer_wraps_around() {
    producers(2, [0, 4], 2);
}

#[test]
fn one_cell_is_used_again_and_again() {
    producers(1, [0, 2], 3);
}

#[test]
fn two_producers_race_for_cells() {
    producers(2, [0, 1, 1], 2);
}

#[test]
fn two_producers_wrap_around_a_full_queue() {
    producers(2, [0, 2, 1], 1);
}

#[test]
fn two_producers_race_for_one_cell() {
    producers(1, [0, 1, 1], 2);
}

/// Rank 1 is killed with a claim that `claim` makes; rank 2 sends as well.
fn killed_producer(claim: fn(&Ring)) {
    check(2, move || {
        let world = Arc::new(World::new(1, 3));
        let lost = Arc::clone(&world);
        let lost = thread::spawn(move || {
            claim(&lost.ring);
            lost.end(1);
        });
        let other = Arc::clone(&world);
        let other = thread::spawn(move || other.push(2, 1));
        world.take(&[0, 0, 1]);
        lost.join().unwrap();
        other.join().unwrap();
    });
}

#[test]
fn a_claim_that_is_not_filled_is_passed_over() {
    killed_producer(|ring| {
        cells::claim(ring, 1);
    });
}

#[test]
fn a_claim_without_the_tail_is_passed_over() {
    killed_producer(|ring| {
        cells::claim(&TailNotMoved(ring, AtomicU64::new(0)), 1);
    });
}

#[test]
fn packets_of_an_ended_rank_are_received() {
    check(3, || {
        let world = Arc::new(World::new(2, 2));
        let lost = Arc::clone(&world);
        let lost = thread::spawn(move || {
            lost.push(1, 2);
            lost.end(1);
        });
        world.take(&[0, 2]);
        lost.join().unwrap();
    });
}
