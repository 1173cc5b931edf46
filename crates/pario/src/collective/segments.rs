//! Static segmentation (Chaarawi 2011): in every cycle each rank of a group sends
//! its aggregator the next part of its data, all parts of the same length;
//! the aggregator moves them in the order of the file.

use pario_driver::{Batch, Direction, Outcome};
use pario_layout::Layout;
use pario_plan::{Access, Group, Segments};
use pario_transport::{Rank, Tag, Transport};

use super::{PlanResult, window_io};
use crate::{
    Error, Result,
    access::{MemorySpan, Pieces},
    operation::Operation,
};

/// A rank's part of a cycle.
const SEGMENT: Tag = Tag(5);

/// Moves all cycles; returns how far this rank's group got, if it aggregates.
pub(super) fn run(
    comm: &dyn Transport,
    operation: &Operation,
    accesses: &[Access],
    segments: &Segments,
) -> Result<PlanResult> {
    let me = comm.rank().0;
    let mut plan_result = PlanResult::default();
    let Some(group) = segments
        .groups
        .iter()
        .find(|group| group.members.contains(&me))
    else {
        return Ok(plan_result);
    };
    let ranks = Ranks {
        comm,
        operation,
        accesses,
        segments,
        group,
        me,
        dense: Layout::dense(1),
    };
    for cycle in 0..segments.cycles {
        match operation.direction() {
            Direction::Write => ranks.write(cycle, &mut plan_result)?,
            Direction::Read => ranks.read(cycle, &mut plan_result)?,
        }
    }
    Ok(plan_result)
}

struct Ranks<'a> {
    comm: &'a dyn Transport,
    operation: &'a Operation,
    accesses: &'a [Access],
    segments: &'a Segments,
    group: &'a Group,
    me: u32,
    dense: Layout,
}

impl Ranks<'_> {
    /// A rank's data bytes of a cycle.
    fn data(&self, rank: u32, cycle: u64) -> std::ops::Range<u64> {
        let len = self.accesses[rank as usize].len();
        let start = cycle.saturating_mul(self.segments.segment_bytes).min(len);
        start..start.saturating_add(self.segments.segment_bytes).min(len)
    }

    fn aggregates(&self) -> bool {
        self.group.aggregator == self.me
    }

    fn pack_mine(&self, cycle: u64) -> Vec<u8> {
        let data = self.data(self.me, cycle);
        let mut packed = vec![0; (data.end - data.start) as usize];
        let memory = MemorySpan::of(self.operation.memory());
        memory
            .slice(data.start, data.end - data.start)
            .pack_into(&mut packed);
        packed
    }

    fn unpack_mine(&self, cycle: u64, packed: &[u8]) {
        let data = self.data(self.me, cycle);
        let len = (packed.len() as u64).min(data.end - data.start);
        let memory = MemorySpan::of(self.operation.memory());
        memory
            .slice(data.start, len)
            .unpack_from(&packed[..len as usize]);
    }

    fn write(&self, cycle: u64, plan_result: &mut PlanResult) -> Result<()> {
        if !self.aggregates() {
            if !self.data(self.me, cycle).is_empty() {
                let packed = self.pack_mine(cycle);
                self.comm
                    .send(Rank(self.group.aggregator), SEGMENT, &packed)?;
            }
            return Ok(());
        }
        let mut parts = Vec::new();
        for rank in self.group.members.iter().copied() {
            if self.data(rank, cycle).is_empty() {
                continue;
            }
            let packed = match rank == self.me {
                true => self.pack_mine(cycle),
                false => self.comm.receive(Rank(rank), SEGMENT)?,
            };
            parts.push((rank, packed));
        }
        self.move_parts(cycle, &mut parts, plan_result);
        Ok(())
    }

    fn read(&self, cycle: u64, plan_result: &mut PlanResult) -> Result<()> {
        if !self.aggregates() {
            if !self.data(self.me, cycle).is_empty() {
                let packed = self.comm.receive(Rank(self.group.aggregator), SEGMENT)?;
                self.unpack_mine(cycle, &packed);
            }
            return Ok(());
        }
        let mut parts = Vec::new();
        for rank in self.group.members.iter().copied() {
            let data = self.data(rank, cycle);
            if !data.is_empty() {
                parts.push((rank, vec![0; (data.end - data.start) as usize]));
            }
        }
        let end = self.move_parts(cycle, &mut parts, plan_result);
        for (rank, packed) in &parts {
            let access = &self.accesses[*rank as usize];
            let data = self.data(*rank, cycle);
            let got = access.bytes_below(end).clamp(data.start, data.end) - data.start;
            let packed = &packed[..got as usize];
            match *rank == self.me {
                true => self.unpack_mine(cycle, packed),
                false => self.comm.send(Rank(*rank), SEGMENT, packed)?,
            }
        }
        Ok(())
    }

    /// Moves the ranks' packed parts in the order of the file; returns the first byte that was
    /// not moved.
    fn move_parts(
        &self,
        cycle: u64,
        parts: &mut [(u32, Vec<u8>)],
        plan_result: &mut PlanResult,
    ) -> u64 {
        let mut pieces = Vec::new();
        for (rank, packed) in parts.iter_mut() {
            let access = &self.accesses[*rank as usize];
            let data = self.data(*rank, cycle);
            let len = (data.end - data.start).min(packed.len() as u64);
            let file = window_io::file_span(access, data.start, len);
            let memory = MemorySpan::dense(&mut packed[..len as usize], &self.dense);
            pieces.extend(Pieces::new(&file, &memory));
        }
        pieces.sort_by_key(|piece| piece.offset);
        let most = (self.operation.hints().pario_list_pieces as usize).max(1);
        let (mut rest, mut end) = (pieces.as_slice(), u64::MAX);
        while rest.first().is_some_and(|piece| piece.offset < end) {
            let (some, after) = rest.split_at(most.min(rest.len()));
            let mut batch = Batch::new(self.operation.direction());
            some.iter().for_each(|piece| piece.push(&mut batch));
            let Outcome { bytes, error } = self.operation.transfer_list(&batch);
            if bytes == batch.bytes() {
                rest = after;
                continue;
            }
            let (index, stop) = stop_in(some.iter().map(|piece| (piece.offset, piece.len)), bytes);
            // Several ranks may read the same bytes: later pieces may start below the end of
            // this one.
            rest = &rest[index + 1..];
            let Some(error) = error else {
                plan_result.stop_at(stop, None);
                end = end.min(stop);
                continue;
            };
            let error = Error::from(error).at_offset(stop);
            let stop = rest.first().map_or(stop, |piece| stop.min(piece.offset));
            plan_result.stop_at(stop, Some(error));
            return end.min(stop);
        }
        end
    }
}

/// Where a prefix of pieces ends: the piece, and the byte of the file.
fn stop_in(pieces: impl Iterator<Item = (u64, u64)>, mut bytes: u64) -> (usize, u64) {
    let mut end = (0, 0);
    for (index, (offset, len)) in pieces.enumerate() {
        if bytes < len {
            return (index, offset + bytes);
        }
        bytes -= len;
        end = (index, offset + len);
    }
    end
}
