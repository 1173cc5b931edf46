//! The contents of a file in memory, in pages that are allocated when written.

use std::{
    collections::BTreeMap,
    io,
    sync::{
        PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{Batch, Direction, Outcome, Piece, batch::beyond_files};

const PAGE_BYTES: usize = 1 << 16;

static ZEROS: [u8; PAGE_BYTES] = [0; PAGE_BYTES];

/// The bytes of a file. Concurrent transfers contend only for shared pages;
/// allocating or truncating pages briefly blocks all.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pages: RwLock<Pages>,
    /// Grows under the shared lock, shrinks under the exclusive one.
    size: AtomicU64,
}

/// Pages by number. Invariant: bytes at and after the size are zero.
type Pages = BTreeMap<u64, RwLock<Box<[u8]>>>;

/// The part of a piece in one page.
struct Chunk {
    page: u64,
    within: usize,
    len: usize,
}

impl Chunk {
    fn at(offset: u64, left: usize) -> Chunk {
        let within = (offset % PAGE_BYTES as u64) as usize;
        Chunk {
            page: offset / PAGE_BYTES as u64,
            within,
            len: left.min(PAGE_BYTES - within),
        }
    }
}

impl Contents {
    pub(super) fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    /// Moves an addressable batch, piece by piece in order.
    pub(super) fn transfer(&self, batch: &Batch<'_>) -> Outcome {
        let mut moved = 0;
        for (number, piece) in batch.pieces().iter().enumerate() {
            match self.transfer_piece(batch, number, piece) {
                Ok(len) => {
                    moved += len as u64;
                    if len < piece.len {
                        break;
                    }
                }
                Err((len, error)) => return Outcome::failed(moved + len as u64, error),
            }
        }
        Outcome::moved(moved)
    }

    /// Moves one piece, up to the end of the file when reading.
    fn transfer_piece(
        &self,
        batch: &Batch<'_>,
        number: usize,
        piece: &Piece,
    ) -> Result<usize, (usize, io::Error)> {
        let mut at = 0;
        while at < piece.len {
            let offset = piece.offset + at as u64;
            let chunk = Chunk::at(offset, piece.len - at);
            let moved = match batch.direction() {
                Direction::Read => self.read(batch, number, at, offset, &chunk),
                Direction::Write => self
                    .write(batch, number, at, offset, &chunk)
                    .map_err(|error| (at, error))?,
            };
            at += moved;
            if moved < chunk.len {
                break;
            }
        }
        Ok(at)
    }

    fn read(
        &self,
        batch: &Batch<'_>,
        piece: usize,
        at: usize,
        offset: u64,
        chunk: &Chunk,
    ) -> usize {
        let pages = self.shared();
        let available = self.size().saturating_sub(offset);
        let len =
            usize::try_from(available).map_or(chunk.len, |available| available.min(chunk.len));
        match pages.get(&chunk.page) {
            None => batch.put(piece, at, &ZEROS[..len]),
            Some(page) => {
                let page = page.read().unwrap_or_else(PoisonError::into_inner);
                batch.put(piece, at, &page[chunk.within..chunk.within + len]);
            }
        }
        len
    }

    fn write(
        &self,
        batch: &Batch<'_>,
        piece: usize,
        at: usize,
        offset: u64,
        chunk: &Chunk,
    ) -> io::Result<usize> {
        loop {
            let pages = self.shared();
            if let Some(page) = pages.get(&chunk.page) {
                let mut page = page.write().unwrap_or_else(PoisonError::into_inner);
                batch.get(piece, at, &mut page[chunk.within..chunk.within + chunk.len]);
                self.size
                    .fetch_max(offset + chunk.len as u64, Ordering::AcqRel);
                return Ok(chunk.len);
            }
            drop(pages);
            self.make(chunk.page)?;
        }
    }

    /// Allocates a page of zeros, unless another thread already has.
    fn make(&self, page: u64) -> io::Result<()> {
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(PAGE_BYTES)
            .map_err(|_| io::ErrorKind::OutOfMemory)?;
        bytes.resize(PAGE_BYTES, 0);
        self.exclusive()
            .entry(page)
            .or_insert_with(|| RwLock::new(bytes.into_boxed_slice()));
        Ok(())
    }

    /// Makes the file at least this long.
    pub(super) fn extend(&self, bytes: u64) -> io::Result<()> {
        i64::try_from(bytes).map_err(|_| beyond_files(0, bytes))?;
        let _pages = self.shared();
        self.size.fetch_max(bytes, Ordering::AcqRel);
        Ok(())
    }

    /// Makes the file exactly this long; truncated bytes are discarded.
    pub(super) fn set_size(&self, bytes: u64) -> io::Result<()> {
        i64::try_from(bytes).map_err(|_| beyond_files(0, bytes))?;
        let mut pages = self.exclusive();
        let last = Chunk::at(bytes, 0);
        let _cut = pages.split_off(&if last.within == 0 {
            last.page
        } else {
            last.page + 1
        });
        if let Some(page) = pages.get_mut(&last.page) {
            page.get_mut().unwrap_or_else(PoisonError::into_inner)[last.within..].fill(0);
        }
        self.size.store(bytes, Ordering::Release);
        Ok(())
    }

    fn shared(&self) -> RwLockReadGuard<'_, Pages> {
        self.pages.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn exclusive(&self) -> RwLockWriteGuard<'_, Pages> {
        self.pages.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_take_no_memory() {
        let contents = Contents::default();
        contents.set_size(1 << 44).unwrap();
        contents.transfer(&Batch::write(1 << 43, &[1]));
        assert_eq!(contents.shared().len(), 1);
        let mut byte = [7];
        contents.transfer(&Batch::read(1 << 42, &mut byte));
        assert_eq!(byte, [0]);
        contents.set_size(1 << 43).unwrap();
        assert_eq!(contents.shared().len(), 0);
    }

    #[test]
    fn truncated_bytes_do_not_reappear() {
        let contents = Contents::default();
        contents.transfer(&Batch::write(0, &[7; 100]));
        contents.set_size(10).unwrap();
        contents.set_size(50).unwrap();
        let mut bytes = [1; 60];
        assert_eq!(contents.transfer(&Batch::read(0, &mut bytes)).bytes, 50);
        assert_eq!(bytes[..10], [7; 10]);
        assert_eq!(bytes[10..50], [0; 40]);
        assert_eq!(bytes[50..], [1; 10]);
    }
}
