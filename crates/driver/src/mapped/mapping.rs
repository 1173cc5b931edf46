//! A writable mapping of a range of a file.
//!
//! This file may contain `unsafe`: it stores to mapped memory.
#![allow(unsafe_code)]

use std::{
    io,
    ops::Range,
    os::fd::{AsRawFd, BorrowedFd},
};

use memmap2::{Advice, MmapOptions, MmapRaw};

use crate::{Batch, Direction, Piece, posix::sys};

/// Pages of a file, or of what it may grow to; unmapped when dropped.
#[derive(Debug)]
pub(super) struct Mapping {
    memory: MmapRaw,
    /// The mapped range of the file, starting at a page boundary.
    range: Range<u64>,
}

/// How pages are made resident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Populate {
    /// As by reading, which maps several pages of the cache at a time. `tmpfs`
    /// allocates missing pages and makes all of them writable.
    Read,
    /// As by writing: the file system allocates storage for each page.
    Write,
}

impl Mapping {
    /// Maps the pages of a range, which may reach beyond the end of the file.
    pub(super) fn new(file: BorrowedFd<'_>, range: Range<u64>) -> io::Result<Self> {
        let start = range.start - range.start % sys::page_size();
        let bytes = usize::try_from(range.end - start).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut options = MmapOptions::new();
        let memory = options.offset(start).len(bytes).map_raw(file.as_raw_fd())?;
        Ok(Mapping {
            memory,
            range: start..range.end,
        })
    }

    pub(super) fn covers(&self, range: &Range<u64>) -> bool {
        self.range.start <= range.start && range.end <= self.range.end
    }

    /// Makes the pages of a mapped range resident. Conditions that would
    /// otherwise kill a storing program with a signal are reported as errors
    /// here.
    ///
    /// # Panics
    /// If the range lies outside the mapping.
    pub(super) fn populate(&self, range: &Range<u64>, how: Populate) -> io::Result<()> {
        assert!(self.covers(range), "the range lies outside the mapping");
        let advice = match how {
            Populate::Read => Advice::PopulateRead,
            Populate::Write => Advice::PopulateWrite,
        };
        let start = (range.start - self.range.start) as usize;
        let bytes = (range.end - range.start) as usize;
        self.memory.advise_range(advice, start, bytes)
    }

    /// Stores a range of the pieces of a batch that writes, in order.
    ///
    /// # Panics
    /// If a non-empty piece lies outside the mapping.
    pub(super) fn store(&mut self, batch: &Batch<'_>, pieces: Range<usize>) {
        assert_eq!(
            batch.direction(),
            Direction::Write,
            "only writes can be stored"
        );
        let pieces = batch.pieces()[pieces].iter();
        for piece in pieces.filter(|piece| piece.len > 0) {
            let target = self.target(piece);
            // SAFETY: the piece is memory of a live batch, valid for reads; its
            // destination is inside the mapping, whose address nothing else has.
            // The same page may be mapped elsewhere, even where the piece is,
            // hence a copy that allows overlap.
            unsafe { target.copy_from(piece.memory, piece.len) };
        }
    }

    /// The address of a piece of the file.
    ///
    /// # Panics
    /// If the piece lies outside the mapping.
    pub(super) fn target(&self, piece: &Piece) -> *mut u8 {
        let end = piece.offset.checked_add(piece.len as u64);
        assert!(
            end.is_some_and(|end| self.covers(&(piece.offset..end))),
            "the piece lies outside the mapping"
        );
        let at = (piece.offset - self.range.start) as usize;
        // SAFETY: inside the mapping.
        unsafe { self.memory.as_mut_ptr().add(at) }
    }
}
