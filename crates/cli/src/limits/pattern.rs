//! The bytes of the file that a contender moves.

use std::ops::Range;

/// Small pieces cover this fraction of the file only: all of it would take too long.
const SMALL_PART: usize = 4;

/// Pieces at equal distances, from the start of the file. Byte `n` of the file belongs to byte `n`
/// of the memory, so that a misplaced piece is detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    piece: usize,
    /// From the start of a piece to that of the next.
    stride: usize,
    /// The file's size over what is spanned.
    part: usize,
}

impl Pattern {
    /// The whole file, one piece after the other.
    pub(super) const fn dense(piece: usize) -> Self {
        Pattern {
            piece,
            stride: piece,
            part: 1,
        }
    }

    /// A part of the file, one piece after the other.
    pub(super) const fn small(piece: usize) -> Self {
        Pattern {
            piece,
            stride: piece,
            part: SMALL_PART,
        }
    }

    /// Every second piece of a part of the file.
    pub(super) const fn holes(piece: usize) -> Self {
        Pattern {
            piece,
            stride: 2 * piece,
            part: SMALL_PART,
        }
    }

    /// Bytes of a piece; the last may be shorter.
    pub(super) fn piece(self) -> usize {
        self.piece
    }

    /// Bytes from the start of the first piece to the end of the last one's stride, in a file of
    /// that size.
    pub(super) fn span(self, size: usize) -> usize {
        size / self.part
    }

    /// The positions of the pieces within a range that starts with a piece.
    pub(super) fn pieces(self, within: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let end = within.end;
        within
            .step_by(self.stride)
            .map(move |start| start..(start + self.piece).min(end))
    }

    /// The pieces of memory that starts with a piece.
    pub(super) fn parts_mut(self, memory: &mut [u8]) -> impl Iterator<Item = &mut [u8]> {
        memory.chunks_mut(self.stride).map(move |chunk| {
            let end = self.piece.min(chunk.len());
            &mut chunk[..end]
        })
    }

    /// Number of pieces in a file of that size.
    pub(super) fn count(self, size: usize) -> usize {
        self.span(size).div_ceil(self.stride)
    }

    /// Bytes of all pieces in a file of that size.
    pub(super) fn bytes(self, size: usize) -> usize {
        self.pieces(0..self.span(size)).map(|it| it.len()).sum()
    }
}

/// Equal parts of a span, one per thread. Spans are whole pages, so parts of few threads are too.
pub(super) fn shares(span: usize, threads: usize) -> Vec<Range<usize>> {
    let bounds = |index: usize| index * (span / threads);
    (0..threads)
        .map(|index| match index + 1 == threads {
            true => bounds(index)..span,
            false => bounds(index)..bounds(index + 1),
        })
        .collect()
}

/// A range of the file, and the memory that belongs to it.
pub(super) type Share<'a> = (Range<usize>, &'a mut [u8]);

/// Divides memory into ranges that follow each other from its start on.
pub(super) fn split(memory: &mut [u8], ranges: Vec<Range<usize>>) -> Vec<Share<'_>> {
    let mut rest = memory;
    let mut shares = Vec::new();
    for range in ranges {
        let (share, later) = rest.split_at_mut(range.len());
        shares.push((range, share));
        rest = later;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dense_pieces_cover_the_file() {
        let pattern = Pattern::dense(8);
        let pieces: Vec<_> = pattern.pieces(0..20).collect();
        assert_eq!(pieces, [0..8, 8..16, 16..20]);
        assert_eq!((pattern.count(20), pattern.bytes(20)), (3, 20));
    }

    #[test]
    fn holes_are_as_long_as_pieces() {
        let pattern = Pattern::holes(4);
        assert_eq!(pattern.span(64), 16);
        let pieces: Vec<_> = pattern.pieces(0..16).collect();
        assert_eq!(pieces, [0..4, 8..12]);
        assert_eq!((pattern.count(64), pattern.bytes(64)), (2, 8));
        let mut memory: Vec<u8> = (0..16).collect();
        let parts: Vec<_> = pattern.parts_mut(&mut memory).collect();
        assert_eq!(parts, [[0, 1, 2, 3], [8, 9, 10, 11]]);
    }

    #[test]
    fn shares_cover_the_span() {
        assert_eq!(shares(20, 1), vec![Range { start: 0, end: 20 }]);
        assert_eq!(shares(20, 2), [0..10, 10..20]);
        assert_eq!(shares(20, 3), [0..6, 6..12, 12..20]);
        let mut memory: Vec<u8> = (0..20).collect();
        let split = split(&mut memory, shares(20, 3));
        assert_eq!(split[1], (6..12, &mut [6, 7, 8, 9, 10, 11][..]));
        assert_eq!(split[2].1.len(), 8);
    }
}
