//! Exchange through shared memory: every rank copies its own bytes between
//! its buffer and the window, and whoever is last to fill a window writes it,
//! or first to need one reads it. One copy, no messages.

use std::collections::VecDeque;

use pario_driver::Direction;
use pario_plan::Turn;

use super::{
    Progress, Work,
    window_io::{self, WindowIo},
    windows::{Arrival, Windows},
};
use crate::{Result, access::MemorySpan};

/// Moves all windows; says how far the ones that this rank issued got.
pub(super) fn run(work: &Work<'_>, windows: &mut Windows) -> Result<Progress> {
    let io = WindowIo::new(work.operation, work.accesses, work.holes);
    let mut ranks = Ranks {
        work,
        windows,
        io,
        progress: Progress::default(),
    };
    let end = match work.operation.direction() {
        Direction::Write => ranks.write()?,
        Direction::Read => ranks.read()?,
    };
    let progress = ranks.progress;
    windows.set_next(end);
    Ok(progress)
}

/// What this rank does.
struct Ranks<'a> {
    work: &'a Work<'a>,
    windows: &'a Windows,
    io: WindowIo<'a>,
    progress: Progress,
}

impl Ranks<'_> {
    /// Writes; returns the number of the window after the last.
    fn write(&mut self) -> Result<u64> {
        let first = self.windows.next();
        let mut number = first;
        for turn in self.work.rounds.schedule(self.work.accesses) {
            self.windows.wait_free(self.work.comm, number)?;
            self.copy(&turn, number, u64::MAX);
            if self.windows.arrive(number) == Arrival::Last {
                let buffer = self.windows.buffer(number, turn.window.bytes() as usize);
                let members = self.work.members(turn.aggregator);
                self.io
                    .write(&turn.window, &members, buffer, &mut self.progress);
                self.windows.complete(number);
            }
            number += 1;
        }
        // Others may still be writing windows that hold this rank's data.
        for unfinished in first.max(number.saturating_sub(self.windows.slots()))..number {
            self.windows.wait_complete(self.work.comm, unfinished)?;
        }
        Ok(number)
    }

    /// Reads; returns the number of the window after the last.
    fn read(&mut self) -> Result<u64> {
        let mut schedule = self.work.rounds.schedule(self.work.accesses);
        let mut upcoming = VecDeque::new();
        let mut number = self.windows.next();
        loop {
            let wanted = self.windows.slots() as usize - upcoming.len();
            upcoming.extend(schedule.by_ref().take(wanted));
            self.fill_ahead(number, &upcoming);
            let Some(turn) = upcoming.pop_front() else {
                return Ok(number);
            };
            self.windows.wait_filled(self.work.comm, number)?;
            self.copy(&turn, number, self.windows.end(number));
            if self.windows.arrive(number) == Arrival::Last {
                self.windows.complete(number);
            }
            number += 1;
        }
    }

    /// While the next window is not there, fills those of the following ones
    /// that are free and that no other rank has undertaken to fill.
    fn fill_ahead(&mut self, number: u64, upcoming: &VecDeque<Turn>) {
        for (turn, number_ahead) in upcoming.iter().zip(number..) {
            if self.windows.is_filled(number) {
                return;
            }
            if self.windows.claim(number_ahead) {
                let buffer = self
                    .windows
                    .buffer(number_ahead, turn.window.bytes() as usize);
                let members = self.work.members(turn.aggregator);
                let end = self
                    .io
                    .read(&turn.window, &members, buffer, &mut self.progress);
                self.windows.fill(number_ahead, end);
            }
        }
    }

    /// Copies this rank's bytes below `end` between its memory and a window.
    fn copy(&self, turn: &Turn, number: u64, end: u64) {
        let work = self.work;
        if !work.serves(turn.aggregator, work.comm.rank().0) {
            return;
        }
        let buffer = self.windows.buffer(number, turn.window.bytes() as usize);
        let memory = MemorySpan::of(work.operation.memory());
        let direction = work.operation.direction();
        window_io::exchange(direction, work.mine(), &memory, &turn.window, buffer, end);
    }
}
