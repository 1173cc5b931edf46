//! Exchange through shared memory: every rank copies its own bytes between its buffer and the
//! window. A rank that has nothing to copy writes full windows; the first rank that needs a
//! window reads it. One copy, no messages.

use pario_driver::{Direction, Writers};
use pario_plan::ScheduledWindow;
use smallvec::SmallVec;

use super::{
    PlanResult, Work,
    context::SLOTS,
    holes::Holes,
    window_io::{self, WindowIo},
    windows::{Arrival, WaitOutcome, Windows},
};
use crate::{Result, access::MemorySpan};

/// Moves all windows; returns how far those that this rank transferred got.
pub(super) fn run(work: &Work<'_>, windows: &mut Windows) -> Result<PlanResult> {
    let io = WindowIo::new(work);
    let mut ranks = Ranks {
        work,
        windows,
        writers: writers(work, windows.slots() as u32),
        io,
        plan_result: PlanResult::default(),
    };
    let end = match work.operation.direction() {
        Direction::Write => ranks.write()?,
        Direction::Read => ranks.read()?,
    };
    let plan_result = ranks.plan_result;
    windows.set_next(end);
    Ok(plan_result)
}

/// How many ranks write at the same time: one if the kernel admits one writer per file at a time,
/// as it does for local file systems. A second one would wait in the kernel, where it cannot copy
/// in the meantime, unless it has holes to fill first.
fn writers(work: &Work<'_>, slots: u32) -> u32 {
    let operation = work.operation;
    if !operation.has_opened() || work.is_suspended {
        // Ranks that have the file open write; rank 0 always has.
        return 0;
    }
    match (operation.handle().facts().file_system.writers(), work.holes) {
        _ if operation.hints().direct_write => slots,
        (Writers::One, Holes::Leave) => 1,
        (Writers::One, _) => slots.min(2),
        (Writers::Many, _) => slots,
    }
}

/// The windows that this rank copied to last, one per slot: those that it may have to write.
#[derive(Default)]
struct Recent {
    scheduled: SmallVec<[(ScheduledWindow, u64); SLOTS]>,
}

impl Recent {
    fn push(&mut self, item: ScheduledWindow, number: u64, slots: u64) {
        if self.scheduled.len() as u64 == slots {
            self.scheduled.remove(0);
        }
        self.scheduled.push((item, number));
    }

    fn item(&self, number: u64) -> &ScheduledWindow {
        let mut scheduled = self.scheduled.iter();
        let found = scheduled.find(|(_, other)| *other == number);
        let (item, _) = found.expect("a window is full only after this rank copied to it");
        item
    }
}

/// One rank's part in the exchange.
struct Ranks<'a> {
    work: &'a Work<'a>,
    windows: &'a Windows,
    /// The maximum number of ranks that write at the same time.
    writers: u32,
    io: WindowIo<'a>,
    plan_result: PlanResult,
}

impl Ranks<'_> {
    /// Writes; returns the number of the window after the last.
    fn write(&mut self) -> Result<u64> {
        let mut number = self.windows.next();
        self.windows.start_writing(number);
        let mut recent = Recent::default();
        for item in self.work.rounds.schedule(self.work.accesses) {
            self.await_free(number, &recent)?;
            self.copy(&item, number, u64::MAX);
            recent.push(item, number, self.windows.slots());
            self.windows.deliver(number);
            number += 1;
            // An idle rank writes while this one continues to copy.
            if !self.windows.has_idle() {
                while let Some(full) = self.windows.claim_write(self.writers) {
                    self.write_window(full, &recent);
                }
            }
        }
        // Others may still be writing windows that hold this rank's data.
        for (_, unfinished) in &recent.scheduled {
            self.await_free(unfinished + self.windows.slots(), &recent)?;
        }
        Ok(number)
    }

    /// Waits until a window's slot is free, and writes other windows in the meantime.
    fn await_free(&mut self, number: u64, recent: &Recent) -> Result<()> {
        loop {
            match self
                .windows
                .wait_free(self.work.comm, number, self.writers)?
            {
                WaitOutcome::Go => return Ok(()),
                WaitOutcome::Write(full) => self.write_window(full, recent),
            }
        }
    }

    /// Writes a window that is full.
    fn write_window(&mut self, number: u64, recent: &Recent) {
        let item = recent.item(number);
        let buffer = self.windows.buffer(number, item.window.bytes() as usize);
        let members = self.work.members(item.aggregator);
        self.io
            .write(&item.window, members, buffer, &mut self.plan_result);
        self.windows.complete_write(number);
    }

    /// Reads; returns the number of the window after the last.
    fn read(&mut self) -> Result<u64> {
        let mut schedule = self.work.rounds.schedule(self.work.accesses);
        let mut upcoming = SmallVec::<[ScheduledWindow; SLOTS]>::new();
        let mut number = self.windows.next();
        loop {
            let wanted = self.windows.slots() as usize - upcoming.len();
            upcoming.extend(schedule.by_ref().take(wanted));
            if upcoming.is_empty() {
                return Ok(number);
            }
            self.await_filled(number, &upcoming)?;
            let item = upcoming.remove(0);
            self.copy(&item, number, self.windows.end(number));
            if self.windows.arrive(number) == Arrival::Last {
                self.windows.complete(number);
            }
            number += 1;
        }
    }

    /// Waits until the next window is filled, and fills windows in the meantime. Ranks that have
    /// not opened the file fill none, so one that has must fill this one as soon as its slot is free.
    fn await_filled(&mut self, number: u64, upcoming: &[ScheduledWindow]) -> Result<()> {
        let can_fill = self.work.operation.has_opened();
        loop {
            if can_fill {
                self.fill_ahead(number, upcoming);
            }
            let comm = self.work.comm;
            if self.windows.wait_filled(comm, number, can_fill)? {
                return Ok(());
            }
        }
    }

    /// While the next window is not filled, fills later ones that are free and not claimed by
    /// another rank.
    fn fill_ahead(&mut self, number: u64, upcoming: &[ScheduledWindow]) {
        for (item, number_ahead) in upcoming.iter().zip(number..) {
            if self.windows.is_filled(number) {
                return;
            }
            if self.windows.claim(number_ahead) {
                let buffer = self
                    .windows
                    .buffer(number_ahead, item.window.bytes() as usize);
                let members = self.work.members(item.aggregator);
                let end = self
                    .io
                    .read(&item.window, members, buffer, &mut self.plan_result);
                self.windows.fill(number_ahead, end);
            }
        }
    }

    /// Copies this rank's bytes below `end` between its memory and a window.
    fn copy(&self, item: &ScheduledWindow, number: u64, end: u64) {
        let work = self.work;
        if !work.serves(item.aggregator, work.comm.rank().0) {
            return;
        }
        let buffer = self.windows.buffer(number, item.window.bytes() as usize);
        let memory = MemorySpan::of(work.operation.memory());
        let direction = work.operation.direction();
        window_io::exchange(direction, work.mine(), &memory, &item.window, buffer, end);
    }
}
