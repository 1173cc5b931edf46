//! Random datatypes.

use super::datatype::{Datatype, Dimension, Distribution, Field, Leaf, Order, Unit};
use super::layout::Layout;
use super::random::Random;

/// What a type is for: displacements of filetypes do not decrease.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    File,
    Memory,
}

/// Types with more bytes than this are drawn again.
const BYTES_MAX: i64 = 2000;

/// Types that reach farther than this are drawn again.
const SPAN_MAX: i64 = 20_000;

/// A type built of `base`, for a purpose.
pub(super) fn datatype(random: &mut Random, base: &Datatype, purpose: Purpose) -> Datatype {
    for _ in 0..20 {
        let depth = 1 + random.below(3);
        let drawn = nested(random, base, purpose, depth);
        let layout = drawn.layout();
        let reach = layout.runs.iter().map(|(at, many)| at.abs() + many).max();
        let is_small = layout.size() <= BYTES_MAX
            && layout.extent().abs() <= SPAN_MAX
            && reach.unwrap_or(0) <= SPAN_MAX;
        if is_small && !layout.runs.is_empty() && layout.extent() > 0 && suits(&layout, purpose) {
            return drawn;
        }
    }
    base.clone()
}

fn suits(layout: &Layout, purpose: Purpose) -> bool {
    if purpose == Purpose::Memory {
        return true;
    }
    let mut end = 0;
    for &(start, length) in &layout.runs {
        if start < end {
            return false;
        }
        end = start + length;
    }
    layout.extent() >= end - layout.runs[0].0
}

fn nested(random: &mut Random, base: &Datatype, purpose: Purpose, depth: u64) -> Datatype {
    let of = match depth {
        0 | 1 => base.clone(),
        _ => nested(random, base, purpose, depth - 1),
    };
    constructor(random, of, base, purpose)
}

fn constructor(random: &mut Random, of: Datatype, base: &Datatype, purpose: Purpose) -> Datatype {
    let old = of.layout();
    match random.below(12) {
        0 => Datatype::Contiguous(random.within(1, 4), Box::new(of)),
        1 => vector(random, of, purpose, Unit::Elements),
        2 => vector(random, of, purpose, Unit::Bytes),
        3 => indexed(random, of, purpose, Unit::Elements),
        4 => indexed(random, of, purpose, Unit::Bytes),
        5 => indexed_block(random, of, purpose, Unit::Elements),
        6 => indexed_block(random, of, purpose, Unit::Bytes),
        7 => structure(random, of, base, purpose),
        8 => subarray(random, of),
        9 => darray(random, of),
        10 => resized(random, of, &old, purpose),
        _ => Datatype::Dup(Box::new(of)),
    }
}

/// A grain that keeps elements aligned and holes multiples of the type.
fn grain(old: &Layout, unit: Unit) -> i64 {
    match unit {
        Unit::Elements => 1,
        Unit::Bytes => old.extent().max(1),
    }
}

fn vector(random: &mut Random, of: Datatype, purpose: Purpose, unit: Unit) -> Datatype {
    let length = random.within(1, 3);
    let stride = match purpose {
        Purpose::File => length + random.within(0, 3),
        Purpose::Memory => *random.pick(&[1, -1]) * (length + random.within(0, 3)),
    };
    Datatype::Vector {
        count: random.within(1, 4),
        length,
        stride: stride * grain(&of.layout(), unit),
        unit,
        of: Box::new(of),
    }
}

/// Blocks that do not overlap, in order for a file, else shuffled and possibly before the start.
fn blocks(random: &mut Random, purpose: Purpose, same_length: bool) -> Vec<(i64, i64)> {
    let many = random.within(1, 4);
    let fixed = random.within(1, 3);
    let mut at = random.within(0, 3);
    if purpose == Purpose::Memory {
        at -= random.within(0, 6);
    }
    let mut list = Vec::new();
    for _ in 0..many {
        let length = if same_length {
            fixed
        } else {
            random.within(0, 3)
        };
        list.push((length, at));
        at += length + random.within(0, 3);
    }
    if purpose == Purpose::Memory {
        for last in (1..list.len()).rev() {
            list.swap(last, random.below(last as u64 + 1) as usize);
        }
    }
    list
}

fn indexed(random: &mut Random, of: Datatype, purpose: Purpose, unit: Unit) -> Datatype {
    let grain = grain(&of.layout(), unit);
    let mut list = blocks(random, purpose, false);
    for (_, displacement) in &mut list {
        *displacement *= grain;
    }
    Datatype::Indexed {
        blocks: list,
        unit,
        of: Box::new(of),
    }
}

fn indexed_block(random: &mut Random, of: Datatype, purpose: Purpose, unit: Unit) -> Datatype {
    let grain = grain(&of.layout(), unit);
    let list = blocks(random, purpose, true);
    Datatype::IndexedBlock {
        length: list[0].0,
        displacements: list.iter().map(|(_, at)| at * grain).collect(),
        unit,
        of: Box::new(of),
    }
}

/// Fields of the type and of its base. The bounds are given where only some fields have given bounds:
/// MPIs disagree about the rest.
fn structure(random: &mut Random, of: Datatype, base: &Datatype, purpose: Purpose) -> Datatype {
    let mut at = 0;
    let mut fields = Vec::new();
    for _ in 0..random.within(1, 3) {
        let datatype = if random.percent(50) {
            of.clone()
        } else {
            base.clone()
        };
        let layout = datatype.layout();
        let (length, gap) = (random.within(1, 2), random.within(0, 2));
        let grain = base.layout().extent().max(1);
        let low = layout
            .runs
            .iter()
            .map(|(start, _)| *start)
            .min()
            .unwrap_or(0);
        let skipped = (-low.min(layout.low).min(0) + grain - 1) / grain * grain;
        fields.push(Field {
            length,
            displacement: at + skipped,
            datatype,
        });
        let high = layout.runs.iter().map(|(start, many)| start + many).max();
        let high = high.unwrap_or(0).max(layout.high) + (length - 1) * layout.extent();
        at += skipped + (high.max(0) + grain - 1) / grain * grain + gap * grain;
    }
    if purpose == Purpose::Memory && random.percent(50) {
        fields.reverse();
    }
    let marks = fields.iter().filter(|it| it.datatype.layout().is_marked);
    let is_mixed = !matches!(marks.count(), 0) && fields.len() > 1;
    let it = Datatype::Struct(fields);
    if !is_mixed {
        return it;
    }
    Datatype::Resized {
        low: 0,
        extent: at,
        of: Box::new(it),
    }
}

fn order(random: &mut Random) -> Order {
    *random.pick(&[Order::C, Order::Fortran])
}

fn subarray(random: &mut Random, of: Datatype) -> Datatype {
    let (mut sizes, mut parts, mut starts) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..random.within(1, 3) {
        let size = random.within(1, 5);
        let part = random.within(1, size);
        sizes.push(size);
        parts.push(part);
        starts.push(random.within(0, size - part));
    }
    Datatype::Subarray {
        sizes,
        parts,
        starts,
        order: order(random),
        of: Box::new(of),
    }
}

fn darray(random: &mut Random, of: Datatype) -> Datatype {
    let size = random.within(1, 4);
    let rank = random.within(0, size - 1);
    let it = distributed(random, size, order(&mut random.clone()), of);
    it.with_rank(rank)
}

/// An array of one to two dimensions over so many ranks; rank 0's part.
pub(super) fn distributed(random: &mut Random, size: i64, order: Order, of: Datatype) -> Datatype {
    let many = random.within(1, 2);
    let mut dimensions = Vec::new();
    let mut left = size;
    for dimension in 0..many {
        let is_last = dimension == many - 1;
        let divisors: Vec<i64> = (1..=left).filter(|it| left % it == 0).collect();
        let grid = if is_last {
            left
        } else {
            *random.pick(&divisors)
        };
        left /= grid;
        let length = random.within(1, 8);
        let distribution = match grid {
            1 => *random.pick(&[
                Distribution::None,
                Distribution::Block,
                Distribution::Cyclic,
            ]),
            _ => *random.pick(&[Distribution::Block, Distribution::Cyclic]),
        };
        let argument = match distribution {
            Distribution::None => 0,
            // A block has to be large enough for all of the array.
            Distribution::Block if random.percent(50) => {
                (length + grid - 1) / grid + random.within(0, 1)
            }
            Distribution::Cyclic if random.percent(50) => random.within(1, 3),
            Distribution::Block | Distribution::Cyclic => 0,
        };
        dimensions.push(Dimension {
            size: length,
            distribution,
            argument,
            grid,
        });
    }
    Datatype::Darray {
        size,
        rank: 0,
        dimensions,
        order,
        of: Box::new(of),
    }
}

impl Datatype {
    /// A distributed array for another rank.
    pub(super) fn with_rank(&self, rank: i64) -> Datatype {
        let mut copy = self.clone();
        if let Datatype::Darray { rank: it, .. } = &mut copy {
            *it = rank;
        }
        copy
    }
}

fn resized(random: &mut Random, of: Datatype, old: &Layout, purpose: Purpose) -> Datatype {
    let unit = of.leaf().bytes();
    let first = old.runs.iter().map(|(at, _)| *at).min().unwrap_or(0);
    let last = old
        .runs
        .iter()
        .map(|(at, many)| at + many)
        .max()
        .unwrap_or(0);
    // Space for whole types, so that holes stay multiples of the etype.
    let grain = old.extent().max(unit);
    let needed = (last - first.min(0) + grain - 1) / grain * grain;
    let low = match purpose {
        Purpose::File => 0,
        Purpose::Memory => random.within(-3, 1) * unit,
    };
    Datatype::Resized {
        low,
        extent: needed + random.within(0, 2) * grain,
        of: Box::new(of),
    }
}

/// An elementary type: a basic one, or a few of them.
pub(super) fn etype(random: &mut Random) -> Datatype {
    let basic = Datatype::Basic(*random.pick(&Leaf::ALL));
    let bytes = basic.layout().size();
    match random.below(10) {
        0..=6 => basic,
        7 => Datatype::Contiguous(random.within(1, 3), Box::new(basic)),
        8 => Datatype::Resized {
            low: 0,
            extent: bytes * random.within(1, 2),
            of: Box::new(basic),
        },
        _ => Datatype::Vector {
            count: 2,
            length: 1,
            stride: random.within(1, 3),
            unit: Unit::Elements,
            of: Box::new(basic),
        },
    }
}
