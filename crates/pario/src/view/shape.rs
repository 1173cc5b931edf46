//! The layouts of all ranks' views, which are decoded when a call first needs them.
//!
//! Independent access needs only the rank's own layout. What the ranks decide together when they
//! set views follows from outlines. Irregular views of many ranks would otherwise take every rank
//! time and memory for the blocks of all of them.

use std::{
    mem,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use pario_layout::{Layout, Monotonicity, PieceStats};

use crate::{Error, ErrorKind, Result};

/// The layout of a rank's view, and its hash, which stands for it in messages. Clones share what
/// has been decoded.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    hash: u128,
    outline: Outline,
    layout: Arc<DecodedLater>,
}

#[derive(Debug)]
struct DecodedLater {
    /// Empty once it is decoded.
    wire: Mutex<Vec<u8>>,
    /// `None` if the wire form is malformed.
    layout: OnceLock<Option<Layout>>,
}

impl Shape {
    /// A layout that this rank has, with the hash of its wire form.
    pub(crate) fn known(layout: &Layout, hash: u128) -> Shape {
        Shape {
            hash,
            outline: Outline::new(layout),
            layout: Arc::new(DecodedLater {
                wire: Mutex::default(),
                layout: OnceLock::from(Some(layout.clone())),
            }),
        }
    }

    /// Another rank's. `None` if the bytes do not have the hash; what has it, the other rank made
    /// from a layout, so that it can be decoded.
    pub(crate) fn received(hash: u128, outline: Outline, wire: &[u8]) -> Option<Shape> {
        let is_whole = Layout::hash_of_wire(wire) == hash;
        is_whole.then(|| Shape {
            hash,
            outline,
            layout: Arc::new(DecodedLater {
                wire: Mutex::new(wire.to_vec()),
                layout: OnceLock::new(),
            }),
        })
    }

    pub(crate) fn hash(&self) -> u128 {
        self.hash
    }

    pub(crate) fn outline(&self) -> &Outline {
        &self.outline
    }

    pub(crate) fn layout(&self) -> Result<&Layout> {
        let DecodedLater { wire, layout } = &*self.layout;
        let layout = layout.get_or_init(|| {
            let mut wire = wire.lock().unwrap_or_else(PoisonError::into_inner);
            Layout::from_wire(&mem::take(&mut *wire)).ok()
        });
        layout.as_ref().ok_or_else(malformed)
    }
}

pub(crate) fn malformed() -> Error {
    Error::new(ErrorKind::Io, "a rank sent a malformed view")
}

/// The properties of a layout from which ranks decide together how they write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outline {
    /// The data bytes of a tile.
    pub(crate) size: u64,
    pub(crate) extent: i64,
    pub(crate) true_lower_bound: i64,
    /// Of two tiles.
    pub(crate) stats: PieceStats,
    /// The largest power of two that divides the starts and lengths of all pieces of two tiles, if
    /// these are evenly spaced; otherwise 1.
    pub(crate) alignment: u64,
    pub(crate) is_dense: bool,
    /// Whether the pieces ascend without overlap.
    pub(crate) is_increasing: bool,
}

impl Outline {
    const WORDS: usize = 7;
    pub(crate) const BYTES: usize = Self::WORDS * size_of::<u64>() + 1;

    const DENSE: u8 = 1;
    const INCREASING: u8 = 2;

    pub(crate) fn new(layout: &Layout) -> Outline {
        let two_tiles = 0..layout.size().saturating_mul(2);
        let stats = layout.piece_stats(two_tiles.clone());
        let first = layout.runs(two_tiles).next();
        let alignment = first.filter(|run| run.count == stats.pieces).map(|run| {
            let numbers = run.offset.unsigned_abs() | run.len | run.stride.unsigned_abs();
            1 << numbers.trailing_zeros().min(u64::BITS - 1)
        });
        Outline {
            size: layout.size(),
            extent: layout.extent(),
            true_lower_bound: layout.true_lower_bound(),
            stats,
            alignment: alignment.unwrap_or(1),
            is_dense: layout.is_dense(),
            is_increasing: layout.order() == Monotonicity::Increasing,
        }
    }

    pub(crate) fn to_wire(self) -> [u8; Self::BYTES] {
        let words = [
            self.size,
            self.extent.cast_unsigned(),
            self.true_lower_bound.cast_unsigned(),
            self.stats.pieces,
            self.stats.bytes,
            self.stats.span,
            self.alignment,
        ];
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let mut wire = [0; Self::BYTES];
        let (places, last) = wire.as_chunks_mut::<8>();
        for (place, word) in places.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        last[0] = flag(self.is_dense, Self::DENSE) | flag(self.is_increasing, Self::INCREASING);
        wire
    }

    pub(crate) fn from_wire(wire: &[u8; Self::BYTES]) -> Outline {
        let (places, flags) = wire.as_chunks::<8>();
        let word = |index: usize| u64::from_le_bytes(places[index]);
        Outline {
            size: word(0),
            extent: word(1).cast_signed(),
            true_lower_bound: word(2).cast_signed(),
            stats: PieceStats {
                pieces: word(3),
                bytes: word(4),
                span: word(5),
            },
            alignment: word(6),
            is_dense: flags[0] & Self::DENSE != 0,
            is_increasing: flags[0] & Self::INCREASING != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use pario_layout::{Basic, Datatype};

    use super::*;

    fn blocks(blocks: &[(u64, i64)], extent: i64) -> Layout {
        let byte = Datatype::basic(Basic::Byte);
        let placed = Datatype::hindexed(blocks, &byte).unwrap();
        let tile = Datatype::resized(&placed, 0, extent).unwrap();
        tile.layout().clone()
    }

    #[test]
    fn layouts_are_decoded_when_they_are_needed_and_once() {
        let layout = blocks(&[(3, 5), (4, 10), (1, 40)], 64);
        let (wire, hash) = (layout.to_wire(), layout.content_hash());
        let shape = Shape::received(hash, Outline::new(&layout), &wire).unwrap();
        assert!(shape.layout.layout.get().is_none());
        let clone = shape.clone();
        assert_eq!(shape.layout().unwrap(), &layout);
        assert!(clone.layout.layout.get().is_some());
        assert_eq!(clone.outline(), Shape::known(&layout, hash).outline());
    }

    #[test]
    fn damaged_layouts_are_refused() {
        let layout = blocks(&[(3, 5), (4, 10)], 64);
        let (mut wire, outline) = (layout.to_wire(), Outline::new(&layout));
        let hash = layout.content_hash();
        *wire.last_mut().unwrap() ^= 1;
        assert!(Shape::received(hash, outline, &wire).is_none());
        // Nobody sends this; the error is that of the call, not a panic.
        let nonsense = Shape::received(Layout::hash_of_wire(b"x"), outline, b"x").unwrap();
        assert_eq!(nonsense.layout().unwrap_err().kind(), ErrorKind::Io);
    }

    #[test]
    fn outlines_describe_two_tiles_and_survive_the_wire() {
        let even = Outline::new(&blocks(&[(4096, 8192)], 16384));
        assert_eq!((even.stats.pieces, even.stats.bytes), (2, 8192));
        assert_eq!((even.size, even.true_lower_bound), (4096, 8192));
        assert_eq!(even.alignment, 4096);
        assert!(even.is_increasing && !even.is_dense);
        let uneven = Outline::new(&blocks(&[(4096, 0), (4096, 8192), (4096, 24576)], 65536));
        assert_eq!((uneven.stats.pieces, uneven.alignment), (6, 1));
        let dense = Outline::new(&blocks(&[(64, 0)], 64));
        assert!(dense.is_dense);
        let empty = Outline::new(&blocks(&[], 0));
        assert_eq!((empty.size, empty.stats.pieces), (0, 0));
        let backward = Outline::new(&blocks(&[(8, 16), (8, 0)], -32));
        assert!(!backward.is_increasing);
        for outline in [even, uneven, dense, empty, backward] {
            assert_eq!(Outline::from_wire(&outline.to_wire()), outline);
        }
    }
}
