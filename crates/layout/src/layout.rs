//! Layouts: a shape, its position and its tiling.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::TypeError;
use crate::runs::{RawRuns, Runs};
use crate::shape::{Kind, Placed, Shape, first_reaching, pieces_of_copies};

/// The positions of data bytes: the normalised form of a datatype.
///
/// A layout describes one tile and repeats it forever at multiples of its extent, as MPI does with
/// the datatype of a buffer or a filetype. Positions in the data, such as the argument of
/// [`offset_of`](Self::offset_of), count over all tiles and may exceed [`size`](Self::size).
/// Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Layout(Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    /// One tile; `None` if it has no data.
    pub(crate) tile: Option<Placed>,
    lower_bound: i64,
    extent: i64,
    /// The endless tiling.
    pub(crate) row: Option<Row>,
}

/// The tiling as an endless row of copies. A tile that is itself a row with the same stride is
/// merged into it.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) at: i64,
    pub(crate) step: i64,
    pub(crate) shape: Shape,
    /// Number of data bytes whose offsets are known to fit in an `i64`.
    pub(crate) limit: u64,
}

/// Whether offsets increase in data order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Monotonicity {
    /// Each data byte lies after the previous one.
    Increasing,
    /// Some data byte lies at or before the previous one: pieces overlap or go backwards.
    Unordered,
}

/// Whether two data bytes share an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// No two do.
    Absent,
    /// Some do.
    Present,
    /// Unknown: the layout is too irregular to decide at bounded cost.
    Unproven,
}

/// Summary of a range of data bytes, for choosing an access method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceStats {
    /// Number of contiguous pieces; an upper bound where parts of an irregular type touch.
    pub pieces: u64,
    /// Number of data bytes.
    pub bytes: u64,
    /// Distance from the lowest byte to the end of the highest, as given by
    /// [`Layout::run_bounds`].
    pub span: u64,
}

impl Row {
    fn new(tile: &Placed, extent: i64) -> Self {
        let mut row = (extent, &tile.shape);
        if let Kind::Repeat {
            count,
            stride,
            child,
        } = &tile.shape.kind
            && i128::from(*count) * i128::from(*stride) == i128::from(extent)
        {
            row = (*stride, child);
        }
        let (step, shape) = row;
        let space = match step {
            0 => None,
            1.. => Some(i128::from(i64::MAX) - i128::from(tile.at) - i128::from(shape.high)),
            _ => Some(i128::from(tile.at) + i128::from(shape.low) - i128::from(i64::MIN)),
        };
        let copies = space.map(|space| space / i128::from(step).abs() + 1);
        let copies = copies
            .and_then(|copies| u64::try_from(copies).ok())
            .unwrap_or(u64::MAX);
        let limit = copies.saturating_mul(shape.size);
        Self {
            at: tile.at,
            step,
            shape: shape.clone(),
            limit,
        }
    }

    /// Offset of copy `index`, which must be below the limit.
    pub(crate) fn base(&self, index: u64) -> i64 {
        self.at
            .wrapping_add(self.step.wrapping_mul(index.cast_signed()))
    }

    /// Whether all copies together form one dense run.
    pub(crate) fn is_gapless(&self) -> bool {
        self.shape.is_dense() && self.step == self.shape.high
    }
}

impl Layout {
    /// A layout with this tile and these bounds.
    pub(crate) fn new(
        tile: Option<Placed>,
        lower_bound: i64,
        extent: i64,
    ) -> Result<Self, TypeError> {
        lower_bound
            .checked_add(extent)
            .ok_or_else(|| TypeError::overflow("the upper bound"))?;
        if let Some(Placed { at, shape }) = &tile {
            let ends = [at.checked_add(shape.low), at.checked_add(shape.high)];
            if ends.contains(&None) {
                return Err(TypeError::overflow("the true extent"));
            }
        }
        let row = tile.as_ref().map(|tile| Row::new(tile, extent));
        Ok(Self(Arc::new(Inner {
            tile,
            lower_bound,
            extent,
            row,
        })))
    }

    /// The layout of `len` contiguous bytes, which tile without gaps.
    ///
    /// # Panics
    /// If `len` does not fit in 63 bits.
    pub fn dense(len: u64) -> Self {
        static BYTE: OnceLock<Layout> = OnceLock::new();
        let dense = || Self::new_dense(len).expect("a dense layout is at most 2^63 - 1 bytes long");
        match len {
            // Views and realms without gaps have it.
            1 => BYTE.get_or_init(dense).clone(),
            _ => dense(),
        }
    }

    fn new_dense(len: u64) -> Result<Self, TypeError> {
        let shape = (len > 0).then(|| Shape::dense(len)).transpose()?;
        let extent = i64::try_from(len).map_err(|_| TypeError::overflow("the size"))?;
        Self::new(shape.map(|shape| Placed { at: 0, shape }), 0, extent)
    }

    pub(crate) fn tile(&self) -> Option<&Placed> {
        self.0.tile.as_ref()
    }

    pub(crate) fn row(&self) -> Option<&Row> {
        self.0.row.as_ref()
    }

    /// Number of data bytes in one tile.
    pub fn size(&self) -> u64 {
        self.tile().map_or(0, |tile| tile.shape.size)
    }

    /// Distance between consecutive tiles.
    pub fn extent(&self) -> i64 {
        self.0.extent
    }

    /// The lower bound of a tile; resizing may have moved it away from the data.
    pub fn lower_bound(&self) -> i64 {
        self.0.lower_bound
    }

    /// The upper bound of a tile: lower bound plus extent.
    pub fn upper_bound(&self) -> i64 {
        self.0.lower_bound + self.0.extent
    }

    /// Offset of the lowest data byte in the first tile; zero if there are none.
    pub fn true_lower_bound(&self) -> i64 {
        self.tile().map_or(0, |tile| tile.at + tile.shape.low)
    }

    /// End of the highest data byte in the first tile; zero if there are none.
    pub fn true_upper_bound(&self) -> i64 {
        self.tile().map_or(0, |tile| tile.at + tile.shape.high)
    }

    /// Whether the tiling is one gapless run that starts at offset zero.
    pub fn is_dense(&self) -> bool {
        self.0
            .row
            .as_ref()
            .is_some_and(|row| row.is_gapless() && row.at == 0)
    }

    /// Order of the bytes in one tile.
    pub fn tile_order(&self) -> Monotonicity {
        match self.tile() {
            Some(tile) if !tile.shape.increasing => Monotonicity::Unordered,
            _ => Monotonicity::Increasing,
        }
    }

    /// Order of the bytes in the endless tiling.
    pub fn order(&self) -> Monotonicity {
        match self.tile() {
            Some(tile) if !tile.shape.increasing || self.0.extent < tile.shape.high => {
                Monotonicity::Unordered
            }
            _ => Monotonicity::Increasing,
        }
    }

    /// Offset of data byte `k` of the tiling; `None` if there is no data or if that byte's tile
    /// does not fit in 63 bits.
    pub fn offset_of(&self, k: u64) -> Option<i64> {
        let row = self.0.row.as_ref().filter(|row| k < row.limit)?;
        let index = k / row.shape.size;
        Some(row.base(index) + row.shape.offset_of(k % row.shape.size))
    }

    /// Number of data bytes of the tiling before the first at or past `offset`.
    ///
    /// For an [increasing](Monotonicity::Increasing) tiling, this is the number of data bytes
    /// below `offset`; otherwise it is the length of the prefix that stays below it. `u64::MAX` if
    /// no tile reaches `offset`, zero if there is no data.
    pub fn bytes_below(&self, offset: i64) -> u64 {
        let Some(row) = &self.0.row else {
            return 0;
        };
        let distance = i128::from(offset) - i128::from(row.at);
        let Some(index) = first_reaching(distance, row.shape.high, row.step) else {
            return u64::MAX;
        };
        let rest = distance - i128::from(index) * i128::from(row.step);
        let rest = rest.clamp(0, i64::MAX.into()) as i64;
        index
            .saturating_mul(row.shape.size)
            .saturating_add(row.shape.bytes_before(rest))
    }

    /// The strided runs of a range of data bytes, in data order. Adjacent pieces are joined,
    /// across tiles too, so a dense tiling is always one run.
    ///
    /// The runs end early at a tile whose offsets do not fit in 63 bits, where
    /// [`offset_of`](Self::offset_of) and [`run_bounds`](Self::run_bounds) are `None`.
    pub fn runs(&self, data: Range<u64>) -> Runs<'_> {
        Runs::new(self.raw_runs(data))
    }

    pub(crate) fn raw_runs(&self, data: Range<u64>) -> RawRuns<'_> {
        RawRuns::new(self.0.row.as_ref(), data)
    }

    /// The lowest offset and the end of the highest byte in a range of data bytes.
    ///
    /// Exact for increasing and for regular layouts, a conservative bound for long ranges of
    /// irregular layouts that do not increase. `None` if the range is empty, if there is no data,
    /// or if an offset does not fit in 63 bits.
    pub fn run_bounds(&self, data: Range<u64>) -> Option<(i64, i64)> {
        let row = self.0.row.as_ref()?;
        if data.is_empty() || data.end > row.limit {
            return None;
        }
        if row.is_gapless() {
            let at = |byte: u64| row.at.wrapping_add(byte.cast_signed());
            return Some((at(data.start), at(data.end)));
        }
        let size = row.shape.size;
        let (first, last) = (data.start / size, (data.end - 1) / size);
        let (head, tail) = (data.start - first * size, data.end - last * size);
        let part = |index: u64, range: Range<u64>| {
            let (low, high) = row.shape.bounds(range);
            (row.base(index) + low, row.base(index) + high)
        };
        if first == last {
            return Some(part(first, head..tail));
        }
        let join = |a: (i64, i64), b: (i64, i64)| (a.0.min(b.0), a.1.max(b.1));
        let mut bounds = join(part(first, head..size), part(last, 0..tail));
        if last - first > 1 {
            bounds = join(bounds, part(first + 1, 0..size));
            bounds = join(bounds, part(last - 1, 0..size));
        }
        Some(bounds)
    }

    /// Pieces, bytes and span of a range of data bytes, computed without walking it. All zero
    /// where [`run_bounds`](Self::run_bounds) is `None`.
    pub fn piece_stats(&self, data: Range<u64>) -> PieceStats {
        let bounds = self.run_bounds(data.clone());
        let Some(((low, high), row)) = bounds.zip(self.0.row.as_ref()) else {
            return PieceStats {
                pieces: 0,
                bytes: 0,
                span: 0,
            };
        };
        let begun = |k: u64| {
            let (index, rest) = (k / row.shape.size, k % row.shape.size);
            let joined = row.shape.tail == row.step && index > 0 && rest > 0;
            let whole = pieces_of_copies(&row.shape, row.step, index);
            whole + row.shape.pieces_before(rest) - u64::from(joined)
        };
        PieceStats {
            pieces: begun(data.end) - begun(data.start + 1) + 1,
            bytes: data.end - data.start,
            span: high.abs_diff(low),
        }
    }

    /// Heap memory used by this layout, in bytes.
    pub fn heap_bytes(&self) -> usize {
        let mut seen = HashSet::new();
        let tile = self
            .tile()
            .map_or(0, |tile| tile.shape.heap_bytes(&mut seen));
        // An `Arc` stores two counters before the value.
        size_of::<Inner>() + 2 * size_of::<usize>() + tile
    }
}

impl PartialEq for Layout {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.0.lower_bound == other.0.lower_bound
                && self.0.extent == other.0.extent
                && self.0.tile == other.0.tile)
    }
}

impl Eq for Layout {}
