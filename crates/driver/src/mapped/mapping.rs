//! A range of a file as memory.
//!
//! One of the files that may hold `unsafe`: it maps, and stores to what it
//! mapped.
#![allow(unsafe_code)]

use std::{
    io,
    ops::Range,
    os::fd::{AsRawFd, BorrowedFd},
    ptr::NonNull,
};

use crate::{Batch, Direction, Piece, posix::sys};

/// Pages of a file that are there and may be written, unmapped when dropped.
pub(super) struct Mapping {
    address: NonNull<u8>,
    /// The bytes of the file that are mapped: from a page's start.
    range: Range<u64>,
}

impl Mapping {
    /// Maps the pages of a range that lies inside of the file, and has the
    /// file system make each of them ready for being written: what would
    /// end a program that stores is an error here.
    pub(super) fn writable(file: BorrowedFd<'_>, range: Range<u64>) -> io::Result<Self> {
        let start = range.start - range.start % sys::page_size();
        let offset = i64::try_from(start).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let bytes = usize::try_from(range.end - start).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let fd = file.as_raw_fd();
        // SAFETY: a new mapping at an address that the kernel picks touches
        // no memory that exists.
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
        // SAFETY: the range is the one that was mapped; its content stays.
        match unsafe { libc::madvise(address, bytes, libc::MADV_POPULATE_WRITE) } {
            0 => Ok(mapping),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Stores some pieces of a batch that writes, in their order.
    ///
    /// # Panics
    /// If a piece that has bytes is not inside of the mapping.
    pub(super) fn store(&mut self, batch: &Batch<'_>, pieces: Range<usize>) {
        assert_eq!(batch.direction(), Direction::Write, "only writes store");
        let pieces = batch.pieces()[pieces].iter();
        for piece in pieces.filter(|piece| piece.len > 0) {
            let at = self.place(piece);
            // SAFETY: the piece is memory of a live batch, valid for reads; its
            // place is inside of the mapping, whose address no one else has.
            // The same page may be mapped elsewhere, even where the piece is:
            // hence a copy that allows for both being one.
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
            "a piece is inside of its mapping"
        );
        (piece.offset - self.range.start) as usize
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let bytes = (self.range.end - self.range.start) as usize;
        // SAFETY: the range is the one that was mapped, and nothing refers to it.
        unsafe { libc::munmap(self.address.as_ptr().cast(), bytes) };
    }
}
