//! Which pieces of a list are stored through a mapping and which are written by
//! calls.

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

/// Maximum number of bytes mapped at a time: enough to amortise the cost of
/// mapping, few enough to stay in the cache.
const CLUSTER_BYTES_MAX: u64 = 1 << 20;

/// Number of pieces per page from which storing is faster than one call per
/// piece: preparing a page takes about as long as four calls.
const PIECES_PER_PAGE: u64 = 4;

/// Stores through mappings of an open file.
#[derive(Debug, Default)]
pub(crate) struct Stores {
    /// Held shared by stores, exclusively by whoever truncates the file.
    truncation: RwLock<()>,
    /// Set once the kernel or the file system has permanently rejected a mapping.
    is_unsupported: AtomicBool,
}

impl Stores {
    /// Excludes stores while the guard lives.
    pub(crate) fn exclude(&self) -> RwLockWriteGuard<'_, ()> {
        self.truncation
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves a batch. `by_calls` moves the parts for which a mapping has no
    /// advantage or failed; only its errors are reported.
    pub(crate) fn transfer<'a>(
        &self,
        file: BorrowedFd<'_>,
        batch: &Batch<'a>,
        by_calls: impl Fn(&Batch<'a>) -> Outcome,
    ) -> Outcome {
        let few = (batch.pieces().len() as u64) < PIECES_PER_PAGE;
        if few || batch.direction() == Direction::Read || self.is_unsupported.load(Relaxed) {
            return by_calls(batch);
        }
        transfer(batch, &by_calls, |cluster| {
            let _shared = self
                .truncation
                .read()
                .unwrap_or_else(PoisonError::into_inner);
            let stored = store(file, batch, cluster, &by_calls);
            if let Err(error) = &stored
                && is_final(error)
            {
                self.is_unsupported.store(true, Relaxed);
            }
            stored
        })
    }
}

/// Whether later mappings of the same file would fail too: the kernel does not
/// support it, the file may not be mapped for writing, or the file system does
/// not support mappings.
fn is_final(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EINVAL | libc::EACCES | libc::EPERM | libc::ENODEV)
    )
}

/// Moves a batch whose dense clusters can be stored.
fn transfer<'a>(
    batch: &Batch<'a>,
    by_calls: impl Fn(&Batch<'a>) -> Outcome,
    store: impl Fn(&Cluster) -> io::Result<()>,
) -> Outcome {
    let count = batch.pieces().len();
    let mut moved = 0;
    // Everything before this piece has been written.
    let mut done = 0;
    for cluster in clusters(batch.pieces()).filter(Cluster::is_dense) {
        let before = by_calls(&batch.subset(done..cluster.pieces.start));
        moved += before.bytes;
        if before.error.is_some() {
            return Outcome {
                bytes: moved,
                ..before
            };
        }
        done = cluster.pieces.start;
        if store(&cluster).is_ok() {
            moved += cluster.bytes;
            done = cluster.pieces.end;
        }
    }
    if done == 0 {
        return by_calls(batch);
    }
    let rest = by_calls(&batch.subset(done..count));
    Outcome {
        bytes: moved + rest.bytes,
        ..rest
    }
}

/// Stores the pieces of a cluster. After an error, some may have been written.
fn store<'a>(
    file: BorrowedFd<'_>,
    batch: &Batch<'a>,
    cluster: &Cluster,
    by_calls: impl Fn(&Batch<'a>) -> Outcome,
) -> io::Result<()> {
    let end = cluster.range.end;
    if sys::size(file)? < end {
        // Only a write extends a file without truncating what others append
        // concurrently. Its last byte is enough.
        let last = batch.subset(cluster.last..cluster.last + 1);
        by_calls(&last.suffix(last.bytes() - 1)).into_result()?;
        if sys::size(file)? < end {
            return Err(io::ErrorKind::WriteZero.into());
        }
    }
    let mut mapping = Mapping::writable(file, cluster.range.clone())?;
    mapping.store(batch, cluster.pieces.clone());
    Ok(())
}

/// Consecutive pieces of a list that lie close together in the file.
#[derive(Debug, PartialEq, Eq)]
struct Cluster {
    pieces: Range<usize>,
    /// The piece that ends last in the file.
    last: usize,
    /// From the first byte in the file to the end of the last.
    range: Range<u64>,
    /// Total number of bytes in the pieces.
    bytes: u64,
}

impl Cluster {
    /// Whether there are enough pieces to pay for preparing the pages.
    fn is_dense(&self) -> bool {
        let page = sys::page_size();
        let pages = self.range.end.div_ceil(page) - self.range.start / page;
        self.pieces.len() as u64 >= PIECES_PER_PAGE.saturating_mul(pages)
    }
}

/// Divides a list of pieces with valid offsets into clusters that span at most
/// [`CLUSTER_BYTES_MAX`] bytes of the file; a longer piece is a cluster by itself.
fn clusters(pieces: &[Piece]) -> impl Iterator<Item = Cluster> {
    let mut next = 0;
    std::iter::from_fn(move || {
        // Skip empty pieces.
        let full = |piece: &Piece| piece.len > 0;
        next += pieces[next..].iter().position(full)?;
        let first = &pieces[next];
        let mut cluster = Cluster {
            pieces: next..next,
            last: next,
            range: first.offset..first.offset,
            bytes: 0,
        };
        let rest = pieces.iter().enumerate().skip(next);
        for (at, piece) in rest.filter(|(_, piece)| full(piece)) {
            let start = cluster.range.start.min(piece.offset);
            let piece_end = piece.offset + piece.len as u64;
            let end = cluster.range.end.max(piece_end);
            if end - start > CLUSTER_BYTES_MAX && at > next {
                break;
            }
            if piece_end > cluster.range.end {
                cluster.last = at;
            }
            cluster.range = start..end;
            cluster.bytes += piece.len as u64;
            cluster.pieces.end = at + 1;
        }
        next = cluster.pieces.end;
        Some(cluster)
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
    fn clusters_end_at_distant_pieces() {
        let list = pieces(&[
            (100, 8),
            (40, 8),
            (CLUSTER_BYTES_MAX + 40, 1),
            (0, 1 << 22),
            (9, 0),
        ]);
        let found: Vec<Cluster> = clusters(&list).collect();
        let expected = [
            (0..2, 0, 40..108, 16),
            (2..3, 2, CLUSTER_BYTES_MAX + 40..CLUSTER_BYTES_MAX + 41, 1),
            (3..4, 3, 0..1 << 22, 1 << 22),
        ];
        let expected = expected.map(|(pieces, last, range, bytes)| Cluster {
            pieces,
            last,
            range,
            bytes,
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn dense_clusters_have_several_pieces_per_page() {
        let page = sys::page_size();
        let every = |stride: u64| -> Vec<Piece> {
            pieces(&(0..64).map(|at| (at * stride, 8)).collect::<Vec<_>>())
        };
        let dense = |list: &[Piece]| clusters(list).all(|cluster| cluster.is_dense());
        assert!(dense(&every(page / 8)));
        assert!(!dense(&every(page / 2)));
        assert!(!dense(&every(page * 3)));
        assert!(!dense(&pieces(&[(page - 1, 2)])));
    }
}
