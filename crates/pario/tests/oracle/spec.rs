//! Datatypes as plain descriptions, and their type maps enumerated straight
//! from the standard's definitions, element by element. Nothing here uses the
//! lowering under test.

use pario::{Basic, Darray, Datatype, Distribution, Order};

/// A datatype, to be built by the library and enumerated by the model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Spec {
    Basic(Basic),
    Contiguous(u64, Box<Spec>),
    /// Count, block length, stride in extents.
    Vector(u64, u64, i64, Box<Spec>),
    /// Count, block length, stride in bytes.
    Hvector(u64, u64, i64, Box<Spec>),
    /// Length and displacement of each block, in extents.
    Indexed(Vec<(u64, i64)>, Box<Spec>),
    /// Length and displacement of each block, in bytes.
    Hindexed(Vec<(u64, i64)>, Box<Spec>),
    IndexedBlock(u64, Vec<i64>, Box<Spec>),
    HindexedBlock(u64, Vec<i64>, Box<Spec>),
    Structure(Vec<(u64, i64, Spec)>),
    /// Size, subsize and start of each dimension.
    Subarray(Vec<[u64; 3]>, Order, Box<Spec>),
    Darray(Darray, Box<Spec>),
    /// Lower bound and extent.
    Resized(i64, i64, Box<Spec>),
    Dup(Box<Spec>),
}

impl Spec {
    /// The datatype that the library makes of it.
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
                let members: Vec<_> = members
                    .iter()
                    .map(|(length, place, of)| (*length, *place, of.build()))
                    .collect();
                Datatype::structure(&members)
            }
            Spec::Subarray(dimensions, order, of) => {
                let [sizes, subsizes, starts] = [0, 1, 2]
                    .map(|column| dimensions.iter().map(|d| d[column]).collect::<Vec<_>>());
                Datatype::subarray(&sizes, &subsizes, &starts, *order, &of.build())
            }
            Spec::Darray(darray, of) => Datatype::darray(darray, &of.build()),
            Spec::Resized(lower, extent, of) => Datatype::resized(&of.build(), *lower, *extent),
            Spec::Dup(of) => Ok(of.build().dup()),
        };
        built.expect("random datatypes are valid")
    }

    /// Elements, to keep enumeration bounded.
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
            Spec::Subarray(dimensions, _, of) => {
                dimensions.iter().map(|d| d[1]).product::<u64>() * of.elements()
            }
            Spec::Darray(darray, of) => darray.sizes.iter().product::<u64>() * of.elements(),
            Spec::Resized(_, _, of) | Spec::Dup(of) => of.elements(),
        }
    }

    /// Its type map where an element takes `size_of` bytes.
    pub(crate) fn map(&self, size_of: &dyn Fn(Basic) -> u64) -> TypeMap {
        let row = |place: i64, length: u64, extent: i64| {
            (0..length as i64).map(move |index| place + index * extent)
        };
        match self {
            Spec::Basic(basic) => TypeMap::of_element(*basic, size_of(*basic)),
            Spec::Contiguous(count, of) => {
                let of = of.map(size_of);
                of.at(row(0, *count, of.extent()))
            }
            Spec::Vector(count, length, stride, of) => {
                let of = of.map(size_of);
                let extent = of.extent();
                of.at(row(0, *count, stride * extent).flat_map(|at| row(at, *length, extent)))
            }
            Spec::Hvector(count, length, stride, of) => {
                let of = of.map(size_of);
                of.at(row(0, *count, *stride).flat_map(|at| row(at, *length, of.extent())))
            }
            Spec::Indexed(blocks, of) => {
                let of = of.map(size_of);
                let extent = of.extent();
                of.at(blocks
                    .iter()
                    .flat_map(|(length, at)| row(at * extent, *length, extent)))
            }
            Spec::Hindexed(blocks, of) => {
                let of = of.map(size_of);
                of.at(blocks
                    .iter()
                    .flat_map(|(length, at)| row(*at, *length, of.extent())))
            }
            Spec::IndexedBlock(length, places, of) => {
                let of = of.map(size_of);
                let extent = of.extent();
                of.at(places
                    .iter()
                    .flat_map(|at| row(at * extent, *length, extent)))
            }
            Spec::HindexedBlock(length, places, of) => {
                let of = of.map(size_of);
                of.at(places.iter().flat_map(|at| row(*at, *length, of.extent())))
            }
            Spec::Structure(members) => structure(members, size_of),
            Spec::Subarray(dimensions, order, of) => {
                let sizes: Vec<u64> = dimensions.iter().map(|d| d[0]).collect();
                let owned = dimensions.iter().map(|d| (d[2]..d[2] + d[1]).collect());
                array(&sizes, owned.collect(), *order, &of.map(size_of))
            }
            Spec::Darray(darray, of) => {
                array(&darray.sizes, owned(darray), darray.order, &of.map(size_of))
            }
            Spec::Resized(lower, extent, of) => TypeMap {
                bounds: Some(Bounds {
                    lower: *lower,
                    upper: lower + extent,
                    explicit: true,
                }),
                ..of.map(size_of)
            },
            Spec::Dup(of) => of.map(size_of),
        }
    }
}

/// The bounds of a type that is not empty.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    lower: i64,
    upper: i64,
    /// Given by resized, subarray or darray: overrules bounds from data.
    explicit: bool,
}

/// Every element of a type with its place, in order, and the bounds.
#[derive(Clone, Debug)]
pub(crate) struct TypeMap {
    pub(crate) elements: Vec<(Basic, i64)>,
    bounds: Option<Bounds>,
    alignment: u64,
}

impl TypeMap {
    pub(crate) fn lower(&self) -> i64 {
        self.bounds.map_or(0, |bounds| bounds.lower)
    }

    pub(crate) fn extent(&self) -> i64 {
        self.bounds.map_or(0, |bounds| bounds.upper - bounds.lower)
    }

    /// The place of every byte, where an element takes `size_of` bytes.
    pub(crate) fn bytes(&self, size_of: &dyn Fn(Basic) -> u64) -> Vec<i64> {
        self.elements
            .iter()
            .flat_map(|&(basic, place)| (0..size_of(basic) as i64).map(move |byte| place + byte))
            .collect()
    }

    fn of_element(basic: Basic, size: u64) -> TypeMap {
        // An element of another size than the native one is aligned as far as
        // that size allows.
        let natural = (0..4).rev().map(|power| 1 << power);
        let natural = natural.into_iter().find(|unit| size.is_multiple_of(*unit));
        let alignment = match size == basic.size() {
            true => basic.alignment(),
            false => natural.unwrap_or(1).min(basic.alignment()),
        };
        TypeMap {
            elements: vec![(basic, 0)],
            bounds: Some(Bounds {
                lower: 0,
                upper: size as i64,
                explicit: false,
            }),
            alignment,
        }
    }

    /// Copies of itself at these places.
    fn at(&self, places: impl IntoIterator<Item = i64>) -> TypeMap {
        TypeMap::assemble(places.into_iter().map(|place| (place, self)))
    }

    fn assemble<'a>(copies: impl Iterator<Item = (i64, &'a TypeMap)>) -> TypeMap {
        let mut all = TypeMap {
            elements: Vec::new(),
            bounds: None,
            alignment: 1,
        };
        for (place, map) in copies {
            let moved = map.elements.iter().map(|(basic, at)| (*basic, at + place));
            all.elements.extend(moved);
            all.alignment = all.alignment.max(map.alignment);
            if let Some(bounds) = map.bounds {
                all.widen(Bounds {
                    lower: bounds.lower + place,
                    upper: bounds.upper + place,
                    ..bounds
                });
            }
        }
        all
    }

    fn widen(&mut self, by: Bounds) {
        self.bounds = Some(match self.bounds {
            Some(mine) if mine.explicit == by.explicit => Bounds {
                lower: mine.lower.min(by.lower),
                upper: mine.upper.max(by.upper),
                ..mine
            },
            Some(mine) if mine.explicit => mine,
            _ => by,
        });
    }
}

fn structure(members: &[(u64, i64, Spec)], size_of: &dyn Fn(Basic) -> u64) -> TypeMap {
    let maps: Vec<TypeMap> = members.iter().map(|(_, _, of)| of.map(size_of)).collect();
    let copies = members
        .iter()
        .zip(&maps)
        .flat_map(|((length, at, _), map)| {
            (0..*length as i64).map(move |index| (at + index * map.extent(), map))
        });
    let mut all = TypeMap::assemble(copies);
    if let Some(bounds) = &mut all.bounds
        && !bounds.explicit
    {
        while (bounds.upper - bounds.lower) % all.alignment as i64 != 0 {
            bounds.upper += 1;
        }
    }
    all
}

/// The elements of an array whose indices are owned in every dimension.
fn array(sizes: &[u64], owned: Vec<Vec<u64>>, order: Order, of: &TypeMap) -> TypeMap {
    let mut slowest_first: Vec<usize> = (0..sizes.len()).collect();
    if order == Order::Fortran {
        slowest_first.reverse();
    }
    let mut linear = vec![0i64];
    for dimension in slowest_first {
        let next = linear.iter().flat_map(|place| {
            owned[dimension]
                .iter()
                .map(move |index| place * sizes[dimension] as i64 + *index as i64)
        });
        linear = next.collect();
    }
    let extent = of.extent();
    let upper = sizes.iter().product::<u64>() as i64 * extent;
    TypeMap {
        bounds: Some(Bounds {
            lower: 0,
            upper,
            explicit: true,
        }),
        alignment: of.alignment,
        ..of.at(linear.into_iter().map(|index| index * extent))
    }
}

/// The indices that a process owns in each dimension.
fn owned(darray: &Darray) -> Vec<Vec<u64>> {
    let (mut below, mut rank) = (darray.ranks, darray.rank);
    let dimensions = darray.sizes.iter().zip(&darray.grid);
    dimensions
        .zip(&darray.distributions)
        .map(|((&size, &processes), distribution)| {
            below /= processes;
            let coordinate = rank / below;
            rank %= below;
            let owner = |index: u64| match distribution {
                Distribution::None => 0,
                Distribution::Block(length) => {
                    index / length.unwrap_or_else(|| size.div_ceil(processes))
                }
                Distribution::Cyclic(length) => index / length.unwrap_or(1) % processes,
            };
            (0..size)
                .filter(|index| owner(*index) == coordinate)
                .collect()
        })
        .collect()
}
