//! Collective slots: shared memory in which each rank leaves a short
//! contribution to a collective, by the protocol of [`operations`].

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::engine::Engine;
use super::geometry::{INLINE_BYTES, SLOT_SETS};
use super::operations::{self, Slots, Wakes};
use super::world::World;
use crate::{Gathered, Rank, Result, Segment, TransportError};

/// Up to so many ranks look at each other's entries instead of counting arrivals. Four ranks on two
/// cores were slower that way (small collective calls, 3.7 ms instead of 3.1); with a core each it is
/// not known.
const FEW_RANKS: u32 = 2;

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
        self.arrivals(world).store(0, Ordering::Relaxed);
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
    pub(super) fn enter(
        self,
        engine: &Engine,
        operation: u64,
        bytes: &[u8],
        wakes: Wakes,
    ) -> Result<()> {
        operations::enter(&self.of(engine), operation, bytes, wakes)
    }

    /// Returns when all ranks have entered the operation, and fails as soon as
    /// one never will.
    pub(super) fn await_all(self, engine: &Engine, operation: u64) -> Result<()> {
        operations::await_all(&self.of(engine), operation)
    }

    /// Returns when one rank has entered the operation.
    pub(super) fn await_one(self, engine: &Engine, rank: Rank, operation: u64) -> Result<()> {
        operations::await_one(&self.of(engine), rank, operation)
    }

    fn of(self, engine: &Engine) -> SlotsOfRank<'_> {
        SlotsOfRank {
            slots: self,
            engine,
        }
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

    /// Whether every rank gave this one byte to an operation that all have entered.
    pub(super) fn have_all_given(self, engine: &Engine, byte: u8, operation: u64) -> bool {
        operations::have_all_given(&self.of(engine), operation, byte)
    }

    fn state(self, world: &World) -> &AtomicU32 {
        world.memory.atomic_u32(world.geometry.slot_set(self.0))
    }

    /// How often ranks have entered operations.
    fn arrivals(self, world: &World) -> &AtomicU64 {
        let after_releases = world.geometry.slot_set(self.0) + 2 * size_of::<u32>();
        world.memory.atomic_u64(after_releases)
    }

    /// The last operation that a rank has entered.
    fn entered(self, world: &World, rank: Rank) -> &AtomicU64 {
        let place = world.geometry.place(self.0, rank.index());
        world.memory.atomic_u64(place)
    }
}

/// A set of slots, used by one rank.
struct SlotsOfRank<'a> {
    slots: CollectiveSlots,
    engine: &'a Engine,
}

impl Slots for SlotsOfRank<'_> {
    type Word = AtomicU64;

    fn ranks(&self) -> u32 {
        self.engine.world.ranks
    }

    fn own_rank(&self) -> Rank {
        self.engine.rank
    }

    fn counts_arrivals(&self) -> bool {
        self.ranks() > FEW_RANKS
    }

    fn arrivals(&self) -> &AtomicU64 {
        self.slots.arrivals(&self.engine.world)
    }

    fn entered(&self, rank: Rank) -> &AtomicU64 {
        self.slots.entered(&self.engine.world, rank)
    }

    fn write(&self, operation: u64, bytes: &[u8]) {
        let World {
            memory, geometry, ..
        } = &self.engine.world;
        let slot = geometry.slot(self.slots.0, self.engine.rank.index(), operation);
        let length = memory.atomic_u64(slot);
        length.store(bytes.len() as u64, Ordering::Relaxed);
        if bytes.len() <= INLINE_BYTES {
            memory.store_bytes(slot + size_of::<u64>(), bytes);
        }
    }

    fn holds(&self, rank: Rank, operation: u64, byte: u8) -> bool {
        let World {
            memory, geometry, ..
        } = &self.engine.world;
        let slot = geometry.slot(self.slots.0, rank.index(), operation);
        let length = memory.atomic_u64(slot).load(Ordering::Relaxed);
        length == 1 && {
            let mut held = [0];
            memory.load_bytes(slot + size_of::<u64>(), &mut held);
            held == [byte]
        }
    }

    fn has_departures(&self) -> bool {
        self.engine.world.has_departures()
    }

    fn absence(&self, rank: Rank) -> Option<TransportError> {
        self.engine.world.absence(rank)
    }

    fn poll(&self) {
        self.engine.poll();
    }

    fn wait(&self, ready: impl FnMut() -> Result<Option<()>>) -> Result<()> {
        self.engine.wait(ready)
    }

    fn notify_all(&self) {
        self.engine.world.notify_all();
    }
}
