//! Short collectives: each rank writes on a board that all can read.
//!
//! Operations of a board are numbered from 1. A rank that enters operation k
//! writes its contribution into slot k mod 2 and then its count of entered
//! operations. It may overwrite the slot of operation k - 2 because it first
//! waits until all have entered k - 1, and so have finished k - 2; in most
//! collectives that is known without a wait.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::geometry::{BOARDS, INLINE_BYTES};
use super::mailroom::Mailroom;
use super::world::World;
use crate::{Gathered, Rank, Result, Segment};

const FREE: u32 = 0;
const TAKEN: u32 = 1;

/// One of the boards of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Board(pub(super) usize);

/// What a rank gave to an operation.
#[derive(Debug)]
pub(super) enum Contribution {
    /// The bytes themselves.
    Inline(Vec<u8>),
    /// They are too long for the board and come as a message.
    Elsewhere,
}

impl Board {
    /// The board of a world's first context.
    pub(super) const FIRST: Board = Board(0);

    /// Takes a free board, if there is one.
    pub(super) fn take(world: &World) -> Option<Board> {
        (0..BOARDS).map(Board).find(|board| {
            let state = board.state(world);
            let taken = state.compare_exchange(FREE, TAKEN, Ordering::AcqRel, Ordering::Relaxed);
            taken.is_ok()
        })
    }

    /// Notes that one rank needs the board no more; the last one frees it.
    pub(super) fn release(self, world: &World) {
        let releases = world
            .memory
            .atomic_u32(world.geometry.board(self.0) + size_of::<u32>());
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

    /// Frees a board that no rank has used.
    pub(super) fn give_back(self, world: &World) {
        self.state(world).store(FREE, Ordering::Release);
    }

    /// Zeroed memory of all ranks that use the board.
    pub(super) fn scratch(self, world: &World) -> Segment {
        let start = world.geometry.scratch(self.0);
        world.memory.part(start, world.geometry.scratch_bytes())
    }

    /// Enters an operation with a contribution.
    pub(super) fn enter(self, room: &Mailroom, operation: u64, bytes: &[u8]) -> Result<()> {
        let world = &room.world;
        self.await_all(room, operation - 1)?;
        let slot = world.geometry.slot(self.0, room.rank.index(), operation);
        let length = world.memory.atomic_u64(slot);
        length.store(bytes.len() as u64, Ordering::Relaxed);
        if bytes.len() <= INLINE_BYTES {
            world.memory.store_bytes(slot + size_of::<u64>(), bytes);
        }
        self.entered(world, room.rank)
            .store(operation, Ordering::Release);
        world.notify_all();
        Ok(())
    }

    /// Returns when all ranks have entered the operation, and fails as soon as
    /// one never will. That is asked of every rank, not only of the first that
    /// is missing: one that failed in an earlier operation has not entered it
    /// and may not come again.
    pub(super) fn await_all(self, room: &Mailroom, operation: u64) -> Result<()> {
        let ranks = room.world.ranks;
        let mut entered = 0;
        room.wait(|| {
            while entered < ranks && self.has_entered(room, Rank(entered), operation)? {
                entered += 1;
            }
            if entered == ranks {
                return Ok(Some(()));
            }
            let mut others = (entered + 1..ranks).map(Rank);
            others.try_for_each(|rank| self.may_enter(room, rank, operation))?;
            Ok(None)
        })
    }

    /// Returns when one rank has entered the operation.
    pub(super) fn await_one(self, room: &Mailroom, rank: Rank, operation: u64) -> Result<()> {
        room.wait(|| Ok(self.has_entered(room, rank, operation)?.then_some(())))
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
    fn has_entered(self, room: &Mailroom, rank: Rank, operation: u64) -> Result<bool> {
        let entered = self.entered(&room.world, rank);
        if entered.load(Ordering::Acquire) >= operation {
            return Ok(true);
        }
        room.harvest();
        self.may_enter(room, rank, operation)?;
        Ok(entered.load(Ordering::Acquire) >= operation)
    }

    /// Fails if the rank has not entered the operation and never will.
    fn may_enter(self, room: &Mailroom, rank: Rank, operation: u64) -> Result<()> {
        match room.world.absence(rank) {
            Some(lost) if self.entered(&room.world, rank).load(Ordering::Acquire) < operation => {
                Err(lost)
            }
            _ => Ok(()),
        }
    }

    fn state(self, world: &World) -> &AtomicU32 {
        world.memory.atomic_u32(world.geometry.board(self.0))
    }

    /// How many operations a rank has entered.
    fn entered(self, world: &World, rank: Rank) -> &AtomicU64 {
        let place = world.geometry.place(self.0, rank.index());
        world.memory.atomic_u64(place)
    }
}
