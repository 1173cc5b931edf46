//! Collective slots: shared memory in which each rank leaves a short
//! contribution to a collective.
//!
//! The operations on a set of slots are numbered from 1. A rank that enters
//! operation k writes its contribution into its slot k mod 2, and then its count
//! of entered operations. It may overwrite the contribution to operation k - 2
//! because it first waits until all have entered k - 1, and so have finished
//! k - 2; most collectives know that without a wait.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::engine::Engine;
use super::geometry::{INLINE_BYTES, SLOT_SETS};
use super::world::World;
use crate::{Gathered, Rank, Result, Segment};

const FREE: u32 = 0;
const TAKEN: u32 = 1;

/// One of the sets of slots of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CollectiveSlots(pub(super) usize);

/// What a rank gave to an operation.
#[derive(Debug)]
pub(super) enum Contribution {
    /// The bytes themselves.
    Inline(Vec<u8>),
    /// They are too long for a slot and come as a message.
    Elsewhere,
}

impl CollectiveSlots {
    /// The slots of a world's first context.
    pub(super) const FIRST: CollectiveSlots = CollectiveSlots(0);

    /// Takes a free set, if there is one.
    pub(super) fn take(world: &World) -> Option<CollectiveSlots> {
        (0..SLOT_SETS).map(CollectiveSlots).find(|slots| {
            let state = slots.state(world);
            let taken = state.compare_exchange(FREE, TAKEN, Ordering::AcqRel, Ordering::Relaxed);
            taken.is_ok()
        })
    }

    /// Notes that one rank has done with the set; the last one frees it.
    pub(super) fn release(self, world: &World) {
        let releases = world
            .memory
            .atomic_u32(world.geometry.slot_set(self.0) + size_of::<u32>());
        if releases.fetch_add(1, Ordering::AcqRel) + 1 < world.ranks {
            return;
        }
        for rank in 0..world.ranks {
            self.entered(world, Rank(rank)).store(0, Ordering::Relaxed);
        }
        let scratch = self.scratch(world);
        for offset in (0..scratch.bytes()).step_by(size_of::<u64>()) {
            scratch.atomic_u64(offset).store(0, Ordering::Relaxed);
        }
        releases.store(0, Ordering::Relaxed);
        self.state(world).store(FREE, Ordering::Release);
    }

    /// Frees a set that no rank has used.
    pub(super) fn give_back(self, world: &World) {
        self.state(world).store(FREE, Ordering::Release);
    }

    /// Memory of all ranks that use the set, zeroed at first.
    pub(super) fn scratch(self, world: &World) -> Segment {
        let start = world.geometry.scratch(self.0);
        world.memory.part(start, world.geometry.scratch_bytes())
    }

    /// Enters an operation with a contribution.
    pub(super) fn enter(self, engine: &Engine, operation: u64, bytes: &[u8]) -> Result<()> {
        let world = &engine.world;
        self.await_all(engine, operation - 1)?;
        let slot = world.geometry.slot(self.0, engine.rank.index(), operation);
        let length = world.memory.atomic_u64(slot);
        length.store(bytes.len() as u64, Ordering::Relaxed);
        if bytes.len() <= INLINE_BYTES {
            world.memory.store_bytes(slot + size_of::<u64>(), bytes);
        }
        self.entered(world, engine.rank)
            .store(operation, Ordering::Release);
        world.notify_all();
        Ok(())
    }

    /// Returns when all ranks have entered the operation, and fails as soon as
    /// one never will. That is asked of every rank, not only of the first that
    /// is missing: one that failed in an earlier operation has not entered it
    /// and may not come again.
    pub(super) fn await_all(self, engine: &Engine, operation: u64) -> Result<()> {
        let ranks = engine.world.ranks;
        let mut entered = 0;
        engine.wait(|| {
            while entered < ranks && self.has_entered(engine, Rank(entered), operation)? {
                entered += 1;
            }
            if entered == ranks {
                return Ok(Some(()));
            }
            let mut others = (entered + 1..ranks).map(Rank);
            others.try_for_each(|rank| self.may_enter(engine, rank, operation))?;
            Ok(None)
        })
    }

    /// Returns when one rank has entered the operation.
    pub(super) fn await_one(self, engine: &Engine, rank: Rank, operation: u64) -> Result<()> {
        engine.wait(|| Ok(self.has_entered(engine, rank, operation)?.then_some(())))
    }

    /// What a rank gave to an operation that it has entered.
    pub(super) fn contribution(self, world: &World, rank: Rank, operation: u64) -> Contribution {
        let slot = world.geometry.slot(self.0, rank.index(), operation);
        let length = world.memory.atomic_u64(slot).load(Ordering::Relaxed);
        match usize::try_from(length) {
            Ok(length) if length <= INLINE_BYTES => {
                let mut bytes = vec![0; length];
                let start = slot + size_of::<u64>();
                world.memory.load_bytes(start, &mut bytes);
                Contribution::Inline(bytes)
            }
            _ => Contribution::Elsewhere,
        }
    }

    /// Appends what a rank gave, unless it comes as a message; whether it was appended.
    pub(super) fn push_contribution(
        self,
        world: &World,
        rank: Rank,
        operation: u64,
        all: &mut Gathered,
    ) -> bool {
        let slot = world.geometry.slot(self.0, rank.index(), operation);
        let length = world.memory.atomic_u64(slot).load(Ordering::Relaxed);
        let Some(length) = usize::try_from(length)
            .ok()
            .filter(|it| *it <= INLINE_BYTES)
        else {
            return false;
        };
        let start = slot + size_of::<u64>();
        all.push_with(length, |bytes| world.memory.load_bytes(start, bytes));
        true
    }

    /// Whether the rank has entered the operation; fails if it never will.
    fn has_entered(self, engine: &Engine, rank: Rank, operation: u64) -> Result<bool> {
        let entered = self.entered(&engine.world, rank);
        if entered.load(Ordering::Acquire) >= operation {
            return Ok(true);
        }
        engine.poll();
        self.may_enter(engine, rank, operation)?;
        Ok(entered.load(Ordering::Acquire) >= operation)
    }

    /// Fails if the rank has not entered the operation and never will.
    fn may_enter(self, engine: &Engine, rank: Rank, operation: u64) -> Result<()> {
        match engine.world.absence(rank) {
            Some(lost) if self.entered(&engine.world, rank).load(Ordering::Acquire) < operation => {
                Err(lost)
            }
            _ => Ok(()),
        }
    }

    fn state(self, world: &World) -> &AtomicU32 {
        world.memory.atomic_u32(world.geometry.slot_set(self.0))
    }

    /// How many operations a rank has entered.
    fn entered(self, world: &World, rank: Rank) -> &AtomicU64 {
        let place = world.geometry.place(self.0, rank.index());
        world.memory.atomic_u64(place)
    }
}
