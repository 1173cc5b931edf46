//! The oracle: type maps, enumerated directly from the constructor definitions in the standard.
//!
//! Nothing here shares code or ideas with the flattening under test: every constructor becomes
//! a list of the displacements of its inner type's copies.

use pario_layout::{Basic, Darray, Distribution, Order};

use crate::spec::Spec;

/// The bounds of a non-empty type map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) lower: i64,
    pub(crate) upper: i64,
    /// Set by resized, subarray or darray: takes precedence over bounds from data in a
    /// structure.
    pub(crate) explicit: bool,
}

/// Every element of a type, in order, and the bounds.
#[derive(Clone, Debug)]
pub(crate) struct TypeMap {
    pub(crate) elements: Vec<(Basic, i64)>,
    pub(crate) bounds: Option<Bounds>,
    pub(crate) alignment: u64,
}

impl TypeMap {
    pub(crate) fn lower(&self) -> i64 {
        self.bounds.map_or(0, |bounds| bounds.lower)
    }

    pub(crate) fn extent(&self) -> i64 {
        self.bounds.map_or(0, |bounds| bounds.upper - bounds.lower)
    }

    /// The offset of every data byte of one instance.
    pub(crate) fn bytes(&self, size_of: &dyn Fn(Basic) -> u64) -> Vec<i64> {
        let element = |&(basic, place): &(Basic, i64)| {
            (0..size_of(basic) as i64).map(move |byte| place + byte)
        };
        self.elements.iter().flat_map(element).collect()
    }
}

/// Copies of type maps at displacements, in order.
fn assemble(copies: &[(i64, &TypeMap)]) -> TypeMap {
    let mut elements = Vec::new();
    let mut bounds: Vec<Bounds> = Vec::new();
    let mut alignment = 1;
    for (place, map) in copies {
        elements.extend(map.elements.iter().map(|(basic, at)| (*basic, at + place)));
        alignment = alignment.max(map.alignment);
        bounds.extend(map.bounds.map(|bounds| Bounds {
            lower: bounds.lower + place,
            upper: bounds.upper + place,
            ..bounds
        }));
    }
    let explicit = bounds.iter().any(|bounds| bounds.explicit);
    let counted = || bounds.iter().filter(|bounds| bounds.explicit == explicit);
    let lower = counted().map(|bounds| bounds.lower).min();
    let upper = counted().map(|bounds| bounds.upper).max();
    let bounds = lower.zip(upper).map(|(lower, upper)| Bounds {
        lower,
        upper,
        explicit,
    });
    TypeMap {
        elements,
        bounds,
        alignment,
    }
}

/// The displacements of `length` consecutive copies, starting at `place`.
fn block(place: i64, length: u64, extent: i64) -> Vec<i64> {
    (0..length as i64)
        .map(|index| place + index * extent)
        .collect()
}

fn copies_at(places: Vec<i64>, of: &TypeMap) -> TypeMap {
    let copies: Vec<_> = places.into_iter().map(|place| (place, of)).collect();
    assemble(&copies)
}

/// The type map of a specification in which elements take `size_of` bytes.
pub(crate) fn type_map(spec: &Spec, size_of: &dyn Fn(Basic) -> u64) -> TypeMap {
    match spec {
        Spec::Basic(basic) => element(*basic, size_of(*basic)),
        Spec::Contiguous(count, of) => {
            let of = type_map(of, size_of);
            copies_at(block(0, *count, of.extent()), &of)
        }
        Spec::Vector(count, length, stride, of) => {
            let of = type_map(of, size_of);
            vector(*count, *length, stride * of.extent(), &of)
        }
        Spec::Hvector(count, length, stride, of) => {
            vector(*count, *length, *stride, &type_map(of, size_of))
        }
        Spec::Indexed(blocks, of) => {
            let of = type_map(of, size_of);
            indexed(blocks, of.extent(), &of)
        }
        Spec::Hindexed(blocks, of) => indexed(blocks, 1, &type_map(of, size_of)),
        Spec::IndexedBlock(length, places, of) => {
            let of = type_map(of, size_of);
            let blocks: Vec<_> = places.iter().map(|place| (*length, *place)).collect();
            indexed(&blocks, of.extent(), &of)
        }
        Spec::HindexedBlock(length, places, of) => {
            let blocks: Vec<_> = places.iter().map(|place| (*length, *place)).collect();
            indexed(&blocks, 1, &type_map(of, size_of))
        }
        Spec::Structure(members) => structure(members, size_of),
        Spec::Subarray(parts, order, of) => {
            let of = type_map(of, size_of);
            let indices = parts
                .iter()
                .map(|part| (part.2..part.2 + part.1).collect())
                .collect();
            let sizes: Vec<u64> = parts.iter().map(|part| part.0).collect();
            array(&sizes, indices, *order, &of)
        }
        Spec::Darray(darray, of) => {
            let of = type_map(of, size_of);
            array(&darray.sizes, owned(darray), darray.order, &of)
        }
        Spec::Resized(lower, extent, of) => {
            let mut map = type_map(of, size_of);
            let upper = lower + extent;
            map.bounds = Some(Bounds {
                lower: *lower,
                upper,
                explicit: true,
            });
            map
        }
    }
}

fn element(basic: Basic, size: u64) -> TypeMap {
    let alignment = if size == basic.size() {
        basic.alignment()
    } else {
        // The largest power of two that divides the size, but no more than the native
        // alignment.
        (0..)
            .map(|power| 1 << power)
            .take_while(|unit| size.is_multiple_of(*unit))
            .last()
            .unwrap()
    };
    let upper = size as i64;
    TypeMap {
        elements: vec![(basic, 0)],
        bounds: Some(Bounds {
            lower: 0,
            upper,
            explicit: false,
        }),
        alignment: alignment.min(basic.alignment()),
    }
}

fn vector(count: u64, length: u64, stride: i64, of: &TypeMap) -> TypeMap {
    let blocks = (0..count as i64).flat_map(|index| block(index * stride, length, of.extent()));
    copies_at(blocks.collect(), of)
}

fn indexed(blocks: &[(u64, i64)], unit: i64, of: &TypeMap) -> TypeMap {
    let places = blocks
        .iter()
        .flat_map(|(length, at)| block(at * unit, *length, of.extent()));
    copies_at(places.collect(), of)
}

fn structure(members: &[(u64, i64, Spec)], size_of: &dyn Fn(Basic) -> u64) -> TypeMap {
    let maps: Vec<_> = members
        .iter()
        .map(|(_, _, of)| type_map(of, size_of))
        .collect();
    let mut copies = Vec::new();
    for ((length, place, _), map) in members.iter().zip(&maps) {
        copies.extend(
            block(*place, *length, map.extent())
                .into_iter()
                .map(|at| (at, map)),
        );
    }
    let mut map = assemble(&copies);
    if let Some(bounds) = &mut map.bounds
        && !bounds.explicit
    {
        while (bounds.upper - bounds.lower) % map.alignment as i64 != 0 {
            bounds.upper += 1;
        }
    }
    map
}

/// Elements of an array, given the indices owned in each dimension.
fn array(sizes: &[u64], indices: Vec<Vec<u64>>, order: Order, of: &TypeMap) -> TypeMap {
    let dimensions = sizes.len();
    let slowest_first: Vec<usize> = match order {
        Order::C => (0..dimensions).collect(),
        Order::Fortran => (0..dimensions).rev().collect(),
    };
    let mut linear = vec![0_i64];
    for &dimension in &slowest_first {
        let size = sizes[dimension] as i64;
        let each = |&place: &i64| {
            let index = |&index: &u64| place * size + index as i64;
            indices[dimension].iter().map(index).collect::<Vec<_>>()
        };
        linear = linear.iter().flat_map(each).collect();
    }
    let extent = of.extent();
    let mut map = copies_at(linear.into_iter().map(|place| place * extent).collect(), of);
    let upper = sizes.iter().product::<u64>() as i64 * extent;
    map.bounds = Some(Bounds {
        lower: 0,
        upper,
        explicit: true,
    });
    map.alignment = of.alignment;
    map
}

/// The indices that a process owns in each dimension, determined element by element.
fn owned(darray: &Darray) -> Vec<Vec<u64>> {
    let mut below = darray.ranks;
    let mut rank = darray.rank;
    let mut all = Vec::new();
    for (dimension, &size) in darray.sizes.iter().enumerate() {
        let processes = darray.grid[dimension];
        below /= processes;
        let coordinate = rank / below;
        rank %= below;
        let owner = |index: u64| match darray.distributions[dimension] {
            Distribution::None => 0,
            Distribution::Block(None) => index / size.div_ceil(processes),
            Distribution::Block(Some(length)) => index / length,
            Distribution::Cyclic(length) => index / length.unwrap_or(1) % processes,
        };
        all.push(
            (0..size)
                .filter(|&index| owner(index) == coordinate)
                .collect(),
        );
    }
    all
}
