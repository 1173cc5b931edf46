//! Requirements on etypes and filetypes: only those without which a view has no meaning. The
//! standard also requires the filetype to be built from the etype, with holes that are
//! multiples of its extent; ROMIO and OMPIO accept views that violate this, and so does pario.

use std::collections::HashMap;

use super::{Constructor, Datatype, Dimension, Lengths, Order, Unit};
use crate::{Basic, TypeError, TypeErrorKind};

/// The displacements of a non-empty type map.
#[derive(Clone, Copy, Debug)]
struct MapOrder {
    first: i128,
    last: i128,
    lowest: i128,
    /// Two neighbours with decreasing displacements.
    fall: Option<(i128, i128)>,
}

impl MapOrder {
    const ELEMENT: Self = Self {
        first: 0,
        last: 0,
        lowest: 0,
        fall: None,
    };

    fn moved(self, by: i128) -> Self {
        Self {
            first: self.first + by,
            last: self.last + by,
            lowest: self.lowest + by,
            fall: self.fall.map(|(from, to)| (from + by, to + by)),
        }
    }

    fn then(self, next: Self) -> Self {
        let step = (self.last > next.first).then_some((self.last, next.first));
        Self {
            first: self.first,
            last: next.last,
            lowest: self.lowest.min(next.lowest),
            fall: self.fall.or(step).or(next.fall),
        }
    }

    /// `count` copies; `None` if there are none.
    fn row(self, count: u64, stride: i128) -> Option<Self> {
        let last = i128::from(count.checked_sub(1)?) * stride;
        if last == 0 && count == 1 {
            return Some(self);
        }
        let pair = self.then(self.moved(stride));
        let lowest = self.lowest + last.min(0);
        Some(Self {
            last: self.last + last,
            lowest,
            ..pair
        })
    }
}

fn append(all: Option<MapOrder>, next: Option<MapOrder>) -> Option<MapOrder> {
    match (all, next) {
        (Some(all), Some(next)) => Some(all.then(next)),
        (all, next) => all.or(next),
    }
}

/// The order of a type map. Shared subtrees are visited once.
fn map_order(datatype: &Datatype, done: &mut HashMap<usize, Option<MapOrder>>) -> Option<MapOrder> {
    if let Some(known) = done.get(&datatype.address()) {
        return *known;
    }
    let order = constructor_order(datatype.constructor(), done);
    done.insert(datatype.address(), order);
    order
}

fn constructor_order(
    constructor: &Constructor,
    done: &mut HashMap<usize, Option<MapOrder>>,
) -> Option<MapOrder> {
    match constructor {
        Constructor::Basic(_) => Some(MapOrder::ELEMENT),
        Constructor::Contiguous { count, of } => {
            map_order(of, done)?.row(*count, of.extent().into())
        }
        Constructor::Vector {
            count,
            block_length,
            stride,
            unit,
            of,
        } => {
            let block = map_order(of, done)?.row(*block_length, of.extent().into())?;
            block.row(*count, i128::from(*stride) * scale(*unit, of))
        }
        Constructor::Indexed {
            lengths,
            displacements,
            unit,
            of,
        } => {
            let inner = map_order(of, done)?;
            if let Some(order) = rising_blocks(inner, lengths, displacements, *unit, of) {
                return Some(order);
            }
            let blocks = displacements.iter().enumerate().map(|(index, &place)| {
                let block = inner.row(lengths.get(index), of.extent().into())?;
                Some(block.moved(i128::from(place) * scale(*unit, of)))
            });
            blocks.fold(None, append)
        }
        Constructor::Structure { members } => members.iter().fold(None, |all, member| {
            let extent = member.of.extent().into();
            let block = map_order(&member.of, done)
                .and_then(|inner| inner.row(member.block_length, extent))
                .map(|block| block.moved(member.displacement.into()));
            append(all, block)
        }),
        Constructor::Subarray {
            dimensions,
            order,
            of,
        } => subarray_order(map_order(of, done)?, dimensions, *order, of.extent()),
        Constructor::Darray { array, of } => {
            let (mut order, mut stride) = (map_order(of, done)?, i128::from(of.extent()));
            for axis in array.grid() {
                order = append_axis(order, axis, stride)?;
                stride *= i128::from(axis.size);
            }
            Some(order)
        }
        Constructor::Resized { of, .. } => map_order(of, done),
    }
}

/// Fast path for many blocks that all rise and do not overlap, as in most irregular types:
/// 64-bit arithmetic is several times faster than the general case. `None` if the blocks do
/// not qualify.
fn rising_blocks(
    inner: MapOrder,
    lengths: &Lengths,
    displacements: &[i64],
    unit: Unit,
    of: &Datatype,
) -> Option<MapOrder> {
    let extent = of.extent();
    let rises = extent >= 0 && inner.row(2, extent.into())?.fall.is_none();
    if !rises || inner.lowest < 0 || inner.last > i128::from(extent) {
        return None;
    }
    let scale = i64::try_from(scale(unit, of)).ok()?;
    let mut first = None;
    let (mut end, mut last) = (0i64, 0i64);
    for (index, place) in displacements.iter().enumerate() {
        let copies = i64::try_from(lengths.get(index)).ok()?;
        if copies == 0 {
            continue;
        }
        let start = place.checked_mul(scale)?;
        if start < end {
            return None;
        }
        last = start.checked_add((copies - 1).checked_mul(extent)?)?;
        end = last.checked_add(extent)?;
        first = first.or(Some(start));
    }
    let first = i128::from(first?);
    Some(MapOrder {
        first: inner.first + first,
        last: inner.last + i128::from(last),
        lowest: inner.lowest + first,
        fall: None,
    })
}

fn scale(unit: Unit, of: &Datatype) -> i128 {
    match unit {
        Unit::Extents => of.extent().into(),
        Unit::Bytes => 1,
    }
}

fn subarray_order(
    element: MapOrder,
    dimensions: &[Dimension],
    order: Order,
    extent: i64,
) -> Option<MapOrder> {
    let mut fastest_first: Vec<&Dimension> = dimensions.iter().collect();
    if order == Order::C {
        fastest_first.reverse();
    }
    let (mut map, mut stride) = (element, i128::from(extent));
    for part in fastest_first {
        map = map
            .row(part.subsize, stride)?
            .moved(i128::from(part.start) * stride);
        stride *= i128::from(part.size);
    }
    Some(map)
}

fn append_axis(element: MapOrder, axis: super::darray::Axis, stride: i128) -> Option<MapOrder> {
    let (whole, rest) = axis.whole_and_rest();
    let start = i128::from(axis.block.saturating_mul(axis.coordinate)) * stride;
    let cycle = i128::from(axis.block.saturating_mul(axis.processes)) * stride;
    let blocks = element
        .row(axis.block, stride)
        .and_then(|block| block.row(whole, cycle));
    let remainder = element
        .row(rest, stride)
        .map(|rest| rest.moved(cycle * i128::from(whole)));
    append(blocks, remainder).map(|owned| owned.moved(start))
}

impl Datatype {
    /// Checks that the type can be an etype: displacements are not negative and never
    /// decrease.
    pub fn check_etype(&self) -> Result<(), TypeError> {
        self.check_order("etype")
    }

    /// Checks that the type can be a filetype over `etype`: displacements are not negative and
    /// never decrease, and the size is a whole number of etypes.
    ///
    /// Overlap, which the standard forbids only for writing, is left to
    /// [`Layout::overlap`](crate::Layout::overlap).
    pub fn check_filetype(&self, etype: &Datatype) -> Result<(), TypeError> {
        self.check_order("filetype")?;
        let (size, unit) = (self.size(), etype.size());
        if size == 0 || (unit > 0 && size.is_multiple_of(unit)) {
            return Ok(());
        }
        let message = format!(
            "the filetype holds {size} data bytes, which is not a whole number of etypes of \
             {unit} bytes"
        );
        Err(TypeError::new(TypeErrorKind::Etype, message))
    }

    /// Checks that the filetype repeats the basic types of `etype`, which conversion depends
    /// on. An etype of plain bytes matches every element.
    pub fn check_elements(&self, etype: &Datatype) -> Result<(), TypeError> {
        let uniform = etype.signature().uniform();
        let bytes = matches!(uniform, Some(Basic::Byte | Basic::Packed));
        if self.size() == 0 || bytes || self.signature().repeats(etype.signature()) {
            return Ok(());
        }
        let message = "the filetype does not consist of the basic types of the etype";
        Err(TypeError::new(TypeErrorKind::Etype, message))
    }

    fn check_order(&self, role: &str) -> Result<(), TypeError> {
        let Some(order) = map_order(self, &mut HashMap::new()) else {
            return Ok(());
        };
        let reject = |message: String| Err(TypeError::new(TypeErrorKind::Displacement, message));
        if order.lowest < 0 {
            let lowest = order.lowest;
            return reject(format!("the {role} has a negative displacement ({lowest})"));
        }
        match order.fall {
            Some((from, to)) => reject(format!(
                "the displacements of the {role} must not decrease, but go from {from} to {to}"
            )),
            None => Ok(()),
        }
    }
}
