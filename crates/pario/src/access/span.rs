//! The two sides of a transfer, file and memory, each a range of data bytes of a
//! tiled layout; the pieces that are contiguous in both, and copies.
//!
//! This file may contain `unsafe`, because the memory side is an address. The
//! bytes of a `MemorySpan` are valid for `'a`: it is created from a slice, or
//! from a `Memory`, whose constructors require the same.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use pario_driver::{Batch, Direction, OnePiece, Piece};
use pario_layout::{Layout, Run, Runs};

use crate::buffer::Memory;

/// Data bytes `first..first + len` of a view.
#[derive(Clone, Debug)]
pub(crate) struct FileSpan<'a> {
    pub(crate) displacement: u64,
    pub(crate) layout: &'a Layout,
    pub(crate) first: u64,
    pub(crate) len: u64,
}

impl<'a> FileSpan<'a> {
    pub(crate) fn slice(&self, start: u64, len: u64) -> FileSpan<'a> {
        debug_assert!(start + len <= self.len);
        FileSpan {
            first: self.first + start,
            len,
            ..self.clone()
        }
    }

    /// The file offset of data byte `index` of this span.
    pub(crate) fn file_byte(&self, index: u64) -> u64 {
        let offset = self.layout.offset_of(self.first + index);
        offset
            .and_then(|offset| self.displacement.checked_add_signed(offset))
            .expect("the reach of an access is checked before it starts")
    }

    /// The number of this span's data bytes below a file offset. Only for
    /// increasing layouts.
    pub(crate) fn bytes_below(&self, file_byte: u64) -> u64 {
        let reach = i64::try_from(file_byte.saturating_sub(self.displacement)).unwrap_or(i64::MAX);
        self.layout
            .bytes_below(reach)
            .saturating_sub(self.first)
            .min(self.len)
    }
}

/// Data bytes `first..first + len` of memory.
#[derive(Clone, Debug)]
pub(crate) struct MemorySpan<'a> {
    origin: *mut u8,
    layout: &'a Layout,
    first: u64,
    len: u64,
    memory: PhantomData<&'a mut [u8]>,
}

impl<'a> MemorySpan<'a> {
    pub(crate) fn of(memory: &'a Memory) -> MemorySpan<'a> {
        MemorySpan {
            origin: memory.origin(),
            layout: memory.datatype().layout(),
            first: 0,
            len: memory.bytes(),
            memory: PhantomData,
        }
    }

    /// All bytes of a slice; `dense` is the layout of a byte.
    pub(crate) fn dense(slice: &'a mut [u8], dense: &'a Layout) -> MemorySpan<'a> {
        debug_assert!(dense.is_dense());
        let (origin, len) = (slice.as_mut_ptr(), slice.len() as u64);
        MemorySpan {
            origin,
            layout: dense,
            first: 0,
            len,
            memory: PhantomData,
        }
    }

    /// Contiguous data bytes in a buffer; `dense` is the layout of a byte.
    pub(crate) fn packed(buffer: WindowBuffer<'a>, dense: &'a Layout) -> MemorySpan<'a> {
        debug_assert!(dense.is_dense());
        MemorySpan {
            origin: buffer.start,
            layout: dense,
            first: 0,
            len: buffer.len as u64,
            memory: PhantomData,
        }
    }

    pub(crate) fn slice(&self, start: u64, len: u64) -> MemorySpan<'a> {
        debug_assert!(start + len <= self.len);
        MemorySpan {
            first: self.first + start,
            len,
            ..self.clone()
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn data(&self) -> std::ops::Range<u64> {
        self.first..self.first + self.len
    }

    /// The whole span as one piece of the file at `offset`; `None` if it has gaps.
    pub(crate) fn at(&self, offset: u64) -> Option<Shared<'a>> {
        self.layout.is_dense().then(|| Shared {
            offset,
            memory: self.origin.wrapping_add(self.first as usize),
            len: self.len,
            lifetime: PhantomData,
        })
    }

    /// Gathers all its data bytes into `packed`, which has their length.
    pub(crate) fn pack_into(&self, packed: &mut [u8]) {
        assert_eq!(packed.len() as u64, self.len);
        // SAFETY: the span's memory is valid, and `packed` has its length.
        unsafe {
            self.layout
                .pack(self.origin, self.data(), packed.as_mut_ptr())
        }
    }

    /// Scatters `packed` over its first data bytes.
    pub(crate) fn unpack_from(&self, packed: &[u8]) {
        assert!(packed.len() as u64 <= self.len);
        let data = self.first..self.first + packed.len() as u64;
        // SAFETY: the span's memory is valid and at least this long.
        unsafe { self.layout.unpack(packed.as_ptr(), self.origin, data) }
    }

    /// Copies between this memory and a buffer in which its data bytes are
    /// contiguous.
    pub(crate) fn exchange_packed(&self, direction: Direction, packed: WindowBuffer<'_>) {
        assert_eq!(self.len, packed.len as u64);
        // SAFETY: both sides are valid and have the same length.
        unsafe {
            match direction {
                Direction::Write => self.layout.pack(self.origin, self.data(), packed.start),
                Direction::Read => self.layout.unpack(packed.start, self.origin, self.data()),
            }
        }
    }

    /// Copies between this memory and a window that holds the file from byte
    /// `base` on, for all data bytes of `file`, which has this span's length.
    pub(crate) fn exchange(
        &self,
        direction: Direction,
        file: &FileSpan<'_>,
        window: &WindowBuffer<'_>,
        base: u64,
    ) {
        assert_eq!(self.len, file.len);
        if file.len == 0 {
            return;
        }
        assert!(file.file_byte(0) >= base);
        assert!(file.file_byte(file.len - 1) - base < window.len as u64);
        // The address that the view's displacement would have; only bytes within
        // the window are accessed.
        let shift = base as i64 - file.displacement as i64;
        let origin = window.start.wrapping_offset(-shift as isize);
        // SAFETY: the memory side is valid; the layout is increasing,
        // and its first and last byte are in the window, so all of its bytes are.
        unsafe {
            match direction {
                Direction::Read => Layout::copy(
                    (file.layout, origin.cast_const(), file.first),
                    (self.layout, self.origin, self.first),
                    self.len,
                ),
                Direction::Write => Layout::copy(
                    (self.layout, self.origin.cast_const(), self.first),
                    (file.layout, origin, file.first),
                    self.len,
                ),
            }
        }
    }
}

/// Memory that holds a range of the file: a buffer of this rank, or a slot that
/// ranks share, in which each rank accesses only its own bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowBuffer<'a> {
    start: *mut u8,
    len: usize,
    memory: PhantomData<&'a mut [u8]>,
}

impl<'a> WindowBuffer<'a> {
    pub(crate) fn new(slice: &'a mut [u8]) -> WindowBuffer<'a> {
        WindowBuffer {
            start: slice.as_mut_ptr(),
            len: slice.len(),
            memory: PhantomData,
        }
    }

    /// # Safety
    /// `start` is valid for `len` bytes for `'a`, and no byte of them is used
    /// by two ranks or threads at a time, unless both read.
    pub(crate) unsafe fn from_raw(start: *mut u8, len: usize) -> WindowBuffer<'a> {
        WindowBuffer {
            start,
            len,
            memory: PhantomData,
        }
    }

    /// A part of it.
    pub(crate) fn part(self, range: std::ops::Range<usize>) -> WindowBuffer<'a> {
        assert!(range.start <= range.end && range.end <= self.len);
        let start = self.start.wrapping_add(range.start);
        WindowBuffer {
            start,
            len: range.end - range.start,
            memory: PhantomData,
        }
    }

    /// Adds it to a batch, as the bytes of the file from `offset` on.
    pub(crate) fn push(self, batch: &mut Batch<'a>, offset: u64) {
        // SAFETY: valid for `'a` by the promise of `from_raw` or by `new`.
        unsafe { batch.push_raw(offset, self.start, self.len) }
    }

    /// Overwrites it with another buffer, which does not overlap.
    pub(crate) fn copy_from(self, other: WindowBuffer<'_>) {
        assert_eq!(self.len, other.len);
        // SAFETY: both are valid for their length.
        unsafe { std::ptr::copy_nonoverlapping(other.start, self.start, self.len) }
    }

    /// Fills it with zeros.
    pub(crate) fn clear(self) {
        // SAFETY: valid for its length.
        unsafe { std::ptr::write_bytes(self.start, 0, self.len) }
    }
}

/// The contiguous pieces of a layout, which can be consumed in parts.
struct Cursor<'a> {
    runs: Runs<'a>,
    run: Option<Run>,
    /// Bytes consumed of the run's first remaining piece.
    taken: u64,
}

impl<'a> Cursor<'a> {
    fn new(mut runs: Runs<'a>) -> Cursor<'a> {
        let run = runs.next();
        Cursor {
            runs,
            run,
            taken: 0,
        }
    }

    /// The rest of the current piece.
    fn peek(&self) -> Option<(i64, u64)> {
        self.run
            .as_ref()
            .map(|run| (run.offset + self.taken as i64, run.len - self.taken))
    }

    fn advance(&mut self, bytes: u64) {
        let Some(run) = &mut self.run else { return };
        self.taken += bytes;
        if self.taken < run.len {
            return;
        }
        self.taken = 0;
        run.count -= 1;
        if run.count == 0 {
            self.run = self.runs.next();
        } else {
            run.offset += run.stride;
        }
    }
}

/// The pieces that are contiguous on both sides, in the order of the data.
pub(crate) struct Pieces<'a> {
    file: Cursor<'a>,
    displacement: u64,
    memory: Cursor<'a>,
    origin: *mut u8,
    lifetime: PhantomData<&'a mut [u8]>,
}

/// A piece that is contiguous on both sides.
pub(crate) struct Shared<'a> {
    pub(crate) offset: u64,
    memory: *mut u8,
    pub(crate) len: u64,
    lifetime: PhantomData<&'a mut [u8]>,
}

impl<'a> Shared<'a> {
    /// The address of the piece in memory.
    pub(crate) fn address(&self) -> usize {
        self.memory.addr()
    }

    /// The piece alone, for a transfer that lasts no longer than the memory.
    #[inline]
    pub(crate) fn one(&self, direction: Direction) -> OnePiece<'a> {
        let piece = Piece {
            offset: self.offset,
            memory: self.memory,
            len: self.len as usize,
        };
        // SAFETY: the piece is in the span's memory, valid for `'a`.
        unsafe { OnePiece::new(direction, piece) }
    }

    /// Adds the piece to a batch that lives no longer than the memory.
    pub(crate) fn push(&self, batch: &mut Batch<'a>) {
        // SAFETY: the piece is in the span's memory, valid for `'a`.
        unsafe { batch.push_raw(self.offset, self.memory, self.len as usize) }
    }
}

impl<'a> Pieces<'a> {
    pub(crate) fn new(file: &FileSpan<'a>, memory: &MemorySpan<'a>) -> Pieces<'a> {
        Pieces {
            file: Cursor::new(file.layout.runs(file.first..file.first + file.len)),
            displacement: file.displacement,
            memory: Cursor::new(memory.layout.runs(memory.data())),
            origin: memory.origin,
            lifetime: PhantomData,
        }
    }

    /// All pieces as a batch for the background; `None` if there are more
    /// than `most`. The operation keeps the memory alive until the batch is
    /// complete.
    pub(crate) fn detached(self, direction: Direction, most: u64) -> Option<Batch<'static>> {
        let mut batch = Batch::new(direction);
        for piece in self {
            if batch.pieces().len() as u64 >= most {
                return None;
            }
            // SAFETY: the piece is in the span's memory, which the request
            // owns, or its scope keeps, until the operation has completed.
            unsafe { batch.push_raw(piece.offset, piece.memory, piece.len as usize) }
        }
        Some(batch)
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Shared<'a>;

    fn next(&mut self) -> Option<Shared<'a>> {
        let (file_offset, file_len) = self.file.peek()?;
        let (memory_offset, memory_len) = self.memory.peek()?;
        let len = file_len.min(memory_len);
        self.file.advance(len);
        self.memory.advance(len);
        Some(Shared {
            offset: self
                .displacement
                .checked_add_signed(file_offset)
                .expect("the reach of an access is checked before it starts"),
            memory: self.origin.wrapping_offset(memory_offset as isize),
            len,
            lifetime: PhantomData,
        })
    }
}
