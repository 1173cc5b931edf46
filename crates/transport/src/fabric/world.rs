//! The shared memory of a world, and what ranks know of each other in it.

use std::io;
use std::sync::atomic::Ordering;

use super::collective_slots::CollectiveSlots;
use super::geometry::Geometry;
use super::packet_queue::PacketQueue;
use super::waiting_senders::WaitingSenders;
use crate::unexpected::ContextId;
use crate::{Event, Loss, Rank, Result, Segment, TransportError};

/// The shared memory of a world. Clones refer to the same memory.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(super) memory: Segment,
    pub(super) geometry: Geometry,
    pub(super) ranks: u32,
}

/// The state of a rank that has not left; other states are codes of losses.
const PRESENT: u32 = 0;

impl World {
    pub(crate) fn new(ranks: u32) -> io::Result<Self> {
        let memory = Segment::anonymous(Self::bytes(ranks))?;
        let world = Self::within(memory, ranks);
        world.open();
        Ok(world)
    }

    /// What a world of that many ranks needs.
    pub(crate) fn bytes(ranks: u32) -> usize {
        Geometry::new(ranks).total_bytes()
    }

    /// A world in zeroed memory that its ranks share. Rank 0, which alone hands
    /// out contexts and collective slots, [opens](World::open) it before it does.
    pub(crate) fn within(memory: Segment, ranks: u32) -> Self {
        World {
            memory,
            geometry: Geometry::new(ranks),
            ranks,
        }
    }

    /// Takes the context and the slots with which all ranks start.
    pub(crate) fn open(&self) {
        let (slots, context) = (CollectiveSlots::take(self), self.take_context());
        let first = (Some(CollectiveSlots::FIRST), ContextId::FIRST);
        debug_assert_eq!((slots, context), first);
    }

    /// A context that no one else has or will have.
    pub(super) fn take_context(&self) -> ContextId {
        let next = self.memory.atomic_u64(self.geometry.next_context());
        ContextId(next.fetch_add(1, Ordering::Relaxed))
    }

    /// Where a rank sleeps, whatever it waits for.
    pub(super) fn event(&self, rank: Rank) -> Event<'_> {
        self.memory.event(self.geometry.event(rank.index()))
    }

    /// The queue that leads to a rank.
    pub(super) fn queue(&self, rank: Rank) -> PacketQueue {
        let base = self.geometry.queue(rank.index());
        PacketQueue::new(self.memory.clone(), base, self.geometry.cells)
    }

    /// The ranks that wait for space in that queue.
    pub(super) fn waiting_senders(&self, rank: Rank) -> WaitingSenders {
        let base = self.geometry.waiting_senders(rank.index());
        WaitingSenders::new(self.memory.clone(), base, self.ranks)
    }

    /// Notes that a rank has left, unless that has been noted before, and wakes
    /// all others. Called by the rank itself, by its supervisor when it has
    /// ended, or by ranks that found it ended: several of these say the same.
    pub(crate) fn leave(&self, rank: Rank, loss: Loss) {
        let state = self.memory.atomic_u32(self.geometry.state(rank.index()));
        if state.load(Ordering::Acquire) == PRESENT {
            if loss != Loss::Returned {
                let word = self.memory.atomic_u64(self.geometry.first_loss());
                let entry = (u64::from(rank.0) << 32) | u64::from(loss.code());
                // An earlier loss is the cause of this one, so it stays. The
                // state follows: whoever sees that this rank has left, or that
                // another has left because of that, finds the cause.
                let _ = word.compare_exchange(0, entry, Ordering::AcqRel, Ordering::Relaxed);
            }
            state.store(loss.code(), Ordering::Release);
        }
        let departures = self.memory.atomic_u64(self.geometry.has_departures());
        departures.store(1, Ordering::Release);
        self.notify_all();
    }

    /// Whether any rank has left. Those who wait ask this first: they look often,
    /// and the states of all ranks are as many cache lines.
    pub(super) fn has_departures(&self) -> bool {
        let departures = self.memory.atomic_u64(self.geometry.has_departures());
        departures.load(Ordering::Acquire) != 0
    }

    pub(super) fn notify_all(&self) {
        Event::notify_each((0..self.ranks).map(|rank| self.event(Rank(rank))));
    }

    /// Fails if a rank panicked or was killed.
    pub(super) fn check(&self) -> Result<()> {
        let word = self.memory.atomic_u64(self.geometry.first_loss());
        let entry = word.load(Ordering::Acquire);
        match Loss::from_code(entry as u32) {
            None => Ok(()),
            Some(reason) => Err(TransportError::PeerLost {
                rank: Rank((entry >> 32) as u32),
                reason,
            }),
        }
    }

    /// Whether the process of a rank is known to have ended, so that none of its
    /// threads runs any more.
    pub(super) fn is_ended(&self, rank: Rank) -> bool {
        let state = self.memory.atomic_u32(self.geometry.state(rank.index()));
        let loss = Loss::from_code(state.load(Ordering::Acquire));
        matches!(
            loss,
            Some(Loss::Killed { .. } | Loss::Exited { .. } | Loss::Ended)
        )
    }

    /// The error of waiting for this rank, if it has left. What it did before
    /// is visible to the caller after this.
    pub(super) fn absence(&self, rank: Rank) -> Option<TransportError> {
        let state = self.memory.atomic_u32(self.geometry.state(rank.index()));
        let reason = Loss::from_code(state.load(Ordering::Acquire))?;
        // The first loss is why a rank left, if it left because of an error.
        let lost = TransportError::PeerLost { rank, reason };
        Some(self.check().err().unwrap_or(lost))
    }
}
