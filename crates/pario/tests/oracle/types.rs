//! Random datatypes: etypes, filetypes over them, and memory made of them.

use fastrand::Rng;
use pario::{Basic, Darray, Distribution, Order};

use crate::spec::{Spec, TypeMap};

/// The most elements of a random type.
const ELEMENTS_MAX: u64 = 60;

/// Kinds that differ in size, alignment and conversion.
const BASICS: [Basic; 14] = [
    Basic::Byte,
    Basic::Char,
    Basic::Short,
    Basic::Int,
    Basic::Wchar,
    Basic::Long,
    Basic::UnsignedLong,
    Basic::Uint64,
    Basic::Float,
    Basic::Double,
    Basic::LongDouble,
    Basic::CDoubleComplex,
    Basic::CBool,
    Basic::Logical,
];

/// What a type may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavour {
    /// Fall, overlap, lie below zero.
    Memory,
    /// Mostly rise.
    File,
}

fn basic(rng: &mut Rng) -> Spec {
    Spec::Basic(BASICS[rng.usize(..BASICS.len())])
}

/// A small type that may be an etype.
pub(crate) fn etype(rng: &mut Rng) -> Spec {
    let of = basic(rng);
    match rng.u32(..10) {
        0 => Spec::Contiguous(rng.u64(2..4), Box::new(of)),
        1 => Spec::Vector(2, 1, 2, Box::new(of)),
        2 => {
            let gap = rng.i64(0..9);
            let extent = of.map(&Basic::size).extent() + gap;
            Spec::Resized(0, extent, Box::new(of))
        }
        3 => {
            let second = of.map(&Basic::size).extent() + rng.i64(0..5);
            Spec::Structure(vec![(1, 0, of), (rng.u64(1..3), second, basic(rng))])
        }
        _ => of,
    }
}

/// A filetype over an etype that the standard allows: displacements that are
/// not negative and do not fall, instances of the etype at whole multiples of
/// its extent.
pub(crate) fn filetype(rng: &mut Rng, etype: &Spec) -> Spec {
    loop {
        let depth = rng.u32(1..4);
        let spec = wrapped(rng, depth, Flavour::File, etype);
        let small = spec.elements() <= ELEMENTS_MAX * etype.elements();
        if small && is_filetype(&spec.map(&Basic::size), &etype.map(&Basic::size)) {
            return spec;
        }
    }
}

/// A filetype of several kinds of elements, over an etype of bytes.
pub(crate) fn filetype_of_bytes(rng: &mut Rng) -> Spec {
    loop {
        let (core, depth) = (etype(rng), rng.u32(1..4));
        let spec = wrapped(rng, depth, Flavour::File, &core);
        if spec.elements() <= ELEMENTS_MAX && rises(&spec.map(&Basic::size)) {
            return spec;
        }
    }
}

/// Memory whose elements are those of the etype, any number of times.
pub(crate) fn memory(rng: &mut Rng, etype: &Spec) -> Spec {
    loop {
        let depth = rng.u32(..4);
        let spec = wrapped(rng, depth, Flavour::Memory, etype);
        if spec.elements() <= ELEMENTS_MAX * etype.elements() {
            return spec;
        }
    }
}

/// One rank's part of an array of etypes that the ranks share without overlap.
pub(crate) fn partition(rng: &mut Rng, ranks: u64, etype: &Spec) -> Vec<Spec> {
    let of = || Box::new(etype.clone());
    let size = rng.u64(ranks..4 * ranks + 1);
    let seed = rng.u64(..);
    match rng.u32(..4) {
        0 => (0..ranks)
            .map(|rank| {
                // The same draws on every rank.
                let distribution = random_distribution(&mut Rng::with_seed(seed), size, ranks);
                let (sizes, grid) = (vec![size, 3], vec![ranks, 1]);
                let distributions = vec![distribution, Distribution::None];
                let order = random_order(&mut Rng::with_seed(seed));
                Spec::Darray(
                    Darray {
                        ranks,
                        rank,
                        sizes,
                        distributions,
                        grid,
                        order,
                    },
                    of(),
                )
            })
            .collect(),
        1 => {
            let rows = rng.u64(1..4);
            let order = random_order(rng);
            (0..ranks)
                .map(|rank| {
                    let share = [size * ranks, size, rank * size];
                    Spec::Subarray(vec![[rows, rows, 0], share], order, of())
                })
                .collect()
        }
        _ => dealt_slots(rng, ranks, size, etype),
    }
}

/// The slots of a tile, each dealt to some rank. A slot may be moved on by
/// whole tiles: then tiles interleave, still without overlap.
fn dealt_slots(rng: &mut Rng, ranks: u64, slots: u64, etype: &Spec) -> Vec<Spec> {
    let extent = etype.map(&Basic::size).extent();
    let tiles_max = if rng.bool() { 3 } else { 1 };
    let dealt: Vec<(u64, i64)> = (0..slots)
        .map(|slot| {
            let tile = rng.u64(..tiles_max);
            (rng.u64(..ranks), (slot + tile * slots) as i64)
        })
        .collect();
    let form = rng.u32(..3);
    (0..ranks)
        .map(|rank| {
            let mine = dealt.iter().filter(|(owner, _)| *owner == rank);
            let mut places: Vec<i64> = mine.map(|(_, place)| *place).collect();
            places.sort_unstable();
            let of = Box::new(etype.clone());
            let in_bytes = places.iter().map(|place| place * extent);
            let placed = match form {
                0 => Spec::IndexedBlock(1, places, of),
                1 => Spec::Hindexed(in_bytes.map(|place| (1, place)).collect(), of),
                _ => Spec::Structure(in_bytes.map(|place| (1, place, etype.clone())).collect()),
            };
            Spec::Resized(0, slots as i64 * extent, Box::new(placed))
        })
        .collect()
}

/// A filetype whose tiles may interleave, without overlap.
pub(crate) fn interleaved(rng: &mut Rng, etype: &Spec) -> Spec {
    let slots = rng.u64(2..6);
    // As one of two ranks has it.
    dealt_slots(rng, 2, slots, etype).swap_remove(0)
}

fn rises(map: &TypeMap) -> bool {
    let places = || map.elements.iter().map(|(_, place)| *place);
    places().all(|place| place >= 0) && places().is_sorted() && map.extent() >= 0
}

fn is_filetype(map: &TypeMap, etype: &TypeMap) -> bool {
    let extent = etype.extent().max(1);
    let whole = |distance: i64| distance % extent == 0;
    let instances = map.elements.chunks(etype.elements.len());
    let starts: Option<Vec<i64>> = instances
        .map(|instance| {
            let base = instance[0].1 - etype.elements[0].1;
            let moved = etype.elements.iter().map(|(basic, at)| (*basic, at + base));
            moved.eq(instance.iter().copied()).then_some(base)
        })
        .collect();
    let fits = |start: &i64| whole(start + etype.lower() - map.lower());
    rises(map) && whole(map.extent()) && starts.is_some_and(|starts| starts.iter().all(fits))
}

fn wrapped(rng: &mut Rng, depth: u32, flavour: Flavour, core: &Spec) -> Spec {
    if depth == 0 {
        return core.clone();
    }
    let of = wrapped(rng, depth - 1, flavour, core);
    let extent = of.map(&Basic::size).extent();
    around(rng, flavour, Box::new(of), extent)
}

fn around(rng: &mut Rng, flavour: Flavour, of: Box<Spec>, extent: i64) -> Spec {
    // In a file, displacements in bytes must be whole etypes to be allowed.
    let (unit, stride_unit) = match flavour {
        Flavour::File => (extent.max(1), extent.max(1)),
        Flavour::Memory => (1, 7),
    };
    let stride = |rng: &mut Rng, most: i64| match flavour {
        Flavour::Memory => rng.i64(-most..=most),
        Flavour::File => rng.i64(0..=most),
    };
    match rng.u32(..14) {
        0 => Spec::Contiguous(count(rng), of),
        1 | 2 => Spec::Vector(count(rng), rng.u64(1..4), stride(rng, 5), of),
        3 => Spec::Hvector(count(rng), rng.u64(1..3), stride(rng, 6) * stride_unit, of),
        4 => Spec::Indexed(blocks(rng, flavour, 1), of),
        5 => Spec::Hindexed(blocks(rng, flavour, unit), of),
        6 => Spec::IndexedBlock(rng.u64(1..3), places(rng, flavour, 1), of),
        7 => Spec::HindexedBlock(rng.u64(1..3), places(rng, flavour, unit), of),
        8 => {
            let members = blocks(rng, flavour, unit);
            let member = |(length, place)| (length, place, (*of).clone());
            Spec::Structure(members.into_iter().map(member).collect())
        }
        9 => subarray(rng, of),
        10 => darray(rng, of),
        11 => Spec::Dup(of),
        _ => {
            let (lower, size) = match flavour {
                Flavour::Memory => (rng.i64(-20..20), rng.i64(-30..90)),
                Flavour::File => (0, extent.max(1) * rng.i64(0..5)),
            };
            Spec::Resized(lower, size, of)
        }
    }
}

/// Now and then nothing.
fn count(rng: &mut Rng) -> u64 {
    match rng.u32(..20) {
        0 => 0,
        _ => rng.u64(1..5),
    }
}

fn places(rng: &mut Rng, flavour: Flavour, unit: i64) -> Vec<i64> {
    let count = [1, 2, 3, 5][rng.usize(..4)];
    let mut place = 0;
    let step = |_| {
        place = match flavour {
            Flavour::Memory => rng.i64(-20..40),
            Flavour::File => place + rng.i64(0..6) * unit,
        };
        place
    };
    (0..count).map(step).collect()
}

fn blocks(rng: &mut Rng, flavour: Flavour, unit: i64) -> Vec<(u64, i64)> {
    let places = places(rng, flavour, unit);
    places
        .into_iter()
        .map(|place| (rng.u64(..4), place))
        .collect()
}

fn random_order(rng: &mut Rng) -> Order {
    if rng.bool() { Order::C } else { Order::Fortran }
}

fn subarray(rng: &mut Rng, of: Box<Spec>) -> Spec {
    let dimensions = rng.usize(1..4);
    let dimension = |rng: &mut Rng| {
        let size = rng.u64(1..5);
        let subsize = rng.u64(1..=size);
        [size, subsize, rng.u64(0..=size - subsize)]
    };
    let dimensions = (0..dimensions).map(|_| dimension(rng)).collect();
    Spec::Subarray(dimensions, random_order(rng), of)
}

fn random_distribution(rng: &mut Rng, size: u64, processes: u64) -> Distribution {
    match rng.u32(..4) {
        0 => Distribution::Block(None),
        1 => Distribution::Block(Some(size.div_ceil(processes) + rng.u64(..2))),
        2 => Distribution::Cyclic(None),
        _ => Distribution::Cyclic(Some(rng.u64(1..4))),
    }
}

fn darray(rng: &mut Rng, of: Box<Spec>) -> Spec {
    let sizes: Vec<u64> = (0..rng.usize(1..3)).map(|_| rng.u64(1..7)).collect();
    let grid: Vec<u64> = sizes.iter().map(|_| rng.u64(1..4)).collect();
    let axes = sizes.iter().zip(&grid);
    let distributions = axes
        .map(|(size, processes)| random_distribution(rng, *size, *processes))
        .collect();
    let ranks = grid.iter().product();
    let darray = Darray {
        ranks,
        rank: rng.u64(..ranks),
        sizes,
        distributions,
        grid,
        order: random_order(rng),
    };
    Spec::Darray(darray, of)
}
