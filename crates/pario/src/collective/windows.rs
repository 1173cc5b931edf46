//! Windows in memory that the ranks of a node share.
//!
//! A ring of slots, each with the bytes of a window and a few words that hold its state.
//! Windows are numbered throughout the life of the file, identically on all ranks; window `n`
//! uses slot `n % slots` once the slot's previous window is complete. `README.md` in this
//! directory explains the states.
//!
//! `unsafe` is needed because ranks copy into and out of a slot at the same time, each its own
//! bytes; the words below separate ranks that would touch the same bytes.
#![allow(unsafe_code)]

use std::{
    sync::atomic::{
        AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
    time::Duration,
};

use pario_transport::{Backoff, Event, Segment, Transport, Waiter};

use crate::{Result, access::WindowBuffer};

/// Words of a slot, each at its own offset.
mod word {
    /// Windows that this slot has completed.
    pub(super) const COMPLETED: usize = 0;
    /// Windows that some rank has claimed to fill from the file.
    pub(super) const CLAIMED: usize = 8;
    /// Windows filled from the file.
    pub(super) const FILLED: usize = 16;
    /// Where the file ended in the window, as an offset of the file.
    pub(super) const END: usize = 24;
    /// Ranks that are done with the current window.
    pub(super) const ARRIVED: usize = 32;
    /// Wakes waiting ranks.
    pub(super) const EVENT: usize = 40;
    /// Two cache lines per slot.
    pub(super) const BYTES: usize = 128;
}

/// Words of the ring, before those of the slots.
mod ring {
    /// The first window that no rank has claimed to write.
    pub(super) const UNWRITTEN: usize = 0;
    /// Ranks that are writing.
    pub(super) const WRITERS: usize = 8;
    /// Ranks that wait for a slot and could write in the meantime.
    pub(super) const IDLE: usize = 12;
    /// Wakes ranks that wait for a slot or for a window to write.
    pub(super) const EVENT: usize = 16;
    /// Two cache lines.
    pub(super) const BYTES: usize = 128;
}

/// How long ranks yield before they sleep: most waits last as long as the transfer of a window
/// or two, and a wake-up would cost a good part of that.
const YIELD_FOR: Duration = Duration::from_micros(300);

fn backoff(comm: &dyn Transport) -> Backoff {
    let usual = comm.backoff();
    Backoff {
        yield_for: usual.yield_for.max(YIELD_FOR),
        ..usual
    }
}

/// One rank's access to the ring.
#[derive(Debug)]
pub(crate) struct Windows {
    segment: Segment,
    slots: u64,
    slot_bytes: usize,
    ranks: u32,
    /// The number of the next window, the same on all ranks between calls.
    next: u64,
}

/// What a rank may do after waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitOutcome {
    /// Use the window that it waited for.
    Go,
    /// Write this window, which it has claimed.
    Write(u64),
}

/// Whether a rank was the last one to finish with a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    Early,
    Last,
}

impl Windows {
    /// *Collective*. `None` on all ranks if they share no memory.
    pub(crate) fn new(
        comm: &dyn Transport,
        slots: u64,
        slot_bytes: usize,
    ) -> Result<Option<Windows>> {
        let bytes = ring::BYTES + slots as usize * (word::BYTES + slot_bytes);
        let segment = comm.segment(bytes)?;
        Ok(segment.map(|segment| Windows {
            segment,
            slots,
            slot_bytes,
            ranks: comm.size(),
            next: 0,
        }))
    }

    pub(crate) fn slots(&self) -> u64 {
        self.slots
    }

    pub(crate) fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// The number of the next call's first window.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Sets the number of the next call's first window.
    pub(crate) fn set_next(&mut self, next: u64) {
        self.next = next;
    }

    fn control(&self, number: u64, offset: usize) -> usize {
        ring::BYTES + (number % self.slots) as usize * word::BYTES + offset
    }

    /// How many windows have used the slot of this one before it.
    fn generation(&self, number: u64) -> u64 {
        number / self.slots
    }

    fn event(&self, number: u64) -> Event<'_> {
        self.segment.event(self.control(number, word::EVENT))
    }

    fn load(&self, number: u64, offset: usize) -> u64 {
        self.segment
            .atomic_u64(self.control(number, offset))
            .load(Acquire)
    }

    /// Whether the slot is free for this window.
    pub(crate) fn is_free(&self, number: u64) -> bool {
        self.load(number, word::COMPLETED) == self.generation(number)
    }

    /// Whether this window has been read from the file.
    pub(crate) fn is_filled(&self, number: u64) -> bool {
        self.load(number, word::FILLED) > self.generation(number)
    }

    /// Called before windows from `first` on are written.
    pub(crate) fn start_writing(&self, first: u64) {
        self.unwritten().fetch_max(first, AcqRel);
    }

    fn unwritten(&self) -> &AtomicU64 {
        self.segment.atomic_u64(ring::UNWRITTEN)
    }

    /// Claims the first unwritten window if all ranks have copied to it and fewer than
    /// `writers` ranks are writing.
    pub(crate) fn claim_write(&self, writers: u32) -> Option<u64> {
        let writing = self.segment.atomic_u32(ring::WRITERS);
        let number = self.unwritten().load(Acquire);
        if !self.is_full(number) || writing.load(Relaxed) >= writers {
            return None;
        }
        if writing.fetch_add(1, AcqRel) < writers
            && self
                .unwritten()
                .compare_exchange(number, number + 1, AcqRel, Relaxed)
                .is_ok()
        {
            return Some(number);
        }
        writing.fetch_sub(1, AcqRel);
        None
    }

    /// Whether all ranks have copied to a window.
    fn is_full(&self, number: u64) -> bool {
        let arrived = self.segment.atomic_u32(self.control(number, word::ARRIVED));
        self.is_free(number) && arrived.load(Acquire) == self.ranks
    }

    /// Marks that this rank has copied to the window.
    pub(crate) fn deliver(&self, number: u64) {
        let arrived = self.segment.atomic_u32(self.control(number, word::ARRIVED));
        if arrived.fetch_add(1, AcqRel) + 1 == self.ranks {
            self.segment.event(ring::EVENT).notify();
        }
    }

    /// Whether some rank has nothing to do but write.
    pub(crate) fn has_idle(&self) -> bool {
        self.segment.atomic_u32(ring::IDLE).load(Relaxed) > 0
    }

    /// Releases the slot of a window that this rank has written.
    pub(crate) fn complete_write(&self, number: u64) {
        let arrived = self.segment.atomic_u32(self.control(number, word::ARRIVED));
        arrived.store(0, Relaxed);
        self.release(number);
        let writing = self.segment.atomic_u32(ring::WRITERS);
        writing.fetch_sub(1, AcqRel);
        self.segment.event(ring::EVENT).notify();
    }

    /// Waits until the slot is free for this window, or until there is a window to write in the
    /// meantime.
    pub(crate) fn wait_free(
        &self,
        comm: &dyn Transport,
        number: u64,
        writers: u32,
    ) -> Result<WaitOutcome> {
        let wait_outcome = || match self.is_free(number) {
            true => Some(WaitOutcome::Go),
            false => self.claim_write(writers).map(WaitOutcome::Write),
        };
        if let Some(wait_outcome) = wait_outcome() {
            return Ok(wait_outcome);
        }
        let idle = self.segment.atomic_u32(ring::IDLE);
        let could_write = u32::from(writers > 0);
        idle.fetch_add(could_write, AcqRel);
        let progress = || comm.progress();
        let event = self.segment.event(ring::EVENT);
        let found = Waiter::new(&progress)
            .backoff(backoff(comm))
            .wait(event, || Ok(wait_outcome()));
        idle.fetch_sub(could_write, AcqRel);
        Ok(found?)
    }

    /// Waits until this window has been read from the file, and returns whether it has: a rank
    /// that can fill it also stops waiting when the window can be claimed.
    pub(crate) fn wait_filled(
        &self,
        comm: &dyn Transport,
        number: u64,
        can_fill: bool,
    ) -> Result<bool> {
        let progress = || comm.progress();
        let filled = Waiter::new(&progress)
            .backoff(backoff(comm))
            .wait(self.event(number), || match self.is_filled(number) {
                true => Ok(Some(true)),
                false => Ok((can_fill && self.is_unclaimed(number)).then_some(false)),
            });
        Ok(filled?)
    }

    /// Whether a window's slot is free and no rank has claimed the window.
    fn is_unclaimed(&self, number: u64) -> bool {
        self.is_free(number) && self.load(number, word::CLAIMED) == self.generation(number)
    }

    /// Claims a free window to fill; `false` if another rank has.
    pub(crate) fn claim(&self, number: u64) -> bool {
        let generation = self.generation(number);
        let claimed = self.segment.atomic_u64(self.control(number, word::CLAIMED));
        self.is_free(number)
            && claimed
                .compare_exchange(generation, generation + 1, AcqRel, Relaxed)
                .is_ok()
    }

    /// Marks a claimed window as filled, up to the end of the file.
    pub(crate) fn fill(&self, number: u64, end: u64) {
        self.segment
            .atomic_u64(self.control(number, word::END))
            .store(end, Relaxed);
        let filled = self.segment.atomic_u64(self.control(number, word::FILLED));
        filled.store(self.generation(number) + 1, Release);
        self.event(number).notify();
    }

    /// Where the file ended in a filled window, as an offset of the file.
    pub(crate) fn end(&self, number: u64) -> u64 {
        self.segment
            .atomic_u64(self.control(number, word::END))
            .load(Relaxed)
    }

    /// Marks that this rank is done with a window that was read. The last rank must `complete`
    /// it.
    pub(crate) fn arrive(&self, number: u64) -> Arrival {
        let arrived = self.segment.atomic_u32(self.control(number, word::ARRIVED));
        if arrived.fetch_add(1, AcqRel) + 1 == self.ranks {
            arrived.store(0, Relaxed);
            Arrival::Last
        } else {
            Arrival::Early
        }
    }

    /// Releases the slot of a window that was read.
    pub(crate) fn complete(&self, number: u64) {
        self.release(number);
        self.event(number).notify();
    }

    fn release(&self, number: u64) {
        let completed = self
            .segment
            .atomic_u64(self.control(number, word::COMPLETED));
        // A window that was not read has no claim; the next one may have.
        let next = self.generation(number) + 1;
        self.segment
            .atomic_u64(self.control(number, word::CLAIMED))
            .store(next, Relaxed);
        self.segment
            .atomic_u64(self.control(number, word::FILLED))
            .store(next, Relaxed);
        completed.store(next, Release);
    }

    /// The bytes of a window's slot. Depending on its state, ranks use it one at a time, or
    /// each rank uses its own bytes.
    pub(crate) fn buffer(&self, number: u64, bytes: usize) -> WindowBuffer<'_> {
        assert!(bytes <= self.slot_bytes);
        let data = ring::BYTES + self.slots as usize * word::BYTES;
        let at = data + (number % self.slots) as usize * self.slot_bytes;
        // SAFETY: the slot lies within the segment, which `self` keeps alive.
        unsafe { WindowBuffer::from_raw(self.segment.as_ptr().add(at), bytes) }
    }
}
