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
    /// Data bytes of the tiling within `file`.
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

    /// The bytes of `layout`, tiled from `displacement`, within a range of the
    /// file. The layout must be increasing and have data.
    pub fn tiled(displacement: u64, layout: Layout, file: Range<u64>) -> Realm {
        assert!(
            layout.size() > 0 && layout.order() == Monotonicity::Increasing,
            "a realm's layout must be increasing"
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

    /// An empty realm.
    pub fn empty() -> Realm {
        Realm::contiguous(0..0)
    }

    /// Number of bytes.
    pub fn bytes(&self) -> u64 {
        self.data.end - self.data.start
    }

    /// The file range that the realm is clipped to.
    pub fn file(&self) -> Range<u64> {
        self.file.clone()
    }

    /// Whether the realm is one contiguous range.
    pub fn is_contiguous(&self) -> bool {
        self.layout.is_dense()
    }

    /// The first byte of the tiling, the data per tile and the distance between
    /// tiles; `None` if contiguous.
    pub(crate) fn tile(&self) -> Option<(u64, u64, u64)> {
        let distance = self.layout.extent().unsigned_abs();
        (!self.is_contiguous()).then(|| (self.displacement, self.layout.size(), distance))
    }

    /// Whether a byte of the file belongs to the realm.
    pub fn owns(&self, file_byte: u64) -> bool {
        self.file.contains(&file_byte) && self.below(file_byte + 1) > self.below(file_byte)
    }

    /// How many of its bytes lie below a byte of the file.
    pub fn bytes_below(&self, file_byte: u64) -> u64 {
        let below = match file_byte {
            byte if byte <= self.file.start => self.data.start,
            byte if byte >= self.file.end => self.data.end,
            byte => self.below(byte),
        };
        below - self.data.start
    }

    /// The byte of the file where one of its bytes lies, counted from 0.
    pub fn offset_of(&self, index: u64) -> u64 {
        debug_assert!(index < self.bytes());
        let offset = self.layout.offset_of(self.data.start + index);
        let offset = offset.expect("a realm reaches no further than its range");
        self.displacement.wrapping_add_signed(offset)
    }

    /// Its stretches of the file within a range.
    pub fn extents_in(&self, file: Range<u64>) -> Vec<Range<u64>> {
        let start = self.data.start + self.bytes_below(file.start);
        let end = self.data.start + self.bytes_below(file.end);
        match start < end {
            true => self.extents(start..end).into_vec(),
            false => Vec::new(),
        }
    }

    /// The stretches of data bytes of its tiling.
    fn extents(&self, data: Range<u64>) -> SmallVec<[Range<u64>; 1]> {
        let mut extents = SmallVec::new();
        for run in self.layout.runs(data) {
            for (offset, len) in run.pieces() {
                let at = self.displacement.wrapping_add_signed(offset);
                extents.push(at..at + len);
            }
        }
        extents
    }

    fn below(&self, file_byte: u64) -> u64 {
        match file_byte.checked_sub(self.displacement) {
            None => 0,
            Some(reach) => self
                .layout
                .bytes_below(i64::try_from(reach).unwrap_or(i64::MAX)),
        }
    }

    /// Number of windows: data ranges of the tiling, cut at multiples of
    /// `window_bytes` so that windows of successive calls have the same
    /// boundaries.
    pub fn windows(&self, window_bytes: u64) -> u64 {
        if self.data.is_empty() {
            return 0;
        }
        self.data.end.div_ceil(window_bytes) - self.data.start / window_bytes
    }

    /// The window that contains the first byte of the realm at or past
    /// `file_byte`; `None` past the end.
    pub fn window_at(&self, file_byte: u64, window_bytes: u64) -> Option<Window> {
        let data = self.below(file_byte).max(self.data.start);
        let number = data / window_bytes;
        (data < self.data.end)
            .then(|| self.window(number - self.data.start / window_bytes, window_bytes))
    }

    /// The window with this index.
    pub fn window(&self, index: u64, window_bytes: u64) -> Window {
        let number = self.data.start / window_bytes + index;
        let start = (number * window_bytes).max(self.data.start);
        let end = ((number + 1) * window_bytes).min(self.data.end);
        Window {
            extents: self.extents(start..end),
        }
    }
}

/// The part of a realm that is moved in one round: ascending, non-adjacent
/// ranges of the file, stored consecutively in the collective buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Mostly one: realms are contiguous unless they follow a file system's stripes.
    extents: SmallVec<[Range<u64>; 1]>,
}

impl Window {
    /// A window of ascending, non-adjacent ranges of the file.
    pub fn of(extents: Vec<Range<u64>>) -> Window {
        debug_assert!(extents.is_sorted_by(|a, b| a.end < b.start));
        Window {
            extents: extents.into(),
        }
    }

    /// The ranges of the file.
    pub fn extents(&self) -> &[Range<u64>] {
        &self.extents
    }

    /// Number of bytes in all ranges.
    pub fn bytes(&self) -> u64 {
        self.extents
            .iter()
            .map(|extent| extent.end - extent.start)
            .sum()
    }

    /// From the first byte to the end of the last.
    pub fn span(&self) -> Range<u64> {
        match (self.extents.first(), self.extents.last()) {
            (Some(first), Some(last)) => first.start..last.end,
            _ => 0..0,
        }
    }

    /// The ranges of the file, each with its offset in the buffer.
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
    fn windows_of_a_contiguous_realm_are_aligned() {
        let realm = Realm::contiguous(5..28);
        let windows: Vec<_> = (0..realm.windows(10))
            .map(|index| realm.window(index, 10).span())
            .collect();
        assert_eq!(windows, [5..10, 10..20, 20..28]);
        assert_eq!(Realm::empty().windows(10), 0);
    }

    #[test]
    fn a_tiled_realm_owns_only_its_stripes() {
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
        assert_eq!(realm.extents_in(45..72), [45..50, 70..72]);
        assert!(realm.extents_in(50..70).is_empty());
        for (index, byte) in (0..).zip(&owned) {
            assert_eq!(realm.offset_of(index), *byte);
            assert_eq!(realm.bytes_below(*byte), index);
        }
        assert_eq!(realm.bytes_below(u64::MAX), 20);
        let placed: Vec<_> = realm.window(1, 12).placed().collect();
        assert_eq!(placed, [(0, 42..50), (8, 70..74)]);
    }
}
