//! Normalising constructors.

use std::sync::Arc;

use super::{BlockList, Kind, Node, Part, Peaks, Placed, SearchIndex, Shape};
use crate::{MAX_DEPTH, TypeError};

/// Parts of up to this many pieces are flattened into one list of blocks, so that small
/// structures have one form however they were nested.
const FLATTEN_PIECES: u64 = 8;

pub(crate) fn offset(value: i128) -> Result<i64, TypeError> {
    i64::try_from(value).map_err(|_| TypeError::overflow("a displacement"))
}

fn data_size(value: u128) -> Result<u64, TypeError> {
    let fits = i64::try_from(value).map_err(|_| TypeError::overflow("the size"))?;
    Ok(fits.unsigned_abs())
}

fn next_depth(depth: u16) -> Result<u16, TypeError> {
    if depth >= MAX_DEPTH {
        return Err(TypeError::depth());
    }
    Ok(depth + 1)
}

impl Node {
    pub(super) fn share(self) -> Shape {
        Shape(Arc::new(self))
    }
}

impl Shape {
    /// `len` bytes in a row, at least one.
    pub(crate) fn dense(len: u64) -> Result<Shape, TypeError> {
        debug_assert!(len > 0, "an empty layout has no shape");
        let high = i64::try_from(len).map_err(|_| TypeError::overflow("the size"))?;
        let node = Node {
            size: len,
            low: 0,
            high,
            tail: high,
            pieces: 1,
            depth: 1,
            increasing: true,
            kind: Kind::Dense,
        };
        Ok(node.share())
    }

    /// `count` copies, at least one, `stride` apart.
    pub(crate) fn repeat(count: u64, stride: i64, child: &Shape) -> Result<Shape, TypeError> {
        debug_assert!(count > 0, "an empty layout has no shape");
        if count == 1 {
            return Ok(child.clone());
        }
        let size = data_size(u128::from(count) * u128::from(child.size))?;
        if child.is_dense() && stride == child.high {
            return Shape::dense(size);
        }
        if let Kind::Repeat {
            count: inner,
            stride: step,
            child: grandchild,
        } = &child.kind
            && i128::from(*inner) * i128::from(*step) == i128::from(stride)
        {
            let copies = inner
                .checked_mul(count)
                .ok_or_else(|| TypeError::overflow("the count"))?;
            return Shape::repeat(copies, *step, grandchild);
        }
        let last = i128::from(count - 1) * i128::from(stride);
        let joints = if child.tail == stride { count - 1 } else { 0 };
        let node = Node {
            size,
            low: offset(i128::from(child.low) + last.min(0))?,
            high: offset(i128::from(child.high) + last.max(0))?,
            tail: offset(i128::from(child.tail) + last)?,
            pieces: count * child.pieces - joints,
            depth: next_depth(child.depth)?,
            increasing: child.increasing && stride >= child.high,
            kind: Kind::Repeat {
                count,
                stride,
                child: child.clone(),
            },
        };
        Ok(node.share())
    }

    /// Copies of one shape, at least two, that are not adjacent if it is dense. Offsets are
    /// relative to the first.
    pub(super) fn copies(offsets: Vec<i64>, child: &Shape) -> Result<Shape, TypeError> {
        if let Some(stride) = common_stride(&offsets) {
            return Shape::repeat(offsets.len() as u64, stride, child);
        }
        let count = offsets.len() as u64;
        let size = data_size(u128::from(count) * u128::from(child.size))?;
        let (lowest, highest) = extremes(&offsets);
        let last = *offsets.last().expect("two copies or more");
        offset(i128::from(lowest) + i128::from(child.low))?;
        offset(i128::from(highest) + i128::from(child.high))?;
        let spaced =
            |pair: &[i64]| i128::from(pair[1]) - i128::from(pair[0]) >= i128::from(child.high);
        let increasing = child.increasing && offsets.windows(2).all(spaced);
        let to_ladder = if increasing {
            SearchIndex::sorted
        } else {
            SearchIndex::unsorted
        };
        let node = Node {
            size,
            low: lowest + child.low,
            high: highest + child.high,
            tail: offset(i128::from(last) + i128::from(child.tail))?,
            pieces: count * child.pieces,
            depth: next_depth(child.depth)?,
            increasing,
            kind: Kind::Copies {
                peaks: peaks(offsets.iter().map(|at| at + child.high)),
                offsets: to_ladder(offsets),
                child: child.clone(),
            },
        };
        Ok(node.share())
    }
}

/// The distance between neighbours if it is constant.
fn common_stride(offsets: &[i64]) -> Option<i64> {
    let stride = offsets[1].checked_sub(offsets[0])?;
    let same = |pair: &[i64]| pair[1].checked_sub(pair[0]) == Some(stride);
    offsets.windows(2).all(same).then_some(stride)
}

fn extremes(offsets: &[i64]) -> (i64, i64) {
    let fold = |(low, high): (i64, i64), &at: &i64| (low.min(at), high.max(at));
    offsets.iter().fold((i64::MAX, i64::MIN), fold)
}

/// The running maximum of `ends`; none if they never decrease.
pub(super) fn peaks(ends: impl Iterator<Item = i64> + Clone) -> Peaks {
    if ends.clone().is_sorted() {
        return None;
    }
    let mut peak = i64::MIN;
    let running = ends.map(|end| {
        peak = peak.max(end);
        peak
    });
    Some(SearchIndex::sorted(running.collect()))
}

/// Joins placed shapes in data order; `None` if there are none.
pub(crate) fn sequence(parts: Vec<Placed>) -> Result<Option<Placed>, TypeError> {
    let Some(first) = parts.first() else {
        return Ok(None);
    };
    if parts.len() == 1 {
        return Ok(parts.into_iter().next());
    }
    let at = first.at;
    let uniform = parts.iter().all(|part| part.shape == first.shape);
    let flat = |part: &Placed| part.shape.pieces <= FLATTEN_PIECES;
    if (first.shape.is_dense() || !uniform) && parts.iter().all(flat) {
        let mut list = BlockList::with_capacity(parts.len());
        for part in &parts {
            for end in [part.shape.low, part.shape.high] {
                offset(i128::from(part.at) + i128::from(end))?;
            }
            part.shape
                .for_each_piece(part.at, &mut |at, len| list.push(at, len))?;
        }
        return list.finish();
    }
    let relative = |part: &Placed| offset(i128::from(part.at) - i128::from(at));
    let shape = if uniform {
        let offsets = parts.iter().map(relative).collect::<Result<Vec<_>, _>>()?;
        Shape::copies(offsets, &first.shape)?
    } else {
        mixed(
            parts.iter().map(|part| Ok((relative(part)?, &part.shape))),
            parts.len(),
        )?
    };
    Ok(Some(Placed { at, shape }))
}

/// A `Sequence` of different shapes.
fn mixed<'a>(
    places: impl Iterator<Item = Result<(i64, &'a Shape), TypeError>>,
    count: usize,
) -> Result<Shape, TypeError> {
    let mut parts: Vec<Part> = Vec::with_capacity(count);
    let (mut size, mut pieces, mut depth) = (0_u64, 0_u64, 0_u16);
    let (mut low, mut high, mut tail) = (0_i64, i64::MIN, 0_i64);
    let mut increasing = true;
    for place in places {
        let (at, shape) = place?;
        increasing &= shape.increasing && (parts.is_empty() || at >= high);
        parts.push(Part {
            offset: at,
            start: size,
            first_piece: pieces,
            shape: shape.clone(),
        });
        size = data_size(u128::from(size) + u128::from(shape.size))?;
        pieces += shape.pieces;
        depth = depth.max(shape.depth);
        low = low.min(offset(i128::from(at) + i128::from(shape.low))?);
        high = high.max(offset(i128::from(at) + i128::from(shape.high))?);
        tail = offset(i128::from(at) + i128::from(shape.tail))?;
    }
    let ends = peaks(parts.iter().map(|part| part.offset + part.shape.high));
    let node = Node {
        size,
        low,
        high,
        tail,
        pieces,
        depth: next_depth(depth)?,
        increasing,
        kind: Kind::Sequence {
            parts: parts.into_boxed_slice(),
            peaks: ends,
        },
    };
    Ok(node.share())
}
