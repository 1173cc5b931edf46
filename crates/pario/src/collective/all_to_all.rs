//! Exchange by `MPI_Alltoallw` (Coloma et al. 2006, section 5.4): all ranks take part in
//! every round, which moves one window of each aggregator, straight between the memory
//! of the ranks and the windows. By name only; [`exchange`](super::exchange) is the
//! usual way between nodes.
#![allow(unsafe_code)] // lends the memory of the call and of windows

use pario_driver::Direction;
use pario_plan::{Access, ScheduledWindow};
use pario_transport::MemoryRuns;

use super::{
    PlanResult, Work,
    window_io::{self, WindowIo},
};
use crate::{
    Result,
    access::{MemorySpan, Pieces, WindowBuffer},
    agree::GatherBuffers,
};

/// Moves all windows; returns how far those of this rank got.
pub(super) fn run(work: &Work<'_>) -> Result<PlanResult> {
    let mut exchange = AllToAll {
        work,
        io: WindowIo::new(work),
        buffers: Vec::new(),
        gathers: GatherBuffers::default(),
        result: PlanResult::default(),
    };
    let mut schedule = work.rounds.schedule(work.accesses).peekable();
    while let Some(first) = schedule.next() {
        let mut round = vec![first];
        let is_later = |item: &ScheduledWindow, round: &[ScheduledWindow]| {
            round.iter().all(|it| it.aggregator < item.aggregator)
        };
        while let Some(next) = schedule.next_if(|item| is_later(item, &round)) {
            round.push(next);
        }
        exchange.round(&round)?;
    }
    Ok(exchange.result)
}

struct AllToAll<'a> {
    work: &'a Work<'a>,
    io: WindowIo<'a>,
    /// The windows of this rank in a round.
    buffers: Vec<Vec<u8>>,
    gathers: GatherBuffers,
    result: PlanResult,
}

impl AllToAll<'_> {
    fn round(&mut self, round: &[ScheduledWindow]) -> Result<()> {
        let me = self.work.comm.rank().0;
        let own: Vec<usize> = (0..round.len())
            .filter(|index| self.aggregator(&round[*index]) == me)
            .collect();
        self.buffers
            .resize_with(own.len().max(self.buffers.len()), Vec::new);
        for (buffer, index) in self.buffers.iter_mut().zip(&own) {
            buffer.resize(round[*index].window.bytes() as usize, 0);
        }
        match self.work.operation.direction() {
            Direction::Write => {
                self.exchange(round, &own, &vec![u64::MAX; round.len()])?;
                for (number, index) in own.into_iter().enumerate() {
                    let item = &round[index];
                    let members = self.work.members(item.aggregator);
                    let buffer = WindowBuffer::new(&mut self.buffers[number]);
                    let result = &mut self.result;
                    self.io.write(&item.window, members, buffer, result);
                }
                Ok(())
            }
            Direction::Read => {
                let mut ends = Vec::new();
                for (number, index) in own.iter().enumerate() {
                    let item = &round[*index];
                    let members = self.work.members(item.aggregator);
                    let buffer = WindowBuffer::new(&mut self.buffers[number]);
                    let result = &mut self.result;
                    let end = self.io.read(&item.window, members, buffer, result);
                    ends.extend(end.to_le_bytes());
                }
                let ends = self.gather_ends(round, &ends)?;
                self.exchange(round, &own, &ends)
            }
        }
    }

    /// The rank of a window's aggregator.
    fn aggregator(&self, item: &ScheduledWindow) -> u32 {
        self.work.rounds.aggregators[item.aggregator].rank
    }

    /// Where the data of each window ends: memory of what is beyond is not touched.
    fn gather_ends(&mut self, round: &[ScheduledWindow], own: &[u8]) -> Result<Vec<u64>> {
        let work = self.work;
        let all = self.gathers.gather(work.comm, Ok(own))?;
        let mut all: Vec<&[u8]> = all.collect();
        let mut next = |item: &ScheduledWindow| {
            let rank = work.rounds.aggregators[item.aggregator].rank;
            let ends = &mut all[rank as usize];
            let (end, rest) = ends.split_first_chunk().expect("one per window");
            *ends = rest;
            u64::from_le_bytes(*end)
        };
        Ok(round.iter().map(&mut next).collect())
    }

    /// Moves data below the ends between ranks and windows.
    fn exchange(&mut self, round: &[ScheduledWindow], own: &[usize], ends: &[u64]) -> Result<()> {
        let work = self.work;
        let (comm, operation) = (work.comm, work.operation);
        let mut ranks = vec![MemoryRuns::default(); comm.size() as usize];
        let mut windows = ranks.clone();
        let memory = MemorySpan::of(operation.memory());
        for (item, end) in round.iter().zip(ends) {
            if work.serves(item.aggregator, comm.rank().0) {
                let runs = &mut ranks[self.aggregator(item) as usize];
                push_memory(runs, work.mine(), &memory, item, *end);
            }
        }
        for (number, index) in own.iter().enumerate() {
            let (item, end) = (&round[*index], ends[*index]);
            let buffer = self.buffers[number].as_mut_ptr().addr();
            for rank in work.members(item.aggregator) {
                let access = &work.accesses[rank as usize];
                push_window(&mut windows[rank as usize], access, buffer, item, end);
            }
        }
        let (send, receive) = match operation.direction() {
            Direction::Write => (ranks, windows),
            Direction::Read => (windows, ranks),
        };
        let result = comm.all_to_all(&send, &receive);
        if result.is_err() {
            // The host may still use them.
            std::mem::forget(std::mem::take(&mut self.buffers));
        }
        Ok(result?)
    }
}

/// The memory of a rank's data in a window.
fn push_memory(
    runs: &mut MemoryRuns,
    access: &Access,
    memory: &MemorySpan<'_>,
    item: &ScheduledWindow,
    end: u64,
) {
    for (_, data) in window_io::data_parts(access, &item.window, end) {
        let len = data.end - data.start;
        let part = memory.slice(data.start, len);
        let pieces = Pieces::new(&window_io::file_span(access, data.start, len), &part);
        for piece in pieces {
            // SAFETY: the memory of the call, which is the call's until it returns.
            unsafe { runs.push(piece.address(), piece.len as usize) };
        }
    }
}

/// The places of a rank's data in the buffer of a window.
fn push_window(
    runs: &mut MemoryRuns,
    access: &Access,
    buffer: usize,
    item: &ScheduledWindow,
    end: u64,
) {
    for (place, data) in window_io::data_parts(access, &item.window, end) {
        let first = access.first();
        let range = first + data.start..first + data.end;
        for run in access.layout().runs(range) {
            for nth in 0..run.count {
                let offset = run.offset + run.stride * nth as i64;
                let file = access.displacement().wrapping_add_signed(offset);
                // SAFETY: the part of a window of this rank that holds these bytes; it is
                // kept for ever if the exchange fails.
                unsafe { runs.push(buffer + place.of(file) as usize, run.len as usize) };
            }
        }
    }
}
