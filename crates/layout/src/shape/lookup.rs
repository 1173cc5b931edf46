//! Look-ups in one shape. Each descends the tree once: depth x log(entries).

use std::ops::Range;

use super::{Kind, Node, Shape};

/// Irregular shapes are scanned for exact bounds if no more than this many entries lie between
/// the ends.
const SCANNED_ENTRIES: usize = 64;

/// An entry of an inner node: its index, its position and the data bytes before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) index: u64,
    pub(crate) offset: i64,
    pub(crate) start: u64,
    /// `None` for a dense piece of `Blocks`.
    pub(crate) shape: Option<&'a Shape>,
    pub(crate) size: u64,
}

impl Entry<'_> {
    fn bounds(&self) -> (i64, i64) {
        let (low, high) = match self.shape {
            Some(shape) => (shape.low, shape.high),
            None => (0, self.size.cast_signed()),
        };
        (self.offset + low, self.offset + high)
    }
}

/// A multiple of a stride, known to lie within the bounds of a shape.
fn step(index: u64, stride: i64) -> i64 {
    // With a stride of zero, the index may be anything; otherwise the product fits.
    stride.wrapping_mul(index.cast_signed())
}

impl Node {
    /// Number of entries of an inner node; one for a dense node.
    pub(crate) fn entries(&self) -> u64 {
        match &self.kind {
            Kind::Dense => 1,
            Kind::Repeat { count, .. } => *count,
            Kind::Copies { offsets, .. } | Kind::Blocks { offsets, .. } => offsets.len() as u64,
            Kind::Sequence { parts, .. } => parts.len() as u64,
        }
    }

    /// The `index`-th entry; `None` for a dense node and past the end.
    pub(crate) fn entry(&self, index: u64) -> Option<Entry<'_>> {
        if index >= self.entries() {
            return None;
        }
        let place = index as usize;
        let entry = match &self.kind {
            Kind::Dense => return None,
            Kind::Repeat { stride, child, .. } => Entry {
                index,
                offset: step(index, *stride),
                start: index * child.size,
                shape: Some(child),
                size: child.size,
            },
            Kind::Copies { offsets, child, .. } => Entry {
                index,
                offset: offsets[place],
                start: index * child.size,
                shape: Some(child),
                size: child.size,
            },
            Kind::Blocks {
                offsets, starts, ..
            } => {
                let stop = starts.get(place + 1).copied().unwrap_or(self.size);
                let (offset, start) = (offsets[place], starts[place]);
                Entry {
                    index,
                    offset,
                    start,
                    shape: None,
                    size: stop - start,
                }
            }
            Kind::Sequence { parts, .. } => {
                let part = &parts[place];
                Entry {
                    index,
                    offset: part.offset,
                    start: part.start,
                    shape: Some(&part.shape),
                    size: part.shape.size,
                }
            }
        };
        Some(entry)
    }

    /// The entry containing data byte `k`; `None` for a dense node and past the end.
    pub(crate) fn entry_of(&self, k: u64) -> Option<Entry<'_>> {
        if k >= self.size {
            return None;
        }
        let index = match &self.kind {
            Kind::Dense => return None,
            Kind::Repeat { child, .. } | Kind::Copies { child, .. } => k / child.size,
            Kind::Blocks { starts, .. } => starts.count_up_to(k) as u64 - 1,
            Kind::Sequence { parts, .. } => {
                parts.partition_point(|part| part.start <= k) as u64 - 1
            }
        };
        self.entry(index)
    }

    /// The first entry that reaches past `x`, given that one does (`x < high`).
    fn entry_reaching(&self, x: i64) -> Option<Entry<'_>> {
        let index = match &self.kind {
            Kind::Dense => return None,
            Kind::Repeat { stride, child, .. } => {
                return self.entry(first_reaching(x.into(), child.high, *stride)?);
            }
            Kind::Copies {
                peaks: Some(peaks), ..
            }
            | Kind::Blocks {
                peaks: Some(peaks), ..
            }
            | Kind::Sequence {
                peaks: Some(peaks), ..
            } => peaks.count_up_to(x),
            Kind::Copies { offsets, .. } | Kind::Blocks { offsets, .. } if self.increasing => {
                return self.entry_from(offsets.count_up_to(x), x);
            }
            Kind::Copies { .. } | Kind::Blocks { .. } | Kind::Sequence { .. } => {
                let ends_before = |index: usize| {
                    self.entry(index as u64)
                        .is_some_and(|entry| entry.bounds().1 <= x)
                };
                partition(self.entries() as usize, ends_before)
            }
        };
        self.entry(index as u64)
    }

    /// The first entry that reaches past `x` in a rising list in which `begun` entries start at
    /// or before it: the last of those, or the next.
    fn entry_from(&self, begun: usize, x: i64) -> Option<Entry<'_>> {
        let last = begun
            .checked_sub(1)
            .and_then(|index| self.entry(index as u64));
        match last {
            Some(entry) if entry.bounds().1 > x => last,
            _ => self.entry(begun as u64),
        }
    }

    /// Offset of data byte `k`, which must be less than the size.
    pub(crate) fn offset_of(&self, mut k: u64) -> i64 {
        debug_assert!(k < self.size, "data byte past the end of a shape");
        let (mut node, mut base) = (self, 0);
        loop {
            let Some(entry) = node.entry_of(k) else {
                return base + k.cast_signed();
            };
            base += entry.offset;
            k -= entry.start;
            match entry.shape {
                Some(shape) => node = shape,
                None => return base + k.cast_signed(),
            }
        }
    }

    /// Number of data bytes before the first one at or past `x`; all of them if there is none.
    pub(crate) fn bytes_before(&self, mut x: i64) -> u64 {
        if x >= self.high {
            return self.size;
        }
        let (mut node, mut before) = (self, 0);
        // The first byte of a node is at 0, so the search continues with 0 < x < high.
        while x > 0 {
            let Some(entry) = node.entry_reaching(x) else {
                return before + x.unsigned_abs();
            };
            x -= entry.offset;
            before += entry.start;
            match entry.shape {
                Some(shape) => node = shape,
                None => return before + x.max(0).unsigned_abs(),
            }
        }
        before
    }

    /// Lowest offset and end of the highest byte in a non-empty range of data bytes. Exact if the
    /// shape is increasing or regular; a conservative bound for long ranges of irregular shapes.
    pub(crate) fn bounds(&self, data: Range<u64>) -> (i64, i64) {
        if data.start == 0 && data.end == self.size {
            return (self.low, self.high);
        }
        if self.increasing {
            return (self.offset_of(data.start), self.offset_of(data.end - 1) + 1);
        }
        let ends = self.entry_of(data.start).zip(self.entry_of(data.end - 1));
        let (first, last) = ends.expect("a dense shape is increasing");
        let part = |entry: Entry<'_>, range: Range<u64>| match entry.shape {
            Some(shape) => {
                let (low, high) = shape.bounds(range);
                (entry.offset + low, entry.offset + high)
            }
            None => {
                let at = |k: u64| entry.offset + k.cast_signed();
                (at(range.start), at(range.end))
            }
        };
        if first.index == last.index {
            return part(first, data.start - first.start..data.end - first.start);
        }
        let head = part(first, data.start - first.start..first.size);
        let tail = part(last, 0..data.end - last.start);
        let edges = join(head, tail);
        if last.index - first.index == 1 {
            return edges;
        }
        join(edges, self.middle_bounds(first.index + 1, last.index - 1))
    }

    /// Bounds of whole entries `first..=last`.
    fn middle_bounds(&self, first: u64, last: u64) -> (i64, i64) {
        let regular = matches!(self.kind, Kind::Repeat { .. });
        let entries = last - first;
        let scan = |range: &mut dyn Iterator<Item = u64>| {
            range
                .filter_map(|index| self.entry(index))
                .map(|entry| entry.bounds())
                .reduce(join)
        };
        let bounds = if regular {
            scan(&mut [first, last].into_iter())
        } else if entries < SCANNED_ENTRIES as u64 {
            scan(&mut (first..=last))
        } else {
            None
        };
        bounds.unwrap_or((self.low, self.high))
    }

    /// Number of pieces that start before data byte `k`.
    pub(crate) fn pieces_before(&self, k: u64) -> u64 {
        if k >= self.size {
            return self.pieces;
        }
        let Some(entry) = self.entry_of(k) else {
            return u64::from(k > 0);
        };
        let rest = k - entry.start;
        let inside = entry
            .shape
            .map_or(u64::from(rest > 0), |shape| shape.pieces_before(rest));
        match &self.kind {
            Kind::Dense => inside,
            Kind::Repeat { stride, child, .. } => {
                pieces_of_copies(child, *stride, entry.index) + inside
                    - u64::from(child.tail == *stride && entry.index > 0 && rest > 0)
            }
            Kind::Copies { child, .. } => entry.index * child.pieces + inside,
            Kind::Blocks { .. } => entry.index + inside,
            Kind::Sequence { parts, .. } => parts[entry.index as usize].first_piece + inside,
        }
    }

    /// Calls `each` with the offset and length of every dense piece in data order, until it
    /// fails.
    pub(crate) fn for_each_piece<E>(
        &self,
        base: i64,
        each: &mut dyn FnMut(i64, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        if matches!(self.kind, Kind::Dense) {
            return each(base, self.size);
        }
        for entry in (0..self.entries()).filter_map(|index| self.entry(index)) {
            let at = base + entry.offset;
            match entry.shape {
                Some(shape) => shape.for_each_piece(at, each)?,
                None => each(at, entry.size)?,
            }
        }
        Ok(())
    }
}

/// Number of pieces in `count` copies; adjacent pieces count once.
pub(crate) fn pieces_of_copies(child: &Node, stride: i64, count: u64) -> u64 {
    let joints = if child.tail == stride {
        count.saturating_sub(1)
    } else {
        0
    };
    count * child.pieces - joints
}

/// Index of the first copy, in an endless row `stride` apart, whose highest byte ends past `x`.
///
/// `None` if there is none, or if its index does not fit in 64 bits.
pub(crate) fn first_reaching(x: i128, high: i64, stride: i64) -> Option<u64> {
    let missing = x - i128::from(high);
    if missing < 0 {
        return Some(0);
    }
    if stride <= 0 {
        return None;
    }
    match (u64::try_from(missing), stride.unsigned_abs()) {
        (Ok(missing), stride) => (missing / stride).checked_add(1),
        (Err(_), stride) => u64::try_from(missing / i128::from(stride) + 1).ok(),
    }
}

fn join(one: (i64, i64), other: (i64, i64)) -> (i64, i64) {
    (one.0.min(other.0), one.1.max(other.1))
}

/// The first of `count` indices for which `before` is false.
fn partition(count: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
