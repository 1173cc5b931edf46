//! Prefetch (Zhang 2009, section 3.3): agents request their servers' data in ascending order,
//! the ranks synchronise once all requests are submitted, and every rank then reads the data
//! that it has not requested itself, which the agents' requests bring into the servers' caches.
//!
//! An agent's own data goes straight to its memory. Data of others is read into a few slots,
//! which requests use in turn, so that memory is bounded.

use std::{cell::Cell, collections::VecDeque, ops::Range, slice};

use pario_driver::{Batch, Direction, Outcome};
use pario_plan::{Rounds, Schedule, ScheduledWindow};

use super::{
    PlanResult, Work,
    turns::Turns,
    window_io::{self, WindowIo},
};
use crate::{
    Error, Result, Status,
    access::{MemorySpan, Pieces, Shared, WindowBuffer, submitted},
};

/// Requests in flight per agent that read data of others.
const SLOTS: usize = 8;

/// Reads this rank's data, after its requests as an agent if it is one.
pub(super) fn run(work: &Work<'_>, call: u64) -> Result<Status> {
    let slot_bytes = (work.rounds.window_bytes as usize / SLOTS).max(1);
    let mut scratch = Vec::new();
    let is_agent = is_agent(work);
    let synchronise = || work.comm.barrier();
    let _guard = work.operation.reading_guard();
    let is_complete = if is_agent && scratch.try_reserve_exact(SLOTS * slot_bytes).is_ok() {
        scratch.resize(SLOTS * slot_bytes, 0);
        let bytes = Cell::new(0);
        let requests = Requests {
            work,
            io: WindowIo::new(work),
            turns: Turns::of(work.rounds, work.accesses, call),
            windows: work.rounds.schedule(work.accesses),
            current: None,
            parts: VecDeque::new(),
            slots: WindowBuffer::new(&mut scratch),
            slot_bytes,
            slot: 0,
            bytes: &bytes,
        };
        let handle = work.operation.handle();
        let (outcomes, synchronised) = submitted(handle, requests, SLOTS, synchronise);
        synchronised?;
        bytes.get() == outcomes.iter().map(|outcome| outcome.bytes).sum()
    } else {
        synchronise()?;
        !is_agent
    };
    match is_complete {
        true => read_rest(work),
        // The end of the file, an error, or no memory: whoever needs the data finds out which.
        false => work.operation.run(),
    }
}

fn is_agent(work: &Work<'_>) -> bool {
    let me = work.comm.rank().0;
    work.rounds.aggregators.iter().any(|it| it.rank == me)
}

/// A part of a request: contiguous in the file and in memory.
enum Part<'a> {
    Mine(Shared<'a>),
    /// Some of the data of other ranks.
    Others(Range<u64>),
}

/// The requests of an agent, in the order in which it submits them.
struct Requests<'a> {
    work: &'a Work<'a>,
    io: WindowIo<'a>,
    turns: Option<Turns>,
    windows: Schedule<'a>,
    /// The window whose parts are being requested.
    current: Option<ScheduledWindow>,
    parts: VecDeque<Part<'a>>,
    slots: WindowBuffer<'a>,
    slot_bytes: usize,
    /// The slot of the next request.
    slot: usize,
    /// Bytes of all requests so far.
    bytes: &'a Cell<u64>,
}

impl<'a> Iterator for Requests<'a> {
    type Item = Batch<'a>;

    fn next(&mut self) -> Option<Batch<'a>> {
        while self.parts.is_empty() {
            self.next_window()?;
        }
        let most = self.io.list_pieces();
        let slot = self.slot * self.slot_bytes;
        let slot = self.slots.part(slot..slot + self.slot_bytes);
        self.slot = (self.slot + 1) % SLOTS;
        let mut batch = Batch::new(Direction::Read);
        let mut used = 0;
        while batch.pieces().len() < most && used < self.slot_bytes {
            match self.parts.pop_front() {
                None => break,
                Some(Part::Mine(piece)) => piece.push(&mut batch),
                Some(Part::Others(range)) => {
                    let room = (self.slot_bytes - used) as u64;
                    let len = room.min(range.end - range.start);
                    let end = used + len as usize;
                    slot.part(used..end).push(&mut batch, range.start);
                    used = end;
                    if range.start + len < range.end {
                        self.parts
                            .push_front(Part::Others(range.start + len..range.end));
                    }
                }
            }
        }
        self.bytes.set(self.bytes.get() + batch.bytes());
        Some(batch)
    }
}

impl<'a> Requests<'a> {
    /// Goes on to the next window of this agent; `None` after the last.
    fn next_window(&mut self) -> Option<()> {
        let Work {
            comm,
            rounds,
            accesses,
            ..
        } = *self.work;
        if let (Some(turns), Some(before)) = (&self.turns, self.current.take()) {
            // All requests for it are submitted.
            let end = before.window.span().end;
            let next = rounds.next_data(accesses, before.aggregator, end);
            turns.pass(comm, rounds, before.aggregator, next.unwrap_or(u64::MAX));
        }
        let me = comm.rank().0;
        let item = self
            .windows
            .find(|item| rounds.aggregators[item.aggregator].rank == me)?;
        if let Some(turns) = &self.turns {
            let start = item.window.span().start;
            let first = rounds.next_data(accesses, item.aggregator, start);
            turns.await_turn(comm, rounds, item.aggregator, first.unwrap_or(start));
        }
        for extent in item.window.extents() {
            let members = self.work.members(item.aggregator);
            for run in self.io.needed_runs(members, extent) {
                self.push_run(run);
            }
        }
        self.current = Some(item);
        Some(())
    }

    /// Divides a run of the file into this rank's own data and the rest.
    fn push_run(&mut self, run: Range<u64>) {
        let mine = self.work.mine();
        let data = mine.data_in(run.clone());
        let mut at = run.start;
        for piece in pieces_of(self.work, data) {
            if at < piece.offset {
                self.parts.push_back(Part::Others(at..piece.offset));
            }
            at = piece.offset + piece.len;
            self.parts.push_back(Part::Mine(piece));
        }
        if at < run.end {
            self.parts.push_back(Part::Others(at..run.end));
        }
    }
}

/// The pieces of some of this rank's data bytes.
fn pieces_of<'a>(work: &'a Work<'a>, data: Range<u64>) -> Pieces<'a> {
    let len = data.end - data.start;
    let file = window_io::file_span(work.mine(), data.start, len);
    let memory = MemorySpan::of(work.operation.memory()).slice(data.start, len);
    Pieces::new(&file, &memory)
}

/// Reads this rank's data from the servers of other agents, one after the other. Each rank begins
/// with another server.
fn read_rest(work: &Work<'_>) -> Result<Status> {
    let me = work.comm.rank().0;
    let aggregators = &work.rounds.aggregators;
    let first = me as usize % aggregators.len().max(1);
    let (before, from) = aggregators.split_at(first);
    let mut result = PlanResult::default();
    for aggregator in from.iter().chain(before).filter(|it| it.rank != me) {
        let alone = Rounds {
            aggregators: vec![aggregator.clone()],
            ..*work.rounds
        };
        read_realm(work, &alone, &mut result);
    }
    let count = work.mine().bytes_below(result.stop.unwrap_or(u64::MAX));
    match result.error {
        None => Ok(Status::new(count)),
        Some(error) => Err(error.after(count)),
    }
}

/// Reads this rank's data in the realm of one aggregator.
fn read_realm(work: &Work<'_>, alone: &Rounds, result: &mut PlanResult) {
    let most = (work.operation.hints().pario_list_pieces as usize).max(1);
    let mine = work.mine();
    let mut batch = Batch::new(Direction::Read);
    for item in alone.schedule(slice::from_ref(mine)) {
        for extent in item.window.extents() {
            for piece in pieces_of(work, mine.data_in(extent.clone())) {
                piece.push(&mut batch);
                if batch.pieces().len() == most {
                    if let Err(()) = carry_out(work, &batch, result) {
                        return;
                    }
                    batch.clear();
                }
            }
        }
    }
    let _ = carry_out(work, &batch, result);
}

/// Fails where the batch was not read to its end.
fn carry_out(
    work: &Work<'_>,
    batch: &Batch<'_>,
    result: &mut PlanResult,
) -> std::result::Result<(), ()> {
    let Outcome { mut bytes, error } = work.operation.handle().transfer(batch);
    for piece in batch.pieces() {
        let len = piece.len as u64;
        if bytes < len {
            let stop = piece.offset + bytes;
            result.stop_at(stop, error.map(|error| Error::from(error).at_offset(stop)));
            return Err(());
        }
        bytes -= len;
    }
    Ok(())
}
