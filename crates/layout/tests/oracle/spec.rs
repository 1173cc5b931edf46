//! Random datatypes, described independently of the code under test.

use fastrand::Rng;
use pario_layout::{Basic, Darray, Datatype, Distribution, Order};

/// A datatype that the library builds and the oracle enumerates.
#[derive(Clone, Debug)]
pub(crate) enum Spec {
    Basic(Basic),
    Contiguous(u64, Box<Spec>),
    Vector(u64, u64, i64, Box<Spec>),
    Hvector(u64, u64, i64, Box<Spec>),
    Indexed(Vec<(u64, i64)>, Box<Spec>),
    Hindexed(Vec<(u64, i64)>, Box<Spec>),
    IndexedBlock(u64, Vec<i64>, Box<Spec>),
    HindexedBlock(u64, Vec<i64>, Box<Spec>),
    Structure(Vec<(u64, i64, Spec)>),
    /// (size, subsize, start) of each dimension.
    Subarray(Vec<(u64, u64, u64)>, Order, Box<Spec>),
    Darray(Darray, Box<Spec>),
    Resized(i64, i64, Box<Spec>),
}

impl Spec {
    /// Builds the datatype with the library.
    pub(crate) fn build(&self) -> Datatype {
        let built = match self {
            Spec::Basic(basic) => Ok(Datatype::basic(*basic)),
            Spec::Contiguous(count, of) => Datatype::contiguous(*count, &of.build()),
            Spec::Vector(count, length, stride, of) => {
                Datatype::vector(*count, *length, *stride, &of.build())
            }
            Spec::Hvector(count, length, stride, of) => {
                Datatype::hvector(*count, *length, *stride, &of.build())
            }
            Spec::Indexed(blocks, of) => Datatype::indexed(blocks, &of.build()),
            Spec::Hindexed(blocks, of) => Datatype::hindexed(blocks, &of.build()),
            Spec::IndexedBlock(length, places, of) => {
                Datatype::indexed_block(*length, places, &of.build())
            }
            Spec::HindexedBlock(length, places, of) => {
                Datatype::hindexed_block(*length, places, &of.build())
            }
            Spec::Structure(members) => {
                let member = |(length, place, of): &(u64, i64, Spec)| (*length, *place, of.build());
                Datatype::structure(&members.iter().map(member).collect::<Vec<_>>())
            }
            Spec::Subarray(parts, order, of) => {
                let column = |pick: fn(&(u64, u64, u64)) -> u64| -> Vec<u64> {
                    parts.iter().map(pick).collect()
                };
                let (sizes, subsizes) = (column(|part| part.0), column(|part| part.1));
                Datatype::subarray(
                    &sizes,
                    &subsizes,
                    &column(|part| part.2),
                    *order,
                    &of.build(),
                )
            }
            Spec::Darray(darray, of) => Datatype::darray(darray, &of.build()),
            Spec::Resized(lower, extent, of) => Datatype::resized(&of.build(), *lower, *extent),
        };
        built.unwrap()
    }

    /// Number of basic elements, to bound the enumeration.
    pub(crate) fn elements(&self) -> u64 {
        match self {
            Spec::Basic(_) => 1,
            Spec::Contiguous(count, of) => count * of.elements(),
            Spec::Vector(count, length, _, of) | Spec::Hvector(count, length, _, of) => {
                count * length * of.elements()
            }
            Spec::Indexed(blocks, of) | Spec::Hindexed(blocks, of) => {
                blocks.iter().map(|block| block.0).sum::<u64>() * of.elements()
            }
            Spec::IndexedBlock(length, places, of) | Spec::HindexedBlock(length, places, of) => {
                places.len() as u64 * length * of.elements()
            }
            Spec::Structure(members) => members
                .iter()
                .map(|(length, _, of)| length * of.elements())
                .sum(),
            Spec::Subarray(parts, _, of) => {
                parts.iter().map(|part| part.1).product::<u64>() * of.elements()
            }
            Spec::Darray(darray, of) => darray.sizes.iter().product::<u64>() * of.elements(),
            Spec::Resized(_, _, of) => of.elements(),
        }
    }
}

/// The kind of types to generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavour {
    /// Anything that can describe memory: decreasing, overlapping, negative
    /// displacements.
    Memory,
    /// Mostly types that can describe a file: increasing displacements.
    File,
}

/// A random flavour.
pub(crate) fn flavour(rng: &mut Rng) -> Flavour {
    if rng.bool() {
        Flavour::Memory
    } else {
        Flavour::File
    }
}

const ELEMENTS_MAX: u64 = 150;
const BASICS: &[Basic] = &[
    Basic::Byte,
    Basic::Short,
    Basic::Int,
    Basic::Double,
    Basic::Wchar,
    Basic::LongDouble,
];

/// A random type of bounded size.
pub(crate) fn random(rng: &mut Rng, flavour: Flavour) -> Spec {
    let basics = if rng.bool() {
        BASICS
    } else {
        &BASICS[rng.usize(0..BASICS.len())..][..1]
    };
    loop {
        let depth = rng.u32(0..5);
        let spec = nested(rng, depth, flavour, basics);
        if spec.elements() <= ELEMENTS_MAX {
            return spec;
        }
    }
}

/// A random type around `core`.
pub(crate) fn around(rng: &mut Rng, core: &Spec, flavour: Flavour) -> Spec {
    loop {
        let depth = rng.u32(1..3);
        let spec = wrapped(rng, depth, flavour, core);
        if spec.elements() <= ELEMENTS_MAX {
            return spec;
        }
    }
}

fn nested(rng: &mut Rng, depth: u32, flavour: Flavour, basics: &[Basic]) -> Spec {
    if depth == 0 {
        return Spec::Basic(basics[rng.usize(0..basics.len())]);
    }
    if rng.u32(0..5) == 0 {
        let mut place = 0;
        let member = |_| {
            let length = rng.u64(0..3);
            let inner_depth = rng.u32(0..depth);
            let of = nested(rng, inner_depth, flavour, basics);
            place = next_place(rng, flavour, place, 12);
            (length, place, of)
        };
        return Spec::Structure((0..4).map(member).collect());
    }
    let of = nested(rng, depth - 1, flavour, basics);
    around_once(rng, flavour, of)
}

fn wrapped(rng: &mut Rng, depth: u32, flavour: Flavour, core: &Spec) -> Spec {
    if depth == 0 {
        return core.clone();
    }
    let of = wrapped(rng, depth - 1, flavour, core);
    around_once(rng, flavour, of)
}

fn next_place(rng: &mut Rng, flavour: Flavour, before: i64, step: i64) -> i64 {
    match flavour {
        Flavour::Memory => rng.i64(-2 * step..3 * step),
        Flavour::File => before + rng.i64(0..=2 * step),
    }
}

fn places(rng: &mut Rng, flavour: Flavour, step: i64) -> Vec<i64> {
    let regular = rng.u32(0..4) == 0;
    let stride = next_place(rng, flavour, 0, step);
    let mut place = 0;
    let next = |index: usize| {
        place = if regular {
            stride * index as i64
        } else {
            next_place(rng, flavour, place, step)
        };
        place
    };
    let count = [0, 1, 2, 3, 4, 5][next_count(stride)];
    (0..count).map(next).collect()
}

/// A count from the low bits of a random number.
fn next_count(random: i64) -> usize {
    random.rem_euclid(6) as usize
}

fn around_once(rng: &mut Rng, flavour: Flavour, of: Spec) -> Spec {
    let of = Box::new(of);
    let bytes = 24;
    let stride = |rng: &mut Rng, step: i64| match flavour {
        Flavour::Memory => rng.i64(-step..=step),
        Flavour::File => rng.i64(0..=step),
    };
    match rng.u32(0..12) {
        0 => Spec::Contiguous(rng.u64(0..4), of),
        1 => Spec::Vector(rng.u64(0..4), rng.u64(0..4), stride(rng, 5), of),
        2 => Spec::Hvector(rng.u64(0..4), rng.u64(0..3), stride(rng, bytes), of),
        3 => Spec::Indexed(blocks(rng, flavour, 4), of),
        4 => Spec::Hindexed(blocks(rng, flavour, bytes), of),
        5 => Spec::IndexedBlock(rng.u64(0..3), places(rng, flavour, 4), of),
        6 => Spec::HindexedBlock(rng.u64(0..3), places(rng, flavour, bytes), of),
        7 | 8 => subarray(rng, of),
        9 => darray(rng, of),
        _ => match flavour {
            Flavour::Memory => Spec::Resized(rng.i64(-20..20), rng.i64(-20..40), of),
            Flavour::File => Spec::Resized(rng.i64(0..2) * rng.i64(0..9), rng.i64(0..60), of),
        },
    }
}

fn blocks(rng: &mut Rng, flavour: Flavour, step: i64) -> Vec<(u64, i64)> {
    let same = (rng.u32(0..3) == 0).then(|| rng.u64(0..3));
    let places = places(rng, flavour, step);
    places
        .into_iter()
        .map(|place| (same.unwrap_or_else(|| rng.u64(0..4)), place))
        .collect()
}

fn order(rng: &mut Rng) -> Order {
    if rng.bool() { Order::C } else { Order::Fortran }
}

fn subarray(rng: &mut Rng, of: Box<Spec>) -> Spec {
    let part = |_| {
        let size = rng.u64(1..5);
        let subsize = if rng.u32(0..8) == 0 {
            0
        } else {
            rng.u64(1..=size)
        };
        (size, subsize, rng.u64(0..=size - subsize))
    };
    let dimensions = [1, 2, 3][of.elements() as usize % 3];
    let parts = (0..dimensions).map(part).collect();
    Spec::Subarray(parts, order(rng), of)
}

fn darray(rng: &mut Rng, of: Box<Spec>) -> Spec {
    let dimensions = rng.usize(1..4);
    let (mut sizes, mut grid, mut distributions) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..dimensions {
        let size: u64 = rng.u64(1..8);
        let mut processes: u64 = rng.u64(1..4);
        let distribution = match rng.u32(0..5) {
            0 => Distribution::Block(None),
            1 => Distribution::Block(Some(size.div_ceil(processes) + rng.u64(0..2))),
            2 => Distribution::Cyclic(None),
            3 => Distribution::Cyclic(Some(rng.u64(1..4))),
            _ => {
                processes = 1;
                Distribution::None
            }
        };
        sizes.push(size);
        grid.push(processes);
        distributions.push(distribution);
    }
    let ranks = grid.iter().product();
    let rank = rng.u64(0..ranks);
    Spec::Darray(
        Darray {
            ranks,
            rank,
            sizes,
            distributions,
            grid,
            order: order(rng),
        },
        of,
    )
}
