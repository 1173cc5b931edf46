//! What the standard forbids in etypes and filetypes, and no more than that.

use std::collections::{HashMap, HashSet};

use super::{Constructor, Datatype, Dimension, Lengths, Order, Unit};
use crate::shape::{Kind, Shape};
use crate::{Basic, TypeError, TypeErrorKind};

/// A filetype of an etype that has holes is compared with it instance by instance, up to this
/// many pieces: a defect shows in the first ones unless the type is very irregular.
const COMPARED_PIECES: u64 = 1 << 16;

/// The displacements of a type map that holds an element.
#[derive(Clone, Copy, Debug)]
struct MapOrder {
    first: i128,
    last: i128,
    lowest: i128,
    /// Two neighbours of which the second lies lower.
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

/// The order of a type map, each shared subtree looked at once.
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

/// The order of many blocks that all rise, each starting at or past the end of
/// the one before, as those of most irregular types do: in small numbers, which
/// are several times faster than the general ones. `None` if it is not so.
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
    /// The type may be an etype: its displacements are not negative and never decrease.
    pub fn check_etype(&self) -> Result<(), TypeError> {
        self.check_order("etype")
    }

    /// The type may be a filetype over `etype`: its displacements are not negative and never
    /// decrease, it is made of whole etypes, and its holes are whole numbers of etype extents.
    ///
    /// An etype of plain bytes matches every element. Overlap, which the standard allows for
    /// reading only, is a question for [`Layout::overlap`](crate::Layout::overlap).
    pub fn check_filetype(&self, etype: &Datatype) -> Result<(), TypeError> {
        self.check_order("filetype")?;
        if self.size() == 0 {
            return Ok(());
        }
        let refuse = |message: String| Err(TypeError::new(TypeErrorKind::Etype, message));
        let (size, unit) = (self.size(), etype.size());
        if unit == 0 || !size.is_multiple_of(unit) {
            return refuse(format!(
                "the filetype holds {size} data bytes, which is not a whole number of etypes of \
                 {unit} bytes"
            ));
        }
        let bytes = matches!(
            etype.signature().uniform(),
            Some(Basic::Byte | Basic::Packed)
        );
        if !bytes && !self.signature().repeats(etype.signature()) {
            return refuse("the basic types of the filetype are not those of the etype".into());
        }
        let extent = etype.extent();
        if extent > 1 && !self.holes_fit(etype) {
            return refuse(format!(
                "a hole of the filetype is not a multiple of the etype's extent of {extent} bytes"
            ));
        }
        Ok(())
    }

    fn check_order(&self, role: &str) -> Result<(), TypeError> {
        let Some(order) = map_order(self, &mut HashMap::new()) else {
            return Ok(());
        };
        let refuse = |message: String| Err(TypeError::new(TypeErrorKind::Displacement, message));
        if order.lowest < 0 {
            let lowest = order.lowest;
            return refuse(format!(
                "the {role} has the displacement {lowest}: none may be negative"
            ));
        }
        match order.fall {
            Some((from, to)) => refuse(format!(
                "the displacements of the {role} decrease from {from} to {to}: they may not"
            )),
            None => Ok(()),
        }
    }

    /// Etypes lie whole multiples of their extent apart, from the lower bound to the upper one.
    fn holes_fit(&self, etype: &Datatype) -> bool {
        let (layout, extent) = (self.layout(), etype.extent());
        let Some(tile) = layout.tile() else {
            return true;
        };
        if layout.extent() % extent != 0 {
            return false;
        }
        if !etype.layout().is_dense() {
            return self.instances_fit(etype);
        }
        // An etype begins at its own lower bound, which need not be its first byte.
        let first = i128::from(tile.at) + i128::from(etype.lower_bound());
        let lead = first - i128::from(layout.lower_bound());
        lead % i128::from(extent) == 0 && aligned(&tile.shape, extent, &mut HashSet::new())
    }

    /// The same for an etype with holes of its own, by comparing instances.
    fn instances_fit(&self, etype: &Datatype) -> bool {
        let (layout, size) = (self.layout(), etype.size());
        let pieces_each = etype.layout().piece_stats(0..size).pieces;
        if layout == etype.layout() || pieces_each > COMPARED_PIECES {
            return true;
        }
        let pieces = etype.layout().sorted_pieces(0..size);
        let begin = pieces
            .iter()
            .find(|piece| piece.data == 0)
            .map_or(0, |piece| piece.offset);
        let instances = (self.size() / size).min(COMPARED_PIECES / pieces_each.max(1));
        (0..instances).all(|instance| {
            let data = instance * size;
            let place = |k: u64| layout.offset_of(data + k).map(i128::from);
            let Some(first) = place(0) else { return false };
            let base = first - i128::from(begin);
            let lead = base + i128::from(etype.lower_bound()) - i128::from(layout.lower_bound());
            let same = pieces.iter().all(|piece| {
                let offset = base + i128::from(piece.offset);
                let last = offset + i128::from(piece.len) - 1;
                place(piece.data) == Some(offset) && place(piece.data + piece.len - 1) == Some(last)
            });
            same && lead % i128::from(etype.extent()) == 0
        })
    }
}

/// Every piece starts and ends at a multiple of `unit` from the first byte. `known` holds the
/// addresses of shared shapes that have been looked at.
fn aligned(shape: &Shape, unit: i64, known: &mut HashSet<usize>) -> bool {
    let length = unit.unsigned_abs();
    if !shape.size.is_multiple_of(length) {
        return false;
    }
    match &shape.kind {
        Kind::Dense => true,
        Kind::Repeat { stride, child, .. } => stride % unit == 0 && aligned(child, unit, known),
        Kind::Copies { offsets, child, .. } => {
            offsets.iter().all(|at| at % unit == 0) && aligned(child, unit, known)
        }
        Kind::Blocks {
            offsets, starts, ..
        } => {
            offsets.iter().all(|at| at % unit == 0)
                && starts.iter().all(|at| at.is_multiple_of(length))
        }
        Kind::Sequence { parts, .. } => {
            !known.insert(shape.address())
                || parts
                    .iter()
                    .all(|part| part.offset % unit == 0 && aligned(&part.shape, unit, known))
        }
    }
}
