//! A writable mapping of a range of a file.
//!
//! This file may contain `unsafe`: it maps memory and stores to it.
#![allow(unsafe_code)]

use std::{
    io,
    ops::Range,
    os::fd::{AsRawFd, BorrowedFd},
    ptr::NonNull,
};

use crate::{Batch, Direction, Piece, posix::sys};

/// Resident, writable pages of a file; unmapped when dropped.
pub(super) struct Mapping {
    address: NonNull<u8>,
    /// The mapped range of the file, starting at a page boundary.
    range: Range<u64>,
}

impl Mapping {
    /// Maps the pages of a range inside the file and has the file system prepare
    /// each of them for writing. Conditions that would otherwise kill a storing
    /// program with a signal are reported as errors here.
    pub(super) fn writable(file: BorrowedFd<'_>, range: Range<u64>) -> io::Result<Self> {
        let start = range.start - range.start % sys::page_size();
        let offset = i64::try_from(start).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let bytes = usize::try_from(range.end - start).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let fd = file.as_raw_fd();
        // SAFETY: a new mapping at an address chosen by the kernel affects no
        // existing memory.
        let address = unsafe {
            libc::mmap64(
                std::ptr::null_mut(),
                bytes,
                protection,
                libc::MAP_SHARED,
                fd,
                offset,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapping = Mapping {
            address: NonNull::new(address.cast()).ok_or(io::ErrorKind::OutOfMemory)?,
            range: start..range.end,
        };
        // SAFETY: the range is the mapped one; its contents are unchanged.
        match unsafe { libc::madvise(address, bytes, libc::MADV_POPULATE_WRITE) } {
            0 => Ok(mapping),
            _ => Err(io::Error::last_os_error()),
        }
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
            let at = self.place(piece);
            // SAFETY: the piece is memory of a live batch, valid for reads; its
            // destination is inside the mapping, whose address nothing else has.
            // The same page may be mapped elsewhere, even where the piece is,
            // hence a copy that allows overlap.
            unsafe {
                let target = self.address.as_ptr().add(at);
                target.copy_from(piece.memory, piece.len);
            }
        }
    }

    fn place(&self, piece: &Piece) -> usize {
        let end = piece.offset.checked_add(piece.len as u64);
        assert!(
            self.range.start <= piece.offset && end.is_some_and(|end| end <= self.range.end),
            "the piece lies outside the mapping"
        );
        (piece.offset - self.range.start) as usize
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let bytes = (self.range.end - self.range.start) as usize;
        // SAFETY: the range is the mapped one, and nothing refers to it.
        unsafe { libc::munmap(self.address.as_ptr().cast(), bytes) };
    }
}
