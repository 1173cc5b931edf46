//! I/O vectors for system calls.
//!
//! This file may contain `unsafe`: the parts are raw pointers.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use smallvec::SmallVec;

use crate::{Batch, Direction, Piece};

/// Maximum number of bytes that the kernel moves in one call.
pub(crate) const CALL_BYTES_MAX: usize = 0x7fff_f000;

/// Maximum number of parts that the kernel accepts in one call (`IOV_MAX`).
pub(crate) const PARTS_MAX: usize = 1024;

/// A position in a batch: everything before it has been moved.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    piece: usize,
    within: usize,
}

impl Cursor {
    /// Advances by `bytes`, across as many pieces as needed.
    pub(crate) fn advance(&mut self, batch: &Batch<'_>, mut bytes: usize) {
        for piece in &batch.pieces()[self.piece..] {
            let left = piece.len - self.within;
            if bytes < left {
                self.within += bytes;
                return;
            }
            bytes -= left;
            self.piece += 1;
            self.within = 0;
        }
        assert_eq!(bytes, 0, "a transfer moves no more than its batch");
    }

    /// The pieces from the position on; the first may be partial, empty ones
    /// are skipped.
    fn rest<'b>(self, batch: &'b Batch<'_>) -> impl Iterator<Item = Piece> + use<'b> {
        let first = self.piece;
        let within = self.within;
        batch.pieces()[first..]
            .iter()
            .enumerate()
            .filter_map(move |(at, piece)| {
                let skip = if at == 0 { within } else { 0 };
                let len = piece.len - skip;
                // Wrapping: the end of a piece is checked before it is moved.
                (len > 0).then(|| Piece {
                    offset: piece.offset.wrapping_add(skip as u64),
                    memory: piece.memory.wrapping_add(skip),
                    len,
                })
            })
    }
}

/// A run of bytes that is contiguous in the file, and its parts in memory: what
/// one system call moves.
///
/// The parts come only from a batch, so their memory is valid as long as the
/// batch's.
#[derive(Debug)]
pub(crate) struct Vector<'a> {
    direction: Direction,
    offset: u64,
    bytes: usize,
    parts: SmallVec<[libc::iovec; 4]>,
    memory: PhantomData<&'a mut [u8]>,
}

// SAFETY: the parts are memory of a batch, which is `Send`.
unsafe impl Send for Vector<'_> {}

impl<'a> Vector<'a> {
    /// An empty vector.
    pub(crate) fn new(direction: Direction) -> Self {
        Vector {
            direction,
            offset: 0,
            bytes: 0,
            parts: SmallVec::new(),
            memory: PhantomData,
        }
    }

    /// Loads the longest run at `cursor` that is contiguous in the file and fits
    /// in one call. False if nothing is left.
    pub(crate) fn load(&mut self, batch: &Batch<'a>, cursor: Cursor) -> bool {
        self.parts.clear();
        self.bytes = 0;
        let mut memory_end = std::ptr::null_mut();
        for piece in cursor.rest(batch) {
            if self.bytes == 0 {
                self.offset = piece.offset;
            } else if self.offset.checked_add(self.bytes as u64) != Some(piece.offset) {
                break;
            }
            let len = piece.len.min(CALL_BYTES_MAX - self.bytes);
            let full = self.parts.len() == PARTS_MAX;
            match self.parts.last_mut() {
                Some(last) if memory_end == piece.memory => last.iov_len += len,
                _ if full => break,
                _ => self.parts.push(libc::iovec {
                    iov_base: piece.memory.cast(),
                    iov_len: len,
                }),
            }
            memory_end = piece.memory.wrapping_add(len);
            self.bytes += len;
            if self.bytes == CALL_BYTES_MAX {
                break;
            }
        }
        self.bytes > 0
    }

    /// Keeps the first `bytes` bytes, of which there must be at least that many.
    pub(crate) fn shorten(&mut self, bytes: usize) {
        let mut left = bytes.min(self.bytes);
        self.bytes = left;
        self.parts.retain_mut(|part| {
            part.iov_len = part.iov_len.min(left);
            left -= part.iov_len;
            part.iov_len > 0
        });
    }

    /// The direction of the transfer.
    pub(crate) fn direction(&self) -> Direction {
        self.direction
    }

    /// Offset in the file.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Number of bytes in the run.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies all bytes of a vector that writes to `target`, which has the same
    /// length.
    pub(crate) fn gather(&self, mut target: &mut [u8]) {
        assert!(self.direction == Direction::Write && target.len() == self.bytes);
        for part in &self.parts {
            let (now, later) = target.split_at_mut(part.iov_len);
            // SAFETY: a part is memory of a live batch, valid for reads; the
            // target is borrowed exclusively, so the two do not overlap.
            unsafe {
                now.as_mut_ptr()
                    .copy_from_nonoverlapping(part.iov_base.cast(), now.len())
            };
            target = later;
        }
    }

    /// Copies `source` to the first bytes of a vector that reads.
    pub(crate) fn scatter(&self, mut source: &[u8]) {
        assert!(self.direction == Direction::Read && source.len() <= self.bytes);
        for part in &self.parts {
            let (now, later) = source.split_at(part.iov_len.min(source.len()));
            // SAFETY: a part is memory of a live batch, valid for writes and not
            // used elsewhere; the source is other memory.
            unsafe {
                now.as_ptr()
                    .copy_to_nonoverlapping(part.iov_base.cast(), now.len())
            };
            source = later;
        }
    }

    /// The parts in memory, in file order.
    pub(crate) fn parts(&self) -> &[libc::iovec] {
        &self.parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lens(vector: &Vector<'_>) -> Vec<usize> {
        vector.parts().iter().map(|part| part.iov_len).collect()
    }

    /// A batch with pieces of (offset, start in memory, length).
    fn batch(pieces: &[(u64, usize, usize)]) -> Batch<'static> {
        let memory = Box::leak(vec![0u8; 4096].into_boxed_slice());
        Batch::gather(Direction::Read, memory, pieces)
    }

    #[test]
    fn adjacent_pieces_are_joined() {
        let batch = batch(&[
            (0, 0, 8),
            (8, 8, 8),
            (16, 32, 8),
            (24, 0, 0),
            (24, 50, 1),
            (99, 51, 1),
        ]);
        let mut vector = Vector::new(Direction::Read);
        let mut cursor = Cursor::default();
        assert!(vector.load(&batch, cursor));
        assert_eq!(
            (vector.offset(), vector.bytes(), lens(&vector)),
            (0, 25, vec![16, 8, 1])
        );
        cursor.advance(&batch, 20);
        assert!(vector.load(&batch, cursor));
        assert_eq!(
            (vector.offset(), vector.bytes(), lens(&vector)),
            (20, 5, vec![4, 1])
        );
        cursor.advance(&batch, 5);
        assert!(vector.load(&batch, cursor));
        assert_eq!((vector.offset(), vector.bytes()), (99, 1));
        cursor.advance(&batch, 1);
        assert!(!vector.load(&batch, cursor));
    }

    #[test]
    fn runs_are_split_at_the_limits_of_one_call() {
        let pieces: Vec<_> = (0..2000).map(|at| (at as u64, at * 2, 1)).collect();
        let batch = batch(&pieces);
        let mut vector = Vector::new(Direction::Read);
        assert!(vector.load(&batch, Cursor::default()));
        assert_eq!(vector.parts().len(), PARTS_MAX);
        vector.shorten(3);
        assert_eq!((vector.bytes(), lens(&vector)), (3, vec![1, 1, 1]));
    }

    #[test]
    fn a_piece_larger_than_one_call_takes_several() {
        const BYTES: usize = 5 << 30;
        let mut batch = Batch::new(Direction::Read);
        // SAFETY: the batch is only split, never moved, so nothing accesses the
        // memory.
        unsafe { batch.push_raw(3, std::ptr::dangling_mut(), BYTES) };
        let mut vector = Vector::new(Direction::Read);
        let mut cursor = Cursor::default();
        let mut moved = 0;
        while vector.load(&batch, cursor) {
            assert_eq!(vector.offset(), 3 + moved as u64);
            assert_eq!(vector.bytes(), CALL_BYTES_MAX.min(BYTES - moved));
            moved += vector.bytes();
            cursor.advance(&batch, vector.bytes());
        }
        assert_eq!(moved, BYTES);
    }

    #[test]
    fn offsets_near_the_maximum_do_not_wrap() {
        let batch = batch(&[(u64::MAX - 3, 0, 8), (4, 8, 8)]);
        let mut vector = Vector::new(Direction::Read);
        assert!(vector.load(&batch, Cursor::default()));
        assert_eq!((vector.offset(), vector.bytes()), (u64::MAX - 3, 8));
    }
}
