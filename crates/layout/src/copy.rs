//! Packing, unpacking and copying between layouts.
#![allow(unsafe_code)] // Raw copies between user buffers; the safe forms check the bounds first.

use std::fmt;
use std::ops::Range;

use crate::kernels::{Side, copy_pieces};
use crate::runs::{RawRuns, Run};
use crate::transfer::{Pack, Unpack, transfer};
use crate::{Layout, Monotonicity};

/// Why a copy between slices was rejected. Nothing has been copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyError {
    /// The layout reaches outside the memory slice.
    Memory {
        /// First byte accessed, relative to the slice.
        low: i128,
        /// End of the last byte accessed.
        high: i128,
        /// Length of the slice.
        len: usize,
    },
    /// The packed slice and the range of data bytes differ in length.
    Packed {
        /// Length of the range.
        data: u64,
        /// Length of the slice.
        len: usize,
    },
    /// Offsets in the range do not fit in 63 bits, or the layout has no data.
    Range,
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory { low, high, len } => {
                write!(
                    f,
                    "the layout accesses bytes {low}..{high} of a buffer of {len} bytes"
                )
            }
            Self::Packed { data, len } => {
                write!(
                    f,
                    "{data} data bytes were requested, but the packed buffer has {len} bytes"
                )
            }
            Self::Range => f.write_str("the range of data bytes exceeds the layout"),
        }
    }
}

impl std::error::Error for CopyError {}

/// An offset as a pointer difference; the two coincide on the supported 64-bit systems.
fn distance(offset: i64) -> isize {
    offset as isize
}

impl Layout {
    /// Copies a range of data bytes from strided memory to a packed buffer.
    ///
    /// Stops where offsets no longer fit in 63 bits, like [`runs`](Self::runs).
    ///
    /// # Safety
    /// `origin` plus the offset of every data byte in the range must be readable, `to` must be
    /// writable for the length of the range, and the two must not overlap.
    pub unsafe fn pack(&self, origin: *const u8, data: Range<u64>, to: *mut u8) {
        // SAFETY: `Pack` only reads from the memory side; the rest is the caller's contract.
        unsafe { transfer::<Pack>(self, origin.cast_mut(), data, to) }
    }

    /// Copies packed data to a range of data bytes in strided memory. Where the layout overlaps
    /// itself, the later byte wins.
    ///
    /// # Safety
    /// `from` must be readable for the length of the range, `origin` plus the offset of every
    /// data byte in the range must be writable, and the two must not overlap.
    pub unsafe fn unpack(&self, from: *const u8, origin: *mut u8, data: Range<u64>) {
        // SAFETY: `Unpack` only reads from the packed side; the rest is the caller's contract.
        unsafe { transfer::<Unpack>(self, origin, data, from.cast_mut()) }
    }

    /// Copies `len` data bytes, starting at data byte `from_start` of one layout, to the data
    /// bytes starting at `to_start` of another, in one pass.
    ///
    /// # Safety
    /// All of these data bytes must be readable at `from_origin` and writable at `to_origin`, and
    /// source and destination must not overlap.
    pub unsafe fn copy(from: (&Layout, *const u8, u64), to: (&Layout, *mut u8, u64), len: u64) {
        let (from_layout, from_origin, from_start) = from;
        let (to_layout, to_origin, to_start) = to;
        let mut source = RunCursor::new(from_layout, from_start, len);
        let mut target = RunCursor::new(to_layout, to_start, len);
        while let Some((read, write)) = source.front().zip(target.front()) {
            let piece = read.len.min(write.len);
            let pieces = read.pieces_of(piece).min(write.pieces_of(piece));
            let side = |run: &Run| {
                if run.len == piece {
                    run.stride
                } else {
                    piece.cast_signed()
                }
            };
            let read_side = Side {
                start: from_origin.wrapping_offset(distance(read.offset)),
                stride: distance(side(&read)),
            };
            let write_side = Side {
                start: to_origin.wrapping_offset(distance(write.offset)),
                stride: distance(side(&write)),
            };
            // SAFETY: both runs hold data bytes of their range, and each gives up `pieces` pieces
            // of `piece` bytes from its front.
            unsafe { copy_pieces(read_side, write_side, piece as usize, pieces as usize) };
            source.take(piece, pieces);
            target.take(piece, pieces);
        }
    }

    /// [`pack`](Self::pack) between slices: offset zero of the layout is `memory[origin]`.
    pub fn pack_slice(
        &self,
        memory: &[u8],
        origin: usize,
        data: Range<u64>,
        to: &mut [u8],
    ) -> Result<(), CopyError> {
        self.check(memory.len(), origin, &data, to.len())?;
        // SAFETY: `check` found every data byte of the range inside `memory`, and `to` is as long
        // as the range; a shared and an exclusive slice do not overlap.
        unsafe { self.pack(memory.as_ptr().wrapping_add(origin), data, to.as_mut_ptr()) };
        Ok(())
    }

    /// [`unpack`](Self::unpack) between slices: offset zero of the layout is `memory[origin]`.
    pub fn unpack_slice(
        &self,
        from: &[u8],
        memory: &mut [u8],
        origin: usize,
        data: Range<u64>,
    ) -> Result<(), CopyError> {
        self.check(memory.len(), origin, &data, from.len())?;
        // SAFETY: as in `pack_slice`, with the roles swapped.
        unsafe {
            self.unpack(
                from.as_ptr(),
                memory.as_mut_ptr().wrapping_add(origin),
                data,
            )
        };
        Ok(())
    }

    /// Checks that the range lies within a memory of this length and that the packed length
    /// matches.
    fn check(
        &self,
        memory: usize,
        origin: usize,
        data: &Range<u64>,
        packed: usize,
    ) -> Result<(), CopyError> {
        let len = data.end.saturating_sub(data.start);
        if packed as u64 != len {
            return Err(CopyError::Packed {
                data: len,
                len: packed,
            });
        }
        if len == 0 {
            return Ok(());
        }
        let (mut low, mut high) = self.run_bounds(data.clone()).ok_or(CopyError::Range)?;
        let inside = |low: i64, high: i64| {
            let (low, high) = (low as i128 + origin as i128, high as i128 + origin as i128);
            low >= 0 && high <= memory as i128
        };
        if !inside(low, high) && self.tile_order() == Monotonicity::Unordered {
            // The bounds may be conservative.
            (low, high) = exact_bounds(self.raw_runs(data.clone()));
        }
        if inside(low, high) {
            return Ok(());
        }
        let (low, high) = (low as i128 + origin as i128, high as i128 + origin as i128);
        Err(CopyError::Memory {
            low,
            high,
            len: memory,
        })
    }
}

fn exact_bounds(runs: RawRuns<'_>) -> (i64, i64) {
    runs.fold((i64::MAX, i64::MIN), |(low, high), run| {
        let (first, last) = (run.offset, run.piece(run.count - 1));
        (
            low.min(first.min(last)),
            high.max(first.max(last) + run.len.cast_signed()),
        )
    })
}

impl Run {
    /// How many pieces of `piece` bytes the front of the run has at one stride.
    fn pieces_of(&self, piece: u64) -> u64 {
        if self.len == piece {
            self.count
        } else {
            self.len / piece
        }
    }

    /// The run without its first `pieces` pieces.
    fn skip(&self, pieces: u64) -> Option<Run> {
        let count = self.count - pieces;
        (count > 0).then(|| Run {
            offset: self.piece(pieces),
            count,
            ..*self
        })
    }
}

/// Runs that are consumed from the front.
struct RunCursor<'a> {
    runs: RawRuns<'a>,
    /// The rest of a piece that was split.
    cut: Option<Run>,
    /// The whole pieces after it.
    rest: Option<Run>,
}

impl<'a> RunCursor<'a> {
    fn new(layout: &'a Layout, start: u64, len: u64) -> Self {
        let mut runs = layout.raw_runs(start..start.saturating_add(len));
        let rest = runs.next();
        Self {
            runs,
            cut: None,
            rest,
        }
    }

    fn front(&self) -> Option<Run> {
        self.cut.or(self.rest)
    }

    /// Consumes `pieces` pieces of `piece` bytes from the front run.
    fn take(&mut self, piece: u64, pieces: u64) {
        let slot = if self.cut.is_some() {
            &mut self.cut
        } else {
            &mut self.rest
        };
        let Some(run) = slot.take() else { return };
        if run.len == piece {
            *slot = run.skip(pieces);
        } else {
            *slot = run.skip(1);
            let taken = piece * pieces;
            let offset = run.offset + taken.cast_signed();
            self.cut = (taken < run.len).then(|| Run::single(offset, run.len - taken));
        }
        if self.front().is_none() {
            self.rest = self.runs.next();
        }
    }
}
