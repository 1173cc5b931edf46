//! The normalised tree of a layout, independent of its position.
//!
//! Offsets in a shape are relative to its first data byte, so equal patterns are equal shapes
//! wherever they lie. Constructors normalise and maintain these invariants:
//!
//! - there is at least one data byte, the first is at offset 0, and the size fits in 63 bits;
//! - every offset in `low..=high` fits in an `i64`, so walking one shape cannot overflow;
//! - a `Repeat` has two copies or more and cannot be written as a `Dense` or a flatter `Repeat`;
//! - irregular kinds have two entries or more that are neither equally spaced copies of one shape
//!   nor dense pieces that touch;
//! - the nesting depth is at most [`MAX_DEPTH`](crate::MAX_DEPTH).

mod blocks;
mod build;
mod lookup;
mod search_index;

use std::collections::HashSet;
use std::sync::Arc;

pub(crate) use blocks::BlockList;
pub(crate) use build::{offset, sequence};
pub(crate) use lookup::{Entry, first_reaching, pieces_of_copies};
pub(crate) use search_index::SearchIndex;

/// A pattern of data bytes, in data order.
#[derive(Clone, Debug)]
pub(crate) struct Shape(Arc<Node>);

/// A shape and the offset of its first data byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) at: i64,
    pub(crate) shape: Shape,
}

/// A shape and its precomputed properties.
#[derive(Debug)]
pub(crate) struct Node {
    /// Number of data bytes.
    pub(crate) size: u64,
    /// Lowest offset, zero or less.
    pub(crate) low: i64,
    /// End of the highest byte.
    pub(crate) high: i64,
    /// End of the last byte in data order.
    pub(crate) tail: i64,
    /// Number of contiguous pieces. Pieces that touch across two parts of a `Copies` or
    /// `Sequence` count as two.
    pub(crate) pieces: u64,
    pub(crate) depth: u16,
    /// Each data byte lies after the previous one.
    pub(crate) increasing: bool,
    pub(crate) kind: Kind,
}

#[derive(Debug)]
pub(crate) enum Kind {
    /// `size` contiguous bytes.
    Dense,
    /// `count` copies, `stride` apart.
    Repeat {
        count: u64,
        stride: i64,
        child: Shape,
    },
    /// One shape at irregular offsets.
    Copies {
        offsets: SearchIndex<i64>,
        child: Shape,
        peaks: Peaks,
    },
    /// Dense pieces of different lengths; `starts` counts the data bytes before each.
    Blocks {
        offsets: SearchIndex<i64>,
        starts: SearchIndex<u64>,
        peaks: Peaks,
    },
    /// Different shapes.
    Sequence { parts: Box<[Part]>, peaks: Peaks },
}

/// One member of a `Sequence`.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) offset: i64,
    /// Number of data bytes before this part.
    pub(crate) start: u64,
    /// Number of pieces before this part.
    pub(crate) first_piece: u64,
    pub(crate) shape: Shape,
}

/// The highest end so far, for irregular kinds whose ends do not rise from entry to entry.
/// Finding the first entry that reaches past an offset is then a binary search for them too.
pub(crate) type Peaks = Option<SearchIndex<i64>>;

impl std::ops::Deref for Shape {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.0
    }
}

impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || same(self, other, &mut HashSet::new())
    }
}

impl Eq for Shape {}

/// Whether two shapes are equal. `proven` holds pairs of sequences known to be equal, since a
/// shape may occur many times at each of many levels.
fn same(one: &Shape, other: &Shape, proven: &mut HashSet<(usize, usize)>) -> bool {
    if Arc::ptr_eq(&one.0, &other.0) {
        return true;
    }
    let outline = |shape: &Shape| (shape.size, shape.low, shape.high, shape.tail, shape.depth);
    if outline(one) != outline(other) || one.entries() != other.entries() {
        return false;
    }
    match (&one.kind, &other.kind) {
        (Kind::Dense, Kind::Dense) => true,
        (
            Kind::Repeat { stride, child, .. },
            Kind::Repeat {
                stride: other_stride,
                child: other_child,
                ..
            },
        ) => stride == other_stride && same(child, other_child, proven),
        (
            Kind::Copies { offsets, child, .. },
            Kind::Copies {
                offsets: other_offsets,
                child: other_child,
                ..
            },
        ) => offsets == other_offsets && same(child, other_child, proven),
        (
            Kind::Blocks {
                offsets, starts, ..
            },
            Kind::Blocks {
                offsets: other_offsets,
                starts: other_starts,
                ..
            },
        ) => offsets == other_offsets && starts == other_starts,
        (
            Kind::Sequence { parts, .. },
            Kind::Sequence {
                parts: other_parts, ..
            },
        ) => {
            let pair = (one.address(), other.address());
            proven.contains(&pair)
                || (parts.iter().zip(other_parts).all(|(part, other)| {
                    part.offset == other.offset && same(&part.shape, &other.shape, proven)
                }) && proven.insert(pair))
        }
        _ => false,
    }
}

impl Shape {
    pub(crate) fn is_dense(&self) -> bool {
        matches!(self.kind, Kind::Dense)
    }

    /// Identity of the allocation.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Heap bytes used by this shape and those below it; shared ones count once.
    pub(crate) fn heap_bytes(&self, seen: &mut HashSet<usize>) -> usize {
        if !seen.insert(self.address()) {
            return 0;
        }
        // An `Arc` stores two counters before the value.
        let own = size_of::<Node>() + 2 * size_of::<usize>();
        let peak_bytes = |peaks: &Peaks| peaks.as_ref().map_or(0, SearchIndex::heap_bytes);
        own + match &self.kind {
            Kind::Dense => 0,
            Kind::Repeat { child, .. } => child.heap_bytes(seen),
            Kind::Copies {
                offsets,
                child,
                peaks,
            } => offsets.heap_bytes() + peak_bytes(peaks) + child.heap_bytes(seen),
            Kind::Blocks {
                offsets,
                starts,
                peaks,
            } => offsets.heap_bytes() + starts.heap_bytes() + peak_bytes(peaks),
            Kind::Sequence { parts, peaks } => {
                let below: usize = parts.iter().map(|part| part.shape.heap_bytes(seen)).sum();
                size_of_val(&**parts) + peak_bytes(peaks) + below
            }
        }
    }
}
