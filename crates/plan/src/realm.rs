//! Realms: the part of the file that one aggregator owns.

use std::ops::Range;

use pario_layout::{Layout, Monotonicity};
use smallvec::SmallVec;

/// A tiled layout, clipped to a range of the file. Realms of one call do not
/// overlap, and together they hold every byte that some rank moves.
#[derive(Clone, Debug)]
pub struct Realm {
    displacement: u64,
    layout: Layout,
    file: Range<u64>,
    /// Data bytes of the tiling that lie within `file`.
    data: Range<u64>,
}

impl Realm {
    /// All bytes of a range.
    pub fn contiguous(file: Range<u64>) -> Realm {
        let data = file.clone();
        Realm {
            displacement: 0,
            layout: Layout::dense(1),
            file,
            data,
        }
    }

    /// The bytes that `layout`, tiled from `displacement` on, shows within a
    /// range of the file. The layout must increase and have data.
    pub fn tiled(displacement: u64, layout: Layout, file: Range<u64>) -> Realm {
        assert!(
            layout.size() > 0 && layout.order() == Monotonicity::Increasing,
            "a realm ascends"
        );
        let below = |byte: u64| match byte.checked_sub(displacement) {
            None => 0,
            Some(reach) => layout.bytes_below(i64::try_from(reach).unwrap_or(i64::MAX)),
        };
        let data = below(file.start)..below(file.end).max(below(file.start));
        Realm {
            displacement,
            layout,
            file,
            data,
        }
    }

    /// An aggregator that owns nothing in this call.
    pub fn nothing() -> Realm {
        Realm::contiguous(0..0)
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> u64 {
        self.data.end - self.data.start
    }

    /// The range it is clipped to.
    pub fn file(&self) -> Range<u64> {
        self.file.clone()
    }

    /// Whether it is one stretch of the file.
    pub fn is_contiguous(&self) -> bool {
        self.layout.is_dense()
    }

    /// The first byte of the tiling, the data of a tile and the distance to
    /// the next; `None` for one stretch of the file.
    pub(crate) fn tile(&self) -> Option<(u64, u64, u64)> {
        let distance = self.layout.extent().unsigned_abs();
        (!self.is_contiguous()).then(|| (self.displacement, self.layout.size(), distance))
    }

    /// Whether a byte of the file belongs to it.
    pub fn owns(&self, file_byte: u64) -> bool {
        self.file.contains(&file_byte) && self.below(file_byte + 1) > self.below(file_byte)
    }

    fn below(&self, file_byte: u64) -> u64 {
        match file_byte.checked_sub(self.displacement) {
            None => 0,
            Some(reach) => self
                .layout
                .bytes_below(i64::try_from(reach).unwrap_or(i64::MAX)),
        }
    }

    /// Its windows: data ranges of the tiling cut at multiples of
    /// `window_bytes`, so that windows of successive calls meet the same
    /// boundaries.
    pub fn windows(&self, window_bytes: u64) -> u64 {
        if self.data.is_empty() {
            return 0;
        }
        self.data.end.div_ceil(window_bytes) - self.data.start / window_bytes
    }

    /// The first of them that ends past a byte of the file, from that byte's
    /// boundary on; `None` past the end.
    pub fn window_at(&self, file_byte: u64, window_bytes: u64) -> Option<Window> {
        let data = self.below(file_byte).max(self.data.start);
        let number = data / window_bytes;
        (data < self.data.end)
            .then(|| self.window(number - self.data.start / window_bytes, window_bytes))
    }

    /// One of them.
    pub fn window(&self, index: u64, window_bytes: u64) -> Window {
        let number = self.data.start / window_bytes + index;
        let start = (number * window_bytes).max(self.data.start);
        let end = ((number + 1) * window_bytes).min(self.data.end);
        let mut extents = SmallVec::new();
        for run in self.layout.runs(start..end) {
            for (offset, len) in run.pieces() {
                let at = self.displacement.wrapping_add_signed(offset);
                extents.push(at..at + len);
            }
        }
        Window { extents }
    }
}

/// The piece of a realm that one round moves: ascending stretches of the file
/// that do not touch, one after the other in the collective buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Mostly one: realms are contiguous unless they follow a file system's stripes.
    extents: SmallVec<[Range<u64>; 1]>,
}

impl Window {
    /// Its stretches of the file.
    pub fn extents(&self) -> &[Range<u64>] {
        &self.extents
    }

    /// All their bytes.
    pub fn bytes(&self) -> u64 {
        self.extents
            .iter()
            .map(|extent| extent.end - extent.start)
            .sum()
    }

    /// From its first byte to the end of its last.
    pub fn span(&self) -> Range<u64> {
        match (self.extents.first(), self.extents.last()) {
            (Some(first), Some(last)) => first.start..last.end,
            _ => 0..0,
        }
    }

    /// Its stretches, each with its place in the buffer.
    pub fn placed(&self) -> impl Iterator<Item = (u64, Range<u64>)> {
        self.extents.iter().scan(0, |at, extent| {
            let place = *at;
            *at += extent.end - extent.start;
            Some((place, extent.clone()))
        })
    }
}

#[cfg(test)]
mod tests {
    use pario_layout::{Basic, Datatype};

    use super::*;

    fn every_third_stripe(file: Range<u64>) -> Realm {
        let stripe = Datatype::contiguous(10, &Basic::Byte.into()).unwrap();
        let tile = Datatype::resized(&stripe, 0, 30).unwrap();
        Realm::tiled(10, tile.layout().clone(), file)
    }

    #[test]
    fn a_contiguous_realm_is_cut_at_multiples() {
        let realm = Realm::contiguous(5..28);
        let windows: Vec<_> = (0..realm.windows(10))
            .map(|index| realm.window(index, 10).span())
            .collect();
        assert_eq!(windows, [5..10, 10..20, 20..28]);
        assert_eq!(Realm::nothing().windows(10), 0);
    }

    #[test]
    fn a_tiled_realm_owns_its_stripes_only() {
        let realm = every_third_stripe(15..75);
        let owned: Vec<u64> = (0..100).filter(|byte| realm.owns(*byte)).collect();
        let expected: Vec<u64> = (15..20).chain(40..50).chain(70..75).collect();
        assert_eq!(owned, expected);
        assert_eq!(realm.bytes(), 20);
        assert_eq!(realm.windows(12), 3);
        assert_eq!(realm.window(0, 12).extents(), [15..20, 40..42]);
        assert_eq!(realm.window(1, 12).extents(), [42..50, 70..74]);
        assert_eq!(realm.window(2, 12).extents().len(), 1);
        assert_eq!(realm.window(2, 12).span(), 74..75);
        let placed: Vec<_> = realm.window(1, 12).placed().collect();
        assert_eq!(placed, [(0, 42..50), (8, 70..74)]);
    }
}
