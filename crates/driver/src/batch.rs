//! Batches: pieces of memory, each with its offset in the file.
//!
//! This file may contain `unsafe`: a batch holds raw pointers, because buffers
//! come from C programs, from shared segments and from requests that outlive
//! the call that made them.
#![allow(unsafe_code)]

use std::{io, marker::PhantomData, ops::Range};

use pario_types::Direction;
use smallvec::SmallVec;

/// A contiguous piece of memory and its offset in the file.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Offset in the file.
    pub offset: u64,
    /// Address in memory.
    pub memory: *mut u8,
    /// Length in bytes.
    pub len: usize,
}

/// Pieces that move in one direction. The result of a transfer counts the bytes
/// of a prefix of this list, so the order matters; offsets need not ascend.
///
/// The memory is valid for `'a`: safe constructors borrow slices, and callers
/// of [`Batch::push_raw`] promise it.
#[derive(Debug)]
pub struct Batch<'a> {
    direction: Direction,
    /// Most batches are one piece, a window or a dense access.
    pieces: SmallVec<[Piece; 2]>,
    bytes: u64,
    memory: PhantomData<&'a mut [u8]>,
}

// SAFETY: a batch has exclusive (read) or shared (write) use of its memory for
// `'a`, like a slice; callers of `push_raw` promise the same.
unsafe impl Send for Batch<'_> {}
// SAFETY: as above; `&Batch` gives no access to the memory beyond the driver's
// one transfer.
unsafe impl Sync for Batch<'_> {}

/// One piece and the direction in which it moves: what most batches hold, without a list.
/// The memory is valid for `'a`, as that of a batch.
#[derive(Debug)]
pub struct OnePiece<'a> {
    direction: Direction,
    piece: Piece,
    memory: PhantomData<&'a mut [u8]>,
}

impl<'a> OnePiece<'a> {
    /// A piece by address.
    ///
    /// # Safety
    /// As for [`Batch::push_raw`].
    #[inline]
    pub unsafe fn new(direction: Direction, piece: Piece) -> Self {
        OnePiece {
            direction,
            piece,
            memory: PhantomData,
        }
    }

    /// The direction of the transfer.
    #[inline]
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Where it is.
    #[inline]
    pub fn piece(&self) -> Piece {
        self.piece
    }

    /// The same as a batch.
    pub fn batch(&self) -> Batch<'a> {
        let mut batch = Batch::new(self.direction);
        batch.push_piece(self.piece);
        batch
    }

    /// As [`Batch::require_addressable`].
    #[inline]
    pub fn require_addressable(&self) -> io::Result<()> {
        self.piece.require_addressable()
    }
}

impl Piece {
    #[inline]
    fn require_addressable(&self) -> io::Result<()> {
        let end = self.offset.checked_add(self.len as u64);
        match end.is_some_and(|end| i64::try_from(end).is_ok()) || self.len == 0 {
            true => Ok(()),
            false => Err(beyond_files(self.offset, self.len as u64)),
        }
    }
}

impl<'a> Batch<'a> {
    /// An empty batch.
    pub fn new(direction: Direction) -> Self {
        Batch {
            direction,
            pieces: SmallVec::new(),
            bytes: 0,
            memory: PhantomData,
        }
    }

    /// One contiguous read.
    pub fn read(offset: u64, target: &'a mut [u8]) -> Self {
        let mut batch = Batch::new(Direction::Read);
        batch.push_piece(Piece {
            offset,
            memory: target.as_mut_ptr(),
            len: target.len(),
        });
        batch
    }

    /// One contiguous write.
    pub fn write(offset: u64, source: &'a [u8]) -> Self {
        let mut batch = Batch::new(Direction::Write);
        batch.push_piece(Piece {
            offset,
            memory: source.as_ptr().cast_mut(),
            len: source.len(),
        });
        batch
    }

    /// Pieces of one buffer, each given as (offset in the file, start in
    /// `memory`, length).
    ///
    /// # Panics
    /// If a piece lies outside `memory`.
    pub fn gather(
        direction: Direction,
        memory: &'a mut [u8],
        pieces: &[(u64, usize, usize)],
    ) -> Self {
        let mut batch = Batch::new(direction);
        let base = memory.as_mut_ptr();
        for &(offset, start, len) in pieces {
            let end = start
                .checked_add(len)
                .expect("a piece ends inside the address space");
            assert!(
                end <= memory.len(),
                "piece {start}..{end} of a buffer of {}",
                memory.len()
            );
            batch.push_piece(Piece {
                offset,
                memory: base.wrapping_add(start),
                len,
            });
        }
        batch
    }

    /// Adds a piece by address.
    ///
    /// # Safety
    /// `memory` is valid for `len` bytes for all of `'a`: for reads if the
    /// batch writes to the file, for writes if it reads from the file. Nothing
    /// else may access it during that time in a way that Rust's rules forbid.
    pub unsafe fn push_raw(&mut self, offset: u64, memory: *mut u8, len: usize) {
        self.push_piece(Piece {
            offset,
            memory,
            len,
        });
    }

    fn push_piece(&mut self, piece: Piece) {
        self.bytes += piece.len as u64;
        self.pieces.push(piece);
    }

    /// Removes all pieces but keeps the allocation.
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.bytes = 0;
    }

    /// The direction of the transfer.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// The pieces, in order.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Total number of bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns an error if any byte lies beyond offset 2^63 - 1.
    #[inline]
    pub fn require_addressable(&self) -> io::Result<()> {
        self.pieces.iter().try_for_each(Piece::require_addressable)
    }

    /// The piece, if it is the only one.
    pub(crate) fn only(&self) -> Option<OnePiece<'a>> {
        match self.pieces[..] {
            // SAFETY: the batch's memory is as valid as the piece's has to be.
            [piece] => Some(unsafe { OnePiece::new(self.direction, piece) }),
            _ => None,
        }
    }

    /// A range of the pieces, in the same memory.
    pub(crate) fn subset(&self, pieces: Range<usize>) -> Batch<'a> {
        let mut some = Batch::new(self.direction);
        for piece in &self.pieces[pieces] {
            some.push_piece(*piece);
        }
        some
    }

    /// The first `bytes` bytes, in the same memory.
    pub fn prefix(&self, bytes: u64) -> Batch<'a> {
        let mut left = bytes;
        let mut prefix = Batch::new(self.direction);
        for piece in &self.pieces {
            if left == 0 {
                break;
            }
            let len = usize::try_from(left).map_or(piece.len, |left| left.min(piece.len));
            prefix.push_piece(Piece { len, ..*piece });
            left -= len as u64;
        }
        prefix
    }

    /// All but the first `bytes` bytes, in the same memory.
    pub fn suffix(&self, bytes: u64) -> Batch<'a> {
        let mut skip = bytes;
        let mut suffix = Batch::new(self.direction);
        for piece in &self.pieces {
            let skipped = usize::try_from(skip).map_or(piece.len, |skip| skip.min(piece.len));
            skip -= skipped as u64;
            if skipped < piece.len {
                suffix.push_piece(Piece {
                    offset: piece.offset.wrapping_add(skipped as u64),
                    memory: piece.memory.wrapping_add(skipped),
                    len: piece.len - skipped,
                });
            }
        }
        suffix
    }

    /// The pieces from index `first` on that begin below offset `stop`, cut off there, in the same
    /// memory.
    pub fn below(&self, first: usize, stop: u64) -> Batch<'a> {
        let mut below = Batch::new(self.direction);
        for piece in &self.pieces[first..] {
            let room = stop.saturating_sub(piece.offset);
            let len = usize::try_from(room).map_or(piece.len, |room| room.min(piece.len));
            if len > 0 {
                below.push_piece(Piece { len, ..*piece });
            }
        }
        below
    }

    /// Copies `source` to one piece, starting at its byte `at`. For drivers
    /// that execute a batch that reads.
    pub(crate) fn put(&self, piece: usize, at: usize, source: &[u8]) {
        assert_eq!(self.direction, Direction::Read, "only reads modify memory");
        let piece = self.pieces[piece];
        assert!(
            source.len() <= piece.len && at <= piece.len - source.len(),
            "outside the piece"
        );
        // SAFETY: the range lies inside the piece, whose memory is valid for
        // writes for `'a`; `source` is a Rust borrow, so it cannot alias memory
        // that the batch uses exclusively.
        unsafe {
            piece
                .memory
                .add(at)
                .copy_from_nonoverlapping(source.as_ptr(), source.len())
        }
    }

    /// Fills `target` from one piece, starting at its byte `at`.
    pub(crate) fn get(&self, piece: usize, at: usize, target: &mut [u8]) {
        assert_eq!(self.direction, Direction::Write, "only writes read memory");
        let piece = self.pieces[piece];
        assert!(
            target.len() <= piece.len && at <= piece.len - target.len(),
            "outside the piece"
        );
        // SAFETY: the range lies inside the piece, whose memory is valid for
        // reads for `'a`; `target` is borrowed exclusively, so it cannot alias
        // the batch.
        unsafe {
            piece
                .memory
                .add(at)
                .copy_to_nonoverlapping(target.as_mut_ptr(), target.len())
        }
    }
}

/// The error for offsets beyond the limit of any file.
pub(crate) fn beyond_files(offset: u64, bytes: u64) -> io::Error {
    let message = format!(
        "{bytes} bytes at offset {offset} exceed the largest file size, {} bytes",
        i64::MAX
    );
    io::Error::new(io::ErrorKind::FileTooLarge, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_and_suffix_split_pieces() {
        let mut memory = [0u8; 16];
        let pieces = [(100, 0, 4), (7, 4, 0), (200, 4, 8)];
        let batch = Batch::gather(Direction::Write, &mut memory, &pieces);
        for cut in 0..=14u64 {
            let (prefix, suffix) = (batch.prefix(cut), batch.suffix(cut));
            assert_eq!(prefix.bytes(), cut.min(12));
            assert_eq!(prefix.bytes() + suffix.bytes(), 12);
        }
        let suffix = batch.suffix(6);
        assert_eq!(
            (suffix.pieces()[0].offset, suffix.pieces()[0].len),
            (202, 6)
        );
        assert_eq!(
            suffix.pieces()[0].memory,
            batch.pieces()[2].memory.wrapping_add(2)
        );
    }
}
