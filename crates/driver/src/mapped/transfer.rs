//! Which pieces of a list are stored, and which are written by calls.

use std::{
    io,
    ops::Range,
    os::fd::BorrowedFd,
    sync::{
        PoisonError, RwLock, RwLockWriteGuard,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use super::mapping::Mapping;
use crate::{Batch, Direction, Outcome, Piece, posix::sys};

/// The most bytes mapped at a time: enough to make the cost of mapping
/// small, few enough to stay in a processor's cache.
const STRETCH_MAX: u64 = 1 << 20;

/// Pieces a page from which storing is faster than a call each: to prepare a
/// new page takes as long as about four calls.
const PIECES_PER_PAGE: u64 = 4;

/// The stores in mappings of an open file.
#[derive(Debug, Default)]
pub(crate) struct Stores {
    /// Shared by those who store, taken alone by who shortens the file.
    gate: RwLock<()>,
    /// Set once the kernel or the file system has refused a mapping for good.
    is_refused: AtomicBool,
}

impl Stores {
    /// Keeps others from storing while the result lives.
    pub(crate) fn exclude(&self) -> RwLockWriteGuard<'_, ()> {
        self.gate.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves a batch. `by_calls` moves the parts for which a mapping has
    /// nothing to offer, or is not to be had; its errors are the ones that count.
    pub(crate) fn transfer<'a>(
        &self,
        file: BorrowedFd<'_>,
        batch: &Batch<'a>,
        by_calls: impl Fn(&Batch<'a>) -> Outcome,
    ) -> Outcome {
        let few = (batch.pieces().len() as u64) < PIECES_PER_PAGE;
        if few || batch.direction() == Direction::Read || self.is_refused.load(Relaxed) {
            return by_calls(batch);
        }
        transfer(batch, &by_calls, |stretch| {
            let _shared = self.gate.read().unwrap_or_else(PoisonError::into_inner);
            let stored = store(file, batch, stretch, &by_calls);
            if let Err(error) = &stored
                && is_final(error)
            {
                self.is_refused.store(true, Relaxed);
            }
            stored
        })
    }
}

/// Whether the next mapping of the same file would fail as well: the kernel
/// does not know how, the file may not be mapped so, or its file system maps
/// none.
fn is_final(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EINVAL | libc::EACCES | libc::EPERM | libc::ENODEV)
    )
}

/// Moves a batch whose dense stretches can be stored.
fn transfer<'a>(
    batch: &Batch<'a>,
    by_calls: impl Fn(&Batch<'a>) -> Outcome,
    store: impl Fn(&Stretch) -> io::Result<()>,
) -> Outcome {
    let count = batch.pieces().len();
    let mut moved = 0;
    // Everything before this piece is written.
    let mut done = 0;
    for stretch in stretches(batch.pieces()).filter(Stretch::is_dense) {
        let before = by_calls(&batch.some(done..stretch.pieces.start));
        moved += before.bytes;
        if before.error.is_some() {
            return Outcome {
                bytes: moved,
                ..before
            };
        }
        done = stretch.pieces.start;
        if store(&stretch).is_ok() {
            moved += stretch.bytes;
            done = stretch.pieces.end;
        }
    }
    if done == 0 {
        return by_calls(batch);
    }
    let rest = by_calls(&batch.some(done..count));
    Outcome {
        bytes: moved + rest.bytes,
        ..rest
    }
}

/// Stores the pieces of a stretch. After an error some may be written.
fn store<'a>(
    file: BorrowedFd<'_>,
    batch: &Batch<'a>,
    stretch: &Stretch,
    by_calls: impl Fn(&Batch<'a>) -> Outcome,
) -> io::Result<()> {
    let end = stretch.range.end;
    if sys::size(file)? < end {
        // Only a write makes a file longer without cutting what others add
        // to it meanwhile. Its last byte is enough.
        let last = batch.some(stretch.last..stretch.last + 1);
        by_calls(&last.suffix(last.bytes() - 1)).into_result()?;
        if sys::size(file)? < end {
            return Err(io::ErrorKind::WriteZero.into());
        }
    }
    let mut mapping = Mapping::writable(file, stretch.range.clone())?;
    mapping.store(batch, stretch.pieces.clone());
    Ok(())
}

/// Pieces that follow each other in a list and lie close together in the file.
#[derive(Debug, PartialEq, Eq)]
struct Stretch {
    pieces: Range<usize>,
    /// The piece that ends last in the file.
    last: usize,
    /// From the first byte in the file to the last.
    range: Range<u64>,
    /// All bytes of the pieces.
    bytes: u64,
}

impl Stretch {
    /// Whether storing its pieces is worth preparing its pages.
    fn is_dense(&self) -> bool {
        let page = sys::page_size();
        let pages = self.range.end.div_ceil(page) - self.range.start / page;
        self.pieces.len() as u64 >= PIECES_PER_PAGE.saturating_mul(pages)
    }
}

/// Cuts a list of pieces that files can have into stretches of at most
/// [`STRETCH_MAX`] bytes of the file; a longer piece is one by itself.
fn stretches(pieces: &[Piece]) -> impl Iterator<Item = Stretch> {
    let mut next = 0;
    std::iter::from_fn(move || {
        // Pieces without bytes have no place.
        let full = |piece: &Piece| piece.len > 0;
        next += pieces[next..].iter().position(full)?;
        let first = &pieces[next];
        let mut stretch = Stretch {
            pieces: next..next,
            last: next,
            range: first.offset..first.offset,
            bytes: 0,
        };
        let rest = pieces.iter().enumerate().skip(next);
        for (at, piece) in rest.filter(|(_, piece)| full(piece)) {
            let start = stretch.range.start.min(piece.offset);
            let piece_end = piece.offset + piece.len as u64;
            let end = stretch.range.end.max(piece_end);
            if end - start > STRETCH_MAX && at > next {
                break;
            }
            if piece_end > stretch.range.end {
                stretch.last = at;
            }
            stretch.range = start..end;
            stretch.bytes += piece.len as u64;
            stretch.pieces.end = at + 1;
        }
        next = stretch.pieces.end;
        Some(stretch)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(list: &[(u64, usize)]) -> Vec<Piece> {
        let memory = std::ptr::null_mut();
        let piece = |&(offset, len)| Piece {
            offset,
            memory,
            len,
        };
        list.iter().map(piece).collect()
    }

    #[test]
    fn cuts_where_the_file_is_far() {
        let list = pieces(&[
            (100, 8),
            (40, 8),
            (STRETCH_MAX + 40, 1),
            (0, 1 << 22),
            (9, 0),
        ]);
        let found: Vec<Stretch> = stretches(&list).collect();
        let expected = [
            (0..2, 0, 40..108, 16),
            (2..3, 2, STRETCH_MAX + 40..STRETCH_MAX + 41, 1),
            (3..4, 3, 0..1 << 22, 1 << 22),
        ];
        let expected = expected.map(|(pieces, last, range, bytes)| Stretch {
            pieces,
            last,
            range,
            bytes,
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn dense_is_several_pieces_a_page() {
        let page = sys::page_size();
        let every = |stride: u64| -> Vec<Piece> {
            pieces(&(0..64).map(|at| (at * stride, 8)).collect::<Vec<_>>())
        };
        let dense = |list: &[Piece]| stretches(list).all(|stretch| stretch.is_dense());
        assert!(dense(&every(page / 8)));
        assert!(!dense(&every(page / 2)));
        assert!(!dense(&every(page * 3)));
        assert!(!dense(&pieces(&[(page - 1, 2)])));
    }
}
