//! The bytes that one rank moves in a call.

use std::ops::Range;

use pario_layout::{Layout, Monotonicity, PieceStats};

/// Data bytes `first..first + len` of a view. Indices are relative to `first`.
#[derive(Clone, Debug)]
pub struct Access {
    displacement: u64,
    layout: Layout,
    first: u64,
    len: u64,
    /// From the first byte in the file to the end of the last.
    span: Range<u64>,
}

impl Access {
    /// `None` if the access extends past offset 2^63 - 1.
    pub fn new(displacement: u64, layout: Layout, first: u64, len: u64) -> Option<Access> {
        let span = if len == 0 || layout.size() == 0 {
            0..0
        } else {
            let end = first.checked_add(len)?;
            let (low, high) = layout.run_bounds(first..end)?;
            displacement.checked_add_signed(low)?..displacement.checked_add_signed(high)?
        };
        let len = if layout.size() == 0 { 0 } else { len };
        (span.end <= i64::MAX as u64).then_some(Access {
            displacement,
            layout,
            first,
            len,
            span,
        })
    }

    /// An empty access.
    pub fn empty() -> Access {
        Access {
            displacement: 0,
            layout: Layout::dense(1),
            first: 0,
            len: 0,
            span: 0..0,
        }
    }

    /// Number of data bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is nothing to move.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The view's displacement.
    pub fn displacement(&self) -> u64 {
        self.displacement
    }

    /// The view's layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The first data byte of the view.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// From the first byte in the file to the end of the last.
    pub fn span(&self) -> Range<u64> {
        self.span.clone()
    }

    /// Whether its bytes ascend in the file, as windows require.
    pub fn is_increasing(&self) -> bool {
        self.is_empty() || self.layout.order() == Monotonicity::Increasing
    }

    /// File offset of a data byte.
    pub fn offset_of(&self, index: u64) -> u64 {
        debug_assert!(index < self.len);
        let offset = self.layout.offset_of(self.first + index);
        offset
            .and_then(|offset| self.displacement.checked_add_signed(offset))
            .expect("the range of an access is checked on construction")
    }

    /// Number of data bytes below a file offset. Only for increasing accesses.
    pub fn bytes_below(&self, file_byte: u64) -> u64 {
        if file_byte <= self.span.start {
            return 0;
        }
        if file_byte >= self.span.end {
            return self.len;
        }
        let reach = i64::try_from(file_byte - self.displacement).unwrap_or(i64::MAX);
        self.layout
            .bytes_below(reach)
            .saturating_sub(self.first)
            .min(self.len)
    }

    /// The data bytes in a range of the file.
    pub fn data_in(&self, file: Range<u64>) -> Range<u64> {
        let start = self.bytes_below(file.start);
        let end = if file.end <= file.start {
            start
        } else {
            self.bytes_below(file.end)
        };
        start..end
    }

    /// The first byte of the access at or past `file_byte`.
    pub fn next_at(&self, file_byte: u64) -> Option<u64> {
        let index = self.bytes_below(file_byte);
        (index < self.len).then(|| self.offset_of(index))
    }

    /// Pieces, bytes and span.
    pub fn stats(&self) -> PieceStats {
        self.layout.piece_stats(self.first..self.first + self.len)
    }

    /// Pieces, bytes and span of the part in a range of the file. Only for
    /// increasing accesses.
    pub fn stats_in(&self, file: Range<u64>) -> PieceStats {
        let data = self.data_in(file);
        self.layout
            .piece_stats(self.first + data.start..self.first + data.end)
    }
}

#[cfg(test)]
mod tests {
    use pario_layout::{Basic, Datatype};

    use super::*;

    /// Two bytes of every five, from byte 10 of the file.
    fn striped() -> Access {
        let two = Datatype::contiguous(2, &Basic::Byte.into()).unwrap();
        let layout = Datatype::resized(&two, 0, 5).unwrap().layout().clone();
        Access::new(10, layout, 3, 6).unwrap()
    }

    #[test]
    fn look_ups_match_a_linear_walk() {
        let access = striped();
        let bytes: Vec<u64> = (0..6).map(|index| access.offset_of(index)).collect();
        assert_eq!(bytes, [16, 20, 21, 25, 26, 30]);
        assert_eq!(access.span(), 16..31);
        for byte in 0..40 {
            let below = bytes.iter().filter(|offset| **offset < byte).count() as u64;
            assert_eq!(access.bytes_below(byte), below, "{byte}");
            assert_eq!(
                access.next_at(byte),
                bytes.iter().copied().find(|offset| *offset >= byte)
            );
        }
        assert_eq!(access.data_in(20..26), 1..4);
        let backwards = Range { start: 26, end: 20 };
        assert_eq!(access.data_in(backwards), 4..4);
    }

    #[test]
    fn an_access_past_the_last_offset_is_rejected() {
        assert!(Access::new(i64::MAX as u64, Layout::dense(1), 0, 1).is_none());
        assert!(Access::new(i64::MAX as u64, Layout::dense(1), 0, 0).is_some());
    }

    #[test]
    fn a_view_without_data_is_an_empty_access() {
        assert!(Access::new(5, Layout::dense(0), 0, 100).unwrap().is_empty());
    }
}
