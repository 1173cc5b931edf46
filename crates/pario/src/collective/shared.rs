//! Windows through shared memory: every rank copies its own bytes between its
//! buffer and the window, and whoever is last to fill a window writes it, or
//! first to need one reads it. One copy, no messages.

use std::{collections::VecDeque, io, ops::Range};

use pario_driver::{Batch, Direction, LockMode, Outcome};
use pario_plan::{
    Access, Rounds, Turn,
    coverage::{self, Proof},
    schedule,
};
use pario_transport::Transport;

use super::{
    Progress,
    planning::{self, Holes},
    windows::{Arrival, Windows},
};
use crate::{
    Error, Result,
    access::{FileSpan, MemorySpan, WindowBuffer},
    operation::Operation,
};

/// A call, planned.
pub(super) struct Work<'a> {
    pub(super) comm: &'a dyn Transport,
    pub(super) operation: &'a Operation,
    pub(super) rounds: &'a Rounds,
    pub(super) accesses: &'a [Access],
    pub(super) holes: Holes,
}

/// Moves all windows; says how far the ones that this rank issued got.
pub(super) fn run(work: &Work<'_>, windows: &mut Windows) -> Result<Progress> {
    let ranks = Ranks {
        work,
        windows,
        proof: None,
    };
    let (progress, count) = match work.operation.direction() {
        Direction::Write => ranks.write()?,
        Direction::Read => ranks.read()?,
    };
    windows.advance(count);
    Ok(progress)
}

/// What this rank does.
struct Ranks<'a> {
    work: &'a Work<'a>,
    windows: &'a Windows,
    /// Whether byte sums prove coverage; found out when first needed.
    proof: Option<Proof>,
}

impl Ranks<'_> {
    fn write(mut self) -> Result<(Progress, u64)> {
        let mut progress = Progress::default();
        let mut number = self.windows.first();
        for turn in self.work.rounds.schedule(self.work.accesses) {
            self.windows.wait_free(self.work.comm, number)?;
            self.copy(&turn, number, u64::MAX);
            if self.windows.arrive(number) == Arrival::Last {
                self.flush(&turn, number, &mut progress);
                self.windows.complete(number);
            }
            number += 1;
        }
        // Slots are used again by the next call only once they are complete,
        // but a status must not be given before.
        self.wait_complete(number)?;
        Ok((progress, number - self.windows.first()))
    }

    /// Waits for the windows that are still under way, which others write.
    fn wait_complete(&self, end: u64) -> Result<()> {
        let first = self
            .windows
            .first()
            .max(end.saturating_sub(self.windows.slots()));
        for number in first..end {
            // A window is complete when its slot is free for the next one.
            self.windows
                .wait_free(self.work.comm, number + self.windows.slots())?;
        }
        Ok(())
    }

    fn read(self) -> Result<(Progress, u64)> {
        let mut progress = Progress::default();
        let mut schedule = self.work.rounds.schedule(self.work.accesses);
        let mut upcoming = VecDeque::new();
        let mut number = self.windows.first();
        loop {
            let wanted = self.windows.slots() as usize - upcoming.len();
            upcoming.extend(schedule.by_ref().take(wanted));
            self.fill_ahead(number, &upcoming, &mut progress);
            let Some(turn) = upcoming.pop_front() else {
                break;
            };
            self.windows.wait_filled(self.work.comm, number)?;
            self.copy(&turn, number, self.windows.end(number));
            if self.windows.arrive(number) == Arrival::Last {
                self.windows.complete(number);
            }
            number += 1;
        }
        Ok((progress, number - self.windows.first()))
    }

    /// While the next window is not there, fills those of the following ones
    /// that are free and that no other rank has undertaken to fill.
    fn fill_ahead(&self, number: u64, upcoming: &VecDeque<Turn>, progress: &mut Progress) {
        for (turn, number_ahead) in upcoming.iter().zip(number..) {
            if self.windows.is_filled(number) {
                return;
            }
            if self.windows.claim(number_ahead) {
                self.fill(turn, number_ahead, progress);
            }
        }
    }

    /// Copies this rank's bytes below `end` between its memory and a window.
    fn copy(&self, turn: &Turn, number: u64, end: u64) {
        let work = self.work;
        let mine = &work.accesses[work.comm.rank().index()];
        let buffer = self.windows.buffer(number, turn.window.bytes() as usize);
        let memory = MemorySpan::of(work.operation.memory());
        for (place, extent) in turn.window.placed() {
            let data = mine.data_in(extent.start..extent.end.min(end));
            if data.is_empty() {
                continue;
            }
            let (start, len) = (data.start, data.end - data.start);
            let file = file_span(mine, start, len);
            let part = buffer.part(place as usize..(place + extent.end - extent.start) as usize);
            memory.slice(start, len).exchange(
                work.operation.direction(),
                &file,
                &part,
                extent.start,
            );
        }
    }

    /// Writes a window that all ranks have filled.
    fn flush(&mut self, turn: &Turn, number: u64, progress: &mut Progress) {
        let buffer = self.windows.buffer(number, turn.window.bytes() as usize);
        for (place, extent) in turn.window.placed() {
            let part = buffer.part(place as usize..(place + extent.end - extent.start) as usize);
            let runs = self.runs(&extent);
            if let Err((stop, error)) = self.write_runs(&extent, part, &runs) {
                let error = Error::from(error).at_offset(stop);
                progress.stop_at(stop, Some(error));
                return;
            }
        }
    }

    /// The stretches of an extent that the ranks have filled.
    fn runs(&mut self, extent: &Range<u64>) -> Vec<Range<u64>> {
        let accesses = self.work.accesses;
        let bytes: u64 = accesses
            .iter()
            .map(|access| {
                let data = access.data_in(extent.clone());
                data.end - data.start
            })
            .sum();
        let full = bytes == extent.end - extent.start
            && *self.proof.get_or_insert_with(|| planning::proof(accesses)) == Proof::Disjoint;
        match full {
            true => vec![extent.clone()],
            false => coverage::covered(accesses.iter(), extent.clone()),
        }
    }

    fn write_runs(
        &self,
        extent: &Range<u64>,
        buffer: WindowBuffer<'_>,
        runs: &[Range<u64>],
    ) -> std::result::Result<(), (u64, io::Error)> {
        let (Some(first), Some(last)) = (runs.first(), runs.last()) else {
            return Ok(());
        };
        let span = first.start..last.end;
        let lock = match self.work.holes {
            Holes::RewriteLocked => Some(
                self.work
                    .operation
                    .handle()
                    .lock(span.clone(), LockMode::Exclusive)
                    .map_err(|error| (span.start, error))?,
            ),
            _ => None,
        };
        let rewrite = self.work.holes != Holes::Leave && self.rewrites(runs, &span);
        let result = match rewrite {
            true => self.rewrite(extent, buffer, runs, span),
            false => self.write_list(extent, buffer, runs),
        };
        drop(lock);
        result
    }

    /// Paper 000's condition: holes are rewritten where a run and its gap are
    /// short, and left where they are long.
    fn rewrites(&self, runs: &[Range<u64>], span: &Range<u64>) -> bool {
        let limit = self.work.operation.hints().pario_sieve_extent;
        runs.len() > 1 && (span.end - span.start) / runs.len() as u64 <= limit
    }

    fn write_list(
        &self,
        extent: &Range<u64>,
        buffer: WindowBuffer<'_>,
        runs: &[Range<u64>],
    ) -> std::result::Result<(), (u64, io::Error)> {
        let most = self.work.operation.hints().pario_list_pieces as usize;
        for some in runs.chunks(most.max(1)) {
            let mut batch = Batch::new(Direction::Write);
            for run in some {
                within(buffer, extent, run).push(&mut batch, run.start);
            }
            let Outcome { bytes, error } = self.work.operation.handle().transfer(&batch);
            if let Some(error) = error {
                return Err((offset_in(some, bytes), error));
            }
        }
        Ok(())
    }

    /// Reads what is there, puts the runs over it and writes it back.
    fn rewrite(
        &self,
        extent: &Range<u64>,
        buffer: WindowBuffer<'_>,
        runs: &[Range<u64>],
        span: Range<u64>,
    ) -> std::result::Result<(), (u64, io::Error)> {
        let at_start = |error| (span.start, error);
        let operation = self.work.operation;
        let len = (span.end - span.start) as usize;
        let mut whole = operation.buffers().take(len as u64).map_err(at_start)?;
        let whole = &mut whole[..len];
        let got = operation.handle().transfer(&Batch::read(span.start, whole));
        let got = got.into_result().map_err(at_start)?;
        whole[got as usize..].fill(0);
        let target = WindowBuffer::new(whole);
        for run in runs {
            let place = (run.start - span.start) as usize..(run.end - span.start) as usize;
            target.part(place).copy_from(within(buffer, extent, run));
        }
        let mut batch = Batch::new(Direction::Write);
        target.push(&mut batch, span.start);
        let Outcome { bytes, error } = operation.handle().transfer(&batch);
        match error {
            None => Ok(()),
            Some(error) => Err((span.start + bytes, error)),
        }
    }

    /// Reads a claimed window and hands it to all ranks.
    fn fill(&self, turn: &Turn, number: u64, progress: &mut Progress) {
        let buffer = self.windows.buffer(number, turn.window.bytes() as usize);
        let mut end = u64::MAX;
        for (place, extent) in turn.window.placed() {
            let part = buffer.part(place as usize..(place + extent.end - extent.start) as usize);
            let useful = schedule::useful(self.work.accesses, extent.clone());
            if useful.is_empty() {
                continue;
            }
            let mut batch = Batch::new(Direction::Read);
            within(part, &extent, &useful).push(&mut batch, useful.start);
            let Outcome { bytes, error } = self.work.operation.handle().transfer(&batch);
            if bytes < useful.end - useful.start {
                end = useful.start + bytes;
                let error = error.map(|error| Error::from(error).at_offset(end));
                progress.stop_at(end, error);
                break;
            }
        }
        self.windows.fill(number, end);
    }
}

fn file_span(access: &Access, start: u64, len: u64) -> FileSpan<'_> {
    FileSpan {
        displacement: access.displacement(),
        layout: access.layout(),
        first: access.first() + start,
        len,
    }
}

/// The part of an extent's buffer that holds a run.
fn within<'a>(buffer: WindowBuffer<'a>, extent: &Range<u64>, run: &Range<u64>) -> WindowBuffer<'a> {
    buffer.part((run.start - extent.start) as usize..(run.end - extent.start) as usize)
}

/// The byte of the file at which a prefix of runs ends.
fn offset_in(runs: &[Range<u64>], mut bytes: u64) -> u64 {
    for run in runs {
        let len = run.end - run.start;
        if bytes < len {
            return run.start + bytes;
        }
        bytes -= len;
    }
    runs.last().map_or(0, |run| run.end)
}
