//! Layouts whose offsets do not increase, sorted by offset.

use std::ops::Range;

use crate::shape::{Kind, Node};
use crate::{Layout, Monotonicity, Overlap};

/// Overlap is decided by sorting the pieces of a tile, up to this many.
const SORTED_PIECES: u64 = 1 << 16;

/// A contiguous piece and the position of its bytes in the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Offset of the first byte.
    pub offset: i64,
    /// Length in bytes.
    pub len: u64,
    /// Position of the first byte in the data.
    pub data: u64,
}

impl Layout {
    /// The contiguous pieces of a range of data bytes, sorted by offset; at equal offsets, in
    /// data order.
    ///
    /// Used for layouts that do not increase. Takes memory for every piece, so the range should
    /// be bounded.
    pub fn sorted_pieces(&self, data: Range<u64>) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut position = data.start;
        for run in self.runs(data) {
            for (offset, len) in run.pieces() {
                pieces.push(Piece {
                    offset,
                    len,
                    data: position,
                });
                position += len;
            }
        }
        pieces.sort_by_key(|piece| (piece.offset, piece.data));
        pieces
    }
}

impl Layout {
    /// Whether two data bytes of one tile share an offset, which the standard forbids in a type
    /// that is written to.
    pub fn tile_overlap(&self) -> Overlap {
        let Some(tile) = self.tile() else {
            return Overlap::Absent;
        };
        if is_disjoint(&tile.shape) {
            return Overlap::Absent;
        }
        if tile.shape.pieces > SORTED_PIECES {
            return Overlap::Unproven;
        }
        let pieces = self.sorted_pieces(0..self.size());
        overlap_of(pieces.iter().map(|piece| (piece.offset.into(), piece.len)))
    }

    /// Whether two data bytes of the tiling share an offset.
    pub fn overlap(&self) -> Overlap {
        let Some(tile) = self.tile() else {
            return Overlap::Absent;
        };
        if self.order() == Monotonicity::Increasing {
            return Overlap::Absent;
        }
        let extent = self.extent().unsigned_abs();
        if self.size() > extent {
            return Overlap::Present;
        }
        let span = tile.shape.high.abs_diff(tile.shape.low);
        let of_tile = self.tile_overlap();
        if of_tile != Overlap::Absent || span <= extent {
            return of_tile;
        }
        if tile.shape.pieces > SORTED_PIECES {
            return Overlap::Unproven;
        }
        // Tiles overlap if and only if the pieces of one tile overlap modulo the extent.
        let mut rolled = Vec::new();
        for run in self.runs(0..self.size()) {
            for (offset, len) in run.pieces() {
                let start = i128::from(offset).rem_euclid(extent.into());
                let space = extent - start as u64;
                rolled.push((start, len.min(space)));
                if len > space {
                    rolled.push((0, len - space));
                }
            }
        }
        rolled.sort_unstable();
        overlap_of(rolled.into_iter())
    }
}

/// Whether all copies and parts are disjoint, whatever their order.
fn is_disjoint(shape: &Node) -> bool {
    if shape.increasing {
        return true;
    }
    match &shape.kind {
        Kind::Repeat { stride, child, .. } => {
            is_disjoint(child) && stride.unsigned_abs() >= child.high.abs_diff(child.low)
        }
        _ => false,
    }
}

/// Whether neighbours in a list sorted by offset overlap.
fn overlap_of(mut pieces: impl Iterator<Item = (i128, u64)>) -> Overlap {
    let mut end = i128::MIN;
    let clash = pieces.any(|(offset, len)| {
        let clash = offset < end;
        end = offset + i128::from(len);
        clash
    });
    if clash {
        Overlap::Present
    } else {
        Overlap::Absent
    }
}
