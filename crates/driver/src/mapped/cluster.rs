//! Pieces of a list that are close enough together to be stored through a mapping.

use std::ops::Range;

use super::page_costs::{STORED_PIECES_MAX, STORED_PIECES_MIN, stored_pieces};
use crate::{Piece, posix::sys};

/// Maximum number of bytes of the file that a cluster spans: few enough to stay
/// in the cache.
pub(super) const CLUSTER_BYTES_MAX: u64 = 1 << 20;

/// Pages without pieces are not worth preparing; a new cluster is.
const GAP_BYTES_MAX: u64 = 16 << 10;

/// Number of pieces from which storing is faster than one call per piece: the
/// calls around the stores take about as long as ten.
pub(super) const PIECES_MIN: u64 = 16;

/// Whether so many pieces in so many pages are enough to pay for preparing the
/// pages, which takes `per_page` pieces each. If that is unknown, it is measured
/// for the first list that needs it.
pub(super) fn are_dense(pieces: u64, pages: u64, per_page: Option<u64>) -> bool {
    let are_enough = |per_page: u64| pieces >= per_page.saturating_mul(pages);
    pieces >= PIECES_MIN
        && match per_page {
            Some(per_page) => are_enough(per_page),
            None => {
                are_enough(STORED_PIECES_MAX)
                    || are_enough(STORED_PIECES_MIN) && are_enough(stored_pieces())
            }
        }
}

/// Consecutive pieces of a list that lie close together in the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cluster {
    pub(super) pieces: Range<usize>,
    /// The piece that ends last in the file.
    pub(super) last: usize,
    /// From the first byte in the file to the end of the last.
    pub(super) range: Range<u64>,
    /// Number of calls that would write them: pieces that follow each other in
    /// the file take one.
    runs: u64,
    /// Total number of bytes in the pieces.
    pub(super) bytes: u64,
}

impl Cluster {
    /// Whether storing is faster than calls.
    pub(super) fn is_dense(&self, per_page: Option<u64>) -> bool {
        let page = sys::page_size();
        let pages = self.range.end.div_ceil(page) - self.range.start / page;
        are_dense(self.runs, pages, per_page)
    }
}

/// Divides a list of pieces with valid offsets into clusters that span at most
/// [`CLUSTER_BYTES_MAX`] bytes of the file and end at long gaps; a longer piece is
/// a cluster by itself.
pub(super) fn clusters(pieces: &[Piece]) -> impl Iterator<Item = Cluster> {
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
            runs: 0,
            bytes: 0,
        };
        let mut run_end = None;
        let rest = pieces.iter().enumerate().skip(next);
        for (at, piece) in rest.filter(|(_, piece)| full(piece)) {
            let start = cluster.range.start.min(piece.offset);
            let piece_end = piece.offset + piece.len as u64;
            let end = cluster.range.end.max(piece_end);
            let gap = (piece.offset.saturating_sub(cluster.range.end))
                .max(cluster.range.start.saturating_sub(piece_end));
            if at > next && (end - start > CLUSTER_BYTES_MAX || gap > GAP_BYTES_MAX) {
                break;
            }
            if run_end.replace(piece_end) != Some(piece.offset) {
                cluster.runs += 1;
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
        let far = 5 * GAP_BYTES_MAX;
        let list = pieces(&[
            (100, 8),
            (40, 8),
            (48, 2),
            (far, 1),
            (0, 1 << 22),
            (9, 0),
            (far, 1),
            (far - GAP_BYTES_MAX - 1, 1),
        ]);
        let found: Vec<Cluster> = clusters(&list).collect();
        let expected = [
            (0..3, 0, 40..108, 2, 18),
            (3..4, 3, far..far + 1, 1, 1),
            (4..5, 4, 0..1 << 22, 1, 1 << 22),
            (6..8, 6, far - GAP_BYTES_MAX - 1..far + 1, 2, 2),
        ];
        let expected = expected.map(|(pieces, last, range, runs, bytes)| Cluster {
            pieces,
            last,
            range,
            runs,
            bytes,
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn clusters_are_bounded() {
        let list: Vec<_> = (0..3 << 10).map(|at| (at << 10, 8)).collect();
        let found: Vec<Cluster> = clusters(&pieces(&list)).collect();
        assert_eq!(found.len(), 3);
        for cluster in found {
            assert!(cluster.range.end - cluster.range.start <= CLUSTER_BYTES_MAX);
        }
    }

    #[test]
    fn dense_clusters_have_several_pieces_per_page() {
        let page = sys::page_size();
        let every = |count, stride: u64| -> Vec<Piece> {
            pieces(&(0..count).map(|at| (at * stride, 8)).collect::<Vec<_>>())
        };
        let dense = |list: &[Piece]| clusters(list).all(|cluster| cluster.is_dense(Some(4)));
        assert!(dense(&every(64, page / 8)));
        assert!(!dense(&every(64, page / 2)));
        let halves = every(64, page / 2);
        assert!(clusters(&halves).all(|cluster| cluster.is_dense(Some(2))));
        assert!(!dense(&every(64, page * 3)));
        assert!(!dense(&every(PIECES_MIN - 1, 16)));
        assert!(dense(&every(PIECES_MIN, 16)));
    }

    /// Memory in pieces, but not the file: one vectored call.
    #[test]
    fn contiguous_pieces_are_one_run() {
        let list = pieces(&(0..4096).map(|at| (at * 8, 8)).collect::<Vec<_>>());
        assert!(!clusters(&list).any(|cluster| cluster.is_dense(Some(4))));
    }
}
