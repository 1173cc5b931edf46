//! Transfers of windows between buffer and file: whole, run by run, or by
//! read-modify-write, decided per window.

use std::{io, ops::Range, sync::OnceLock};

use pario_driver::{Batch, Direction, Outcome};
use pario_hints::{AccessMethod, Sieving};
use pario_plan::{
    Access, MemberRanks, Window,
    coverage::{self, Proof},
    schedule,
};
use smallvec::{SmallVec, smallvec};

use super::{
    PlanResult, Work,
    holes::{self, Holes},
    leased::CallLease,
};
use crate::{
    Error,
    access::{FileSpan, MemorySpan, WindowBuffer},
    operation::Operation,
};

/// Transfers the windows of one call.
pub(super) struct WindowIo<'a> {
    operation: &'a Operation,
    accesses: &'a [Access],
    holes: Holes,
    /// What shows that holes may be written back, where it can be lost.
    lease: Option<&'a CallLease>,
    /// Whether one rank holds a lock for all.
    is_locked: bool,
    /// Whether byte sums prove coverage; computed on first use.
    proof: &'a OnceLock<Proof>,
}

type Stopped = (u64, io::Error);

/// Contiguous ranges of the file; usually one, the whole window.
pub(super) type RunList = SmallVec<[Range<u64>; 1]>;

/// A contiguous range of the file and where it is in the window's buffer.
struct PlacedRun {
    run: Range<u64>,
    at: u64,
}

type PlacedRuns = SmallVec<[PlacedRun; 1]>;

impl<'a> WindowIo<'a> {
    pub(super) fn new(work: &Work<'a>) -> Self {
        WindowIo {
            lease: work.lease,
            is_locked: work.is_locked,
            ..Self::of_call(work.operation, work.accesses, work.holes, work.proof)
        }
    }

    pub(super) fn of_call(
        operation: &'a Operation,
        accesses: &'a [Access],
        holes: Holes,
        proof: &'a OnceLock<Proof>,
    ) -> Self {
        WindowIo {
            operation,
            accesses,
            holes,
            lease: None,
            is_locked: false,
            proof,
        }
    }

    /// The accesses of some ranks.
    fn of(&self, members: MemberRanks<'_>) -> impl Iterator<Item = &'a Access> {
        let accesses = self.accesses;
        members.map(move |rank| &accesses[rank as usize])
    }

    /// Writes a window that the ranks in `members` have filled. Runs of several extents go
    /// into one list, as in Zhang 2009 (section 3.3).
    pub(super) fn write(
        &self,
        window: &Window,
        members: MemberRanks<'_>,
        buffer: WindowBuffer<'_>,
        plan_result: &mut PlanResult,
    ) {
        if let Err((stop, error)) = self.try_write(window, members, buffer) {
            plan_result.stop_at(stop, Some(Error::from(error).at_offset(stop)));
        }
    }

    fn try_write(
        &self,
        window: &Window,
        members: MemberRanks<'_>,
        buffer: WindowBuffer<'_>,
    ) -> Result<(), Stopped> {
        let mut list = PlacedRuns::new();
        for (place, extent) in window.placed() {
            let runs = self.runs(members.clone(), &extent);
            if self.writes_apart(&runs) {
                self.write_list(&list, buffer)?;
                list.clear();
                self.write_runs(&extent, place, buffer, &runs)?;
            } else {
                list.extend(placed(&extent, place, runs));
            }
        }
        self.write_list(&list, buffer)
    }

    /// Reads the part of a window that the ranks in `members` need, with runs of several
    /// extents in one list. Returns the offset at which the data ends; `u64::MAX` if all of it
    /// was read.
    pub(super) fn read(
        &self,
        window: &Window,
        members: MemberRanks<'_>,
        buffer: WindowBuffer<'_>,
        plan_result: &mut PlanResult,
    ) -> u64 {
        let mut list = PlacedRuns::new();
        for (place, extent) in window.placed() {
            list.extend(placed(
                &extent,
                place,
                self.needed_runs(members.clone(), &extent),
            ));
        }
        for some in list.chunks(self.list_pieces()) {
            let Outcome { bytes, error } = self.transfer(Direction::Read, some, buffer);
            if bytes < some.iter().map(|it| it.run.end - it.run.start).sum() {
                let end = offset_in(some, bytes);
                plan_result.stop_at(end, error.map(|error| Error::from(error).at_offset(end)));
                return end;
            }
        }
        u64::MAX
    }

    /// The runs of an extent to read.
    pub(super) fn needed_runs(&self, members: MemberRanks<'_>, extent: &Range<u64>) -> RunList {
        let useful = schedule::useful(self.of(members.clone()), extent.clone());
        match useful.is_empty() {
            true => RunList::new(),
            false => self.read_runs(members, useful),
        }
    }

    /// The runs to read in the useful part of an extent: all of it if the pieces
    /// are close together, otherwise the runs that ranks need.
    fn read_runs(&self, members: MemberRanks<'_>, useful: Range<u64>) -> RunList {
        let hints = self.operation.hints();
        let whole = match (hints.pario_read_method, hints.romio_ds_read) {
            (Some(AccessMethod::Sieve), _) | (None, Sieving::Enable) => true,
            (Some(AccessMethod::Direct | AccessMethod::List), _) | (None, Sieving::Disable) => {
                false
            }
            (None, Sieving::Automatic) => {
                let pieces = |access: &Access| access.stats_in(useful.clone()).pieces;
                let pieces: u64 = self.of(members.clone()).map(pieces).sum();
                (useful.end - useful.start) / pieces.max(1) <= self.operation.sieve_extent()
            }
        };
        match whole {
            true => smallvec![useful],
            false => coverage::covered(self.of(members), useful).into(),
        }
    }

    /// Moves runs of a window.
    fn transfer(
        &self,
        direction: Direction,
        runs: &[PlacedRun],
        buffer: WindowBuffer<'_>,
    ) -> Outcome {
        let mut batch = Batch::new(direction);
        for PlacedRun { run, at } in runs {
            let end = at + run.end - run.start;
            let part = buffer.part(*at as usize..end as usize);
            part.push(&mut batch, run.start);
        }
        self.operation.handle().transfer(&batch)
    }

    /// Maximum number of runs per call.
    pub(super) fn list_pieces(&self) -> usize {
        (self.operation.hints().pario_list_pieces as usize).max(1)
    }

    /// The runs of an extent that the ranks have filled.
    fn runs(&self, members: MemberRanks<'_>, extent: &Range<u64>) -> RunList {
        let bytes: u64 = self
            .of(members.clone())
            .map(|access| {
                let data = access.data_in(extent.clone());
                data.end - data.start
            })
            .sum();
        let full = bytes == extent.end - extent.start
            && *self.proof.get_or_init(|| coverage::disjoint(self.accesses)) == Proof::Disjoint;
        match full {
            true => smallvec![extent.clone()],
            false => coverage::covered(self.of(members), extent.clone()).into(),
        }
    }

    /// Whether the runs of an extent are written by themselves: under a lock, or with the holes
    /// between them.
    fn writes_apart(&self, runs: &[Range<u64>]) -> bool {
        let (Some(first), Some(last)) = (runs.first(), runs.last()) else {
            return false;
        };
        let rewrites = || self.rewrites(runs, &(first.start..last.end));
        self.locks() || self.holes != Holes::Leave && self.is_alone() && rewrites()
    }

    /// Whether this rank locks what it writes.
    fn locks(&self) -> bool {
        self.operation.locks_writes() && !self.is_locked
    }

    fn write_runs(
        &self,
        extent: &Range<u64>,
        place: u64,
        buffer: WindowBuffer<'_>,
        runs: &[Range<u64>],
    ) -> Result<(), Stopped> {
        let (Some(first), Some(last)) = (runs.first(), runs.last()) else {
            return Ok(());
        };
        let span = first.start..last.end;
        let rewrites = self.holes != Holes::Leave && self.rewrites(runs, &span);
        let (buffers, bytes) = (self.operation.buffers(), span.end - span.start);
        // Staging memory first, then the lock: see `access::Locking`. Under a lock, none is waited
        // for, and without it the runs are written by themselves.
        let staging = match (rewrites, self.is_locked) {
            (false, _) => None,
            (true, false) => Some(buffers.take(bytes)),
            (true, true) => buffers.try_take(bytes),
        };
        let staging = staging.transpose().map_err(|error| (span.start, error))?;
        let lock = match self.locks() {
            true => self.operation.lock_range(span.clone()),
            false => Ok(None),
        };
        let _lock = lock.map_err(|error| (span.start, error))?;
        match staging {
            Some(mut staging) => {
                let len = (span.end - span.start) as usize;
                let part = extent_part(buffer, place, extent);
                self.rewrite(extent, part, runs, span, &mut staging[..len])
            }
            None => {
                let list: PlacedRuns = placed(extent, place, runs.iter().cloned()).collect();
                self.write_list(&list, buffer)
            }
        }
    }

    /// Whether there is still no other writer, if a lease was to show that.
    fn is_alone(&self) -> bool {
        self.lease.is_none_or(CallLease::is_intact)
    }

    /// Whether to rewrite holes (Coloma 2006): if a run and the gap after it are short
    /// on average, unless the runs are whole blocks, which a file system writes
    /// without reading them. A hint can request it for all holes.
    fn rewrites(&self, runs: &[Range<u64>], span: &Range<u64>) -> bool {
        if holes::is_sieve_requested(self.operation.hints(), Direction::Write) {
            return runs.len() > 1;
        }
        let limit = self.operation.sieve_extent();
        let handle = self.operation.handle();
        let block = handle.facts().block_size.max(1);
        let is_whole =
            |run: &Range<u64>| run.start.is_multiple_of(block) && run.end.is_multiple_of(block);
        runs.len() > 1
            && (span.end - span.start) / runs.len() as u64 <= limit
            && (handle.bypasses_cache() || !runs.iter().all(is_whole))
    }

    fn write_list(&self, runs: &[PlacedRun], buffer: WindowBuffer<'_>) -> Result<(), Stopped> {
        for some in runs.chunks(self.list_pieces()) {
            let Outcome { bytes, error } = self.transfer(Direction::Write, some, buffer);
            if let Some(error) = error {
                return Err((offset_in(some, bytes), error));
            }
        }
        Ok(())
    }

    /// Fills the holes between the runs with the file's contents and writes the
    /// whole span. The holes are copied rather than the runs: where rewriting pays,
    /// they are shorter.
    fn rewrite(
        &self,
        extent: &Range<u64>,
        buffer: WindowBuffer<'_>,
        runs: &[Range<u64>],
        span: Range<u64>,
        there: &mut [u8],
    ) -> Result<(), Stopped> {
        let handle = self.operation.handle();
        let got = handle
            .transfer(&Batch::read(span.start, there))
            .into_result();
        let end = span.start + got.map_err(|error| (span.start, error))?;
        let there = WindowBuffer::new(there);
        for pair in runs.windows(2) {
            let hole = pair[0].end..pair[1].start;
            let kept = hole.start..hole.end.min(end).max(hole.start);
            let place = (kept.start - span.start) as usize..(kept.end - span.start) as usize;
            within(buffer, extent, &kept).copy_from(there.part(place));
            // Past the end of the file, holes are zeros once it grows.
            within(buffer, extent, &(kept.end..hole.end)).clear();
        }
        if !self.is_alone() {
            // Others may have written to the holes since they were read.
            let list: PlacedRuns = placed(extent, 0, runs.iter().cloned()).collect();
            return self.write_list(&list, buffer);
        }
        let mut whole = Batch::new(Direction::Write);
        within(buffer, extent, &span).push(&mut whole, span.start);
        let Outcome { bytes, error } = handle.transfer(&whole);
        match error {
            None => Ok(()),
            Some(error) => Err((span.start + bytes, error)),
        }
    }
}

/// Copies the bytes of an access that lie in a window below `end` between
/// the access's memory and the window.
pub(super) fn exchange(
    direction: Direction,
    access: &Access,
    memory: &MemorySpan<'_>,
    window: &Window,
    buffer: WindowBuffer<'_>,
    end: u64,
) {
    for (place, data) in data_parts(access, window, end) {
        let part = memory.slice(data.start, data.end - data.start);
        exchange_part(direction, access, data.start, &part, &place, buffer);
    }
}

/// Copies data bytes of an access, from `first` on, between memory that holds only
/// these and their extent in a window.
pub(super) fn exchange_part(
    direction: Direction,
    access: &Access,
    first: u64,
    memory: &MemorySpan<'_>,
    place: &Place,
    buffer: WindowBuffer<'_>,
) {
    let file = file_span(access, first, memory.len());
    let part = extent_part(buffer, place.at, &place.extent);
    memory.exchange(direction, &file, &part, place.extent.start);
}

/// An extent of a window and where it is in the window's buffer.
pub(super) struct Place {
    at: u64,
    extent: Range<u64>,
}

impl Place {
    pub(super) fn new(at: u64, extent: Range<u64>) -> Place {
        Place { at, extent }
    }

    /// Where a byte of the file is in the window's buffer.
    pub(super) fn of(&self, file_byte: u64) -> u64 {
        self.at + file_byte - self.extent.start
    }
}

/// The data bytes of an access in each extent of a window, below `end`.
pub(super) fn data_parts<'a>(
    access: &'a Access,
    window: &'a Window,
    end: u64,
) -> impl Iterator<Item = (Place, Range<u64>)> + 'a {
    window.placed().filter_map(move |(at, extent)| {
        let data = access.data_in(extent.start..extent.end.min(end));
        (!data.is_empty()).then_some((Place { at, extent }, data))
    })
}

/// Data bytes of an access, as a span of the file.
pub(super) fn file_span(access: &Access, start: u64, len: u64) -> FileSpan<'_> {
    FileSpan {
        displacement: access.displacement(),
        layout: access.layout(),
        first: access.first() + start,
        len,
    }
}

/// The part of a window's buffer that holds an extent.
fn extent_part<'a>(buffer: WindowBuffer<'a>, place: u64, extent: &Range<u64>) -> WindowBuffer<'a> {
    buffer.part(place as usize..(place + extent.end - extent.start) as usize)
}

/// The part of an extent's buffer that holds a run.
fn within<'a>(buffer: WindowBuffer<'a>, extent: &Range<u64>, run: &Range<u64>) -> WindowBuffer<'a> {
    buffer.part((run.start - extent.start) as usize..(run.end - extent.start) as usize)
}

/// Runs of an extent that is at `place` in its window's buffer.
fn placed(
    extent: &Range<u64>,
    place: u64,
    runs: impl IntoIterator<Item = Range<u64>>,
) -> impl Iterator<Item = PlacedRun> {
    let start = extent.start;
    runs.into_iter().map(move |run| PlacedRun {
        at: place + run.start - start,
        run,
    })
}

/// The byte of the file at which a prefix of runs ends.
fn offset_in(runs: &[PlacedRun], mut bytes: u64) -> u64 {
    for PlacedRun { run, .. } in runs {
        let len = run.end - run.start;
        if bytes < len {
            return run.start + bytes;
        }
        bytes -= len;
    }
    runs.last().map_or(0, |it| it.run.end)
}
