//! What a transfer moves: pieces of memory, each with its place in the file.
//!
//! This is one of the files of this crate that may hold `unsafe`: a batch
//! keeps raw pointers, because buffers come from C programs, from shared
//! segments and from requests that outlive the call that made them.
#![allow(unsafe_code)]

use std::marker::PhantomData;

/// Which way the bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the file to memory.
    Read,
    /// From memory to the file.
    Write,
}

/// A contiguous piece of memory and its place in the file.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// First byte in the file.
    pub offset: u64,
    /// First byte in memory.
    pub memory: *mut u8,
    /// Length in bytes.
    pub len: usize,
}

/// Pieces that move in one direction. The result of a transfer counts the
/// bytes of a prefix of this list, so the order matters; offsets need not
/// ascend.
///
/// The memory is valid for `'a`: safe constructors take it from borrowed
/// slices, [`Batch::push_raw`] from a caller who promises it.
#[derive(Debug)]
pub struct Batch<'a> {
    direction: Direction,
    pieces: Vec<Piece>,
    bytes: u64,
    memory: PhantomData<&'a mut [u8]>,
}

// SAFETY: a batch is the exclusive (read) or shared (write) use of the memory
// it names for `'a`, as a slice would be; `push_raw` makes the caller promise
// so where no slice exists.
unsafe impl Send for Batch<'_> {}
// SAFETY: as above; sharing a `&Batch` gives no access to the memory itself
// beyond what a driver's one transfer does.
unsafe impl Sync for Batch<'_> {}

impl<'a> Batch<'a> {
    /// An empty batch.
    pub fn new(direction: Direction) -> Self {
        Batch { direction, pieces: Vec::new(), bytes: 0, memory: PhantomData }
    }

    /// One contiguous read.
    pub fn read(offset: u64, target: &'a mut [u8]) -> Self {
        let mut batch = Batch::new(Direction::Read);
        batch.push_piece(Piece { offset, memory: target.as_mut_ptr(), len: target.len() });
        batch
    }

    /// One contiguous write.
    pub fn write(offset: u64, source: &'a [u8]) -> Self {
        let mut batch = Batch::new(Direction::Write);
        batch.push_piece(Piece { offset, memory: source.as_ptr().cast_mut(), len: source.len() });
        batch
    }

    /// Adds a piece by address.
    ///
    /// # Safety
    /// `memory` is valid for `len` bytes for all of `'a`: for reads of memory
    /// (writes to the file) or for writes to it (reads from the file), with no
    /// other access that Rust's rules would forbid meanwhile.
    pub unsafe fn push_raw(&mut self, offset: u64, memory: *mut u8, len: usize) {
        self.push_piece(Piece { offset, memory, len });
    }

    fn push_piece(&mut self, piece: Piece) {
        self.bytes += piece.len as u64;
        self.pieces.push(piece);
    }

    /// Forgets the pieces, keeps the allocation.
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.bytes = 0;
    }

    /// Which way the bytes go.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// The pieces, in order.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// All their bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
