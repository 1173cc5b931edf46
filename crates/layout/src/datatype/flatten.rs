//! From constructors to bytes.

use std::collections::HashMap;

use super::darray::Axis;
use super::{Constructor, Darray, Datatype, Dimension, Lengths, Member, Order, Unit};
use crate::shape::{BlockList, Placed, Shape, offset, sequence};
use crate::{Basic, Layout, TypeError};

/// Where the bounds of a type come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bounds {
    /// The type map is empty: no bounds, both count as zero.
    Absent,
    /// From the data.
    Natural,
    /// Set by the program: in a structure they take precedence over bounds from the data.
    Explicit,
}

/// A type in one representation.
#[derive(Clone, Debug)]
pub(super) struct Flattened {
    pub(super) layout: Layout,
    bounds: Bounds,
    /// Strictest alignment of an element.
    alignment: u64,
}

type SizeOf<'a> = &'a dyn Fn(Basic) -> u64;
type Flatten<'a> = &'a mut dyn FnMut(&Datatype) -> Result<Flattened, TypeError>;

fn wide_extent(value: i128) -> Result<i64, TypeError> {
    i64::try_from(value).map_err(|_| TypeError::overflow("the extent"))
}

/// Flattens a whole tree. Shared subtrees are flattened once.
pub(super) fn flatten_tree(root: &Datatype, size_of: SizeOf<'_>) -> Result<Flattened, TypeError> {
    fn visit(
        datatype: &Datatype,
        size_of: SizeOf<'_>,
        done: &mut HashMap<usize, Flattened>,
    ) -> Result<Flattened, TypeError> {
        if let Some(flattened) = done.get(&datatype.address()) {
            return Ok(flattened.clone());
        }
        let mut child = |of: &Datatype| visit(of, size_of, done);
        let flattened = flatten(datatype.constructor(), size_of, &mut child)?;
        done.insert(datatype.address(), flattened.clone());
        Ok(flattened)
    }
    visit(root, size_of, &mut HashMap::new())
}

/// Flattens one constructor; `child` returns the flattened inner types.
pub(super) fn flatten(
    constructor: &Constructor,
    size_of: SizeOf<'_>,
    child: Flatten<'_>,
) -> Result<Flattened, TypeError> {
    match constructor {
        Constructor::Basic(basic) => element(*basic, size_of(*basic)),
        Constructor::Contiguous { count, of } => {
            let of = child(of)?;
            let stride = of.layout.extent();
            of.vector(*count, 1, stride)
        }
        Constructor::Vector {
            count,
            block_length,
            stride,
            unit,
            of,
        } => {
            let of = child(of)?;
            let stride = of.in_bytes(*stride, *unit, *count)?;
            of.vector(*count, *block_length, stride)
        }
        Constructor::Indexed {
            lengths,
            displacements,
            unit,
            of,
        } => child(of)?.indexed(lengths, displacements, *unit),
        Constructor::Structure { members } => structure(members, child),
        Constructor::Subarray {
            dimensions,
            order,
            of,
        } => child(of)?.subarray(dimensions, *order),
        Constructor::Darray { array, of } => child(of)?.darray(array),
        Constructor::Resized {
            lower_bound,
            extent,
            of,
        } => {
            let of = child(of)?;
            let layout = Layout::new(of.layout.tile().cloned(), *lower_bound, *extent)?;
            Ok(Flattened {
                layout,
                bounds: Bounds::Explicit,
                ..of
            })
        }
    }
}

fn element(basic: Basic, size: u64) -> Result<Flattened, TypeError> {
    let extent = wide_extent(size.into())?;
    let shape = if size > 0 {
        Some(Shape::dense(size)?)
    } else {
        None
    };
    let tile = shape.map(|shape| Placed { at: 0, shape });
    let layout = Layout::new(tile, 0, extent)?;
    Ok(Flattened {
        layout,
        bounds: Bounds::Natural,
        alignment: basic.alignment_at(size),
    })
}

/// `count` copies of a placed shape; `None` if there is no data.
fn repeat(count: u64, stride: i64, of: Option<&Placed>) -> Result<Option<Placed>, TypeError> {
    match of {
        Some(Placed { at, shape }) if count > 0 => {
            let shape = Shape::repeat(count, stride, shape)?;
            Ok(Some(Placed { at: *at, shape }))
        }
        _ => Ok(None),
    }
}

/// A placed shape moved by `distance`.
fn moved(of: Option<Placed>, distance: i128) -> Result<Option<Placed>, TypeError> {
    let Some(Placed { at, shape }) = of else {
        return Ok(None);
    };
    let at = offset(i128::from(at) + distance)?;
    Ok(Some(Placed { at, shape }))
}

/// The lowest and the highest displacement of the copies of a type.
#[derive(Clone, Copy, Debug)]
struct Reach {
    low: i128,
    high: i128,
}

impl Reach {
    /// `count` copies, at least one, from `first` on.
    fn row(first: i128, count: u64, stride: i64) -> Self {
        let last = first + i128::from(count - 1) * i128::from(stride);
        Self {
            low: first.min(last),
            high: first.max(last),
        }
    }

    fn join(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            low: self.low + other.low,
            high: self.high + other.high,
        }
    }
}

impl Flattened {
    fn tile(&self) -> Option<&Placed> {
        self.layout.tile()
    }

    /// A stride in bytes. With fewer than two blocks the stride has no effect and must not
    /// overflow.
    fn in_bytes(&self, stride: i64, unit: Unit, count: u64) -> Result<i64, TypeError> {
        match unit {
            _ if count < 2 => Ok(0),
            Unit::Bytes => Ok(stride),
            Unit::Extents => offset(i128::from(stride) * i128::from(self.layout.extent())),
        }
    }

    /// The type made of copies of this one; bounds are derived from its data and reach.
    fn built(&self, tile: Option<Placed>, reach: Option<Reach>) -> Result<Self, TypeError> {
        let bounds = if reach.is_none() {
            Bounds::Absent
        } else {
            self.bounds
        };
        let (lower, extent) = match reach {
            Some(reach) if self.bounds != Bounds::Absent => {
                let lower = i128::from(self.layout.lower_bound()) + reach.low;
                let upper = i128::from(self.layout.upper_bound()) + reach.high;
                (offset(lower)?, wide_extent(upper - lower)?)
            }
            _ => (0, 0),
        };
        let alignment = if bounds == Bounds::Absent {
            1
        } else {
            self.alignment
        };
        Ok(Self {
            layout: Layout::new(tile, lower, extent)?,
            bounds,
            alignment,
        })
    }

    fn vector(&self, count: u64, block_length: u64, stride: i64) -> Result<Self, TypeError> {
        if count == 0 || block_length == 0 {
            return self.built(None, None);
        }
        let extent = self.layout.extent();
        let block = repeat(block_length, extent, self.tile())?;
        let tile = repeat(count, stride, block.as_ref())?;
        let reach = Reach::row(0, count, stride).plus(Reach::row(0, block_length, extent));
        self.built(tile, Some(reach))
    }

    fn indexed(
        &self,
        lengths: &Lengths,
        displacements: &[i64],
        unit: Unit,
    ) -> Result<Self, TypeError> {
        let extent = self.layout.extent();
        let scale = match unit {
            Unit::Extents => i128::from(extent),
            Unit::Bytes => 1,
        };
        let places = displacements.iter().enumerate();
        let blocks = places.filter_map(|(index, &place)| {
            let length = lengths.get(index);
            (length > 0).then(|| (i128::from(place) * scale, length))
        });
        if let Some(of) = self.tile()
            && of.shape.is_dense()
            && of.shape.high == extent
        {
            return self.dense_blocks(of, blocks, displacements.len());
        }
        let reaches = blocks
            .clone()
            .map(|(place, length)| Reach::row(place, length, extent));
        let Some(reach) = reaches.reduce(Reach::join) else {
            return self.built(None, None);
        };
        let tile = match self.tile() {
            None => None,
            Some(of) => scattered(of, extent, blocks)?,
        };
        self.built(tile, Some(reach))
    }

    /// Blocks of a gapless type `of`: the fast path for a million blocks of numbers.
    fn dense_blocks(
        &self,
        of: &Placed,
        blocks: impl Iterator<Item = (i128, u64)>,
        count: usize,
    ) -> Result<Self, TypeError> {
        let mut list = BlockList::with_capacity(count);
        for (place, length) in blocks {
            let len = length.checked_mul(of.shape.size);
            let len = len.ok_or_else(|| TypeError::overflow("the size"))?;
            list.push(offset(i128::from(of.at) + place)?, len)?;
        }
        let reach = list.bounds().map(|(low, high)| Reach {
            low: low - i128::from(of.at),
            high: high - i128::from(of.at) - i128::from(of.shape.high),
        });
        self.built(list.finish()?, reach)
    }

    fn subarray(&self, dimensions: &[Dimension], order: Order) -> Result<Self, TypeError> {
        let fastest_first: Box<dyn Iterator<Item = &Dimension>> = match order {
            Order::C => Box::new(dimensions.iter().rev()),
            Order::Fortran => Box::new(dimensions.iter()),
        };
        let (mut tile, mut distance) = (self.tile().cloned(), 0_i128);
        let mut stride = self.layout.extent();
        for part in fastest_first {
            tile = repeat(part.subsize, stride, tile.as_ref())?;
            distance += i128::from(part.start) * i128::from(stride);
            offset(distance)?;
            stride = wide_extent(i128::from(stride) * i128::from(part.size))?;
        }
        self.whole_array(moved(tile, distance)?, stride)
    }

    fn darray(&self, array: &Darray) -> Result<Self, TypeError> {
        let (mut tile, mut stride) = (self.tile().cloned(), self.layout.extent());
        for axis in array.grid() {
            tile = owned(axis, stride, tile.as_ref())?;
            stride = wide_extent(i128::from(stride) * i128::from(axis.size))?;
        }
        self.whole_array(tile, stride)
    }

    fn whole_array(&self, tile: Option<Placed>, extent: i64) -> Result<Self, TypeError> {
        let layout = Layout::new(tile, 0, extent)?;
        Ok(Self {
            layout,
            bounds: Bounds::Explicit,
            alignment: self.alignment,
        })
    }
}

/// Blocks of a type that has holes.
fn scattered(
    of: &Placed,
    extent: i64,
    blocks: impl Iterator<Item = (i128, u64)>,
) -> Result<Option<Placed>, TypeError> {
    let mut known: HashMap<u64, Shape> = HashMap::new();
    let mut parts = Vec::new();
    for (place, length) in blocks {
        let at = offset(i128::from(of.at) + place)?;
        let shape = match known.get(&length) {
            Some(shape) => shape.clone(),
            None => {
                let shape = Shape::repeat(length, extent, &of.shape)?;
                known.insert(length, shape.clone());
                shape
            }
        };
        parts.push(Placed { at, shape });
    }
    sequence(parts)
}

/// The elements a process owns in one dimension, `stride` apart.
fn owned(axis: Axis, stride: i64, of: Option<&Placed>) -> Result<Option<Placed>, TypeError> {
    let (whole, rest) = axis.whole_and_rest();
    // Every existing block starts within the array, so none of this overflows.
    let first = axis.block.saturating_mul(axis.coordinate);
    let cycle = axis.block.saturating_mul(axis.processes);
    let start_of = |block: u64| i128::from(first + block * cycle) * i128::from(stride);
    let mut parts = Vec::with_capacity(2);
    if whole > 0 {
        let cycle_bytes = if whole > 1 {
            offset(start_of(1) - start_of(0))?
        } else {
            0
        };
        let block = repeat(axis.block, stride, of)?;
        parts.extend(moved(
            repeat(whole, cycle_bytes, block.as_ref())?,
            start_of(0),
        )?);
    }
    if rest > 0 {
        parts.extend(moved(repeat(rest, stride, of)?, start_of(whole))?);
    }
    sequence(parts)
}

fn structure(members: &[Member], child: Flatten<'_>) -> Result<Flattened, TypeError> {
    let (mut parts, mut alignment) = (Vec::with_capacity(members.len()), 1);
    let mut natural: Option<Reach> = None;
    let mut explicit: Option<Reach> = None;
    for member in members.iter().filter(|member| member.block_length > 0) {
        let of = child(&member.of)?;
        let extent = of.layout.extent();
        let place = i128::from(member.displacement);
        let block = repeat(member.block_length, extent, of.tile())?;
        parts.extend(moved(block, place)?);
        alignment = alignment.max(of.alignment);
        let row = Reach::row(place, member.block_length, extent);
        let bounds = Reach {
            low: i128::from(of.layout.lower_bound()),
            high: i128::from(of.layout.upper_bound()),
        };
        let known = match of.bounds {
            Bounds::Absent => continue,
            Bounds::Natural => &mut natural,
            Bounds::Explicit => &mut explicit,
        };
        let reach = row.plus(bounds);
        *known = Some(known.map_or(reach, |known| known.join(reach)));
    }
    let (bounds, lower, upper) = match (explicit, natural) {
        (Some(reach), _) => (Bounds::Explicit, reach.low, reach.high),
        (None, Some(reach)) => (Bounds::Natural, reach.low, reach.high),
        (None, None) => (Bounds::Absent, 0, 0),
    };
    let padding = match bounds {
        Bounds::Natural => (lower - upper).rem_euclid(i128::from(alignment)),
        _ => 0,
    };
    let extent = wide_extent(upper - lower + padding)?;
    let layout = Layout::new(sequence(parts)?, offset(lower)?, extent)?;
    Ok(Flattened {
        layout,
        bounds,
        alignment,
    })
}
