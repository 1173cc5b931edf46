//! Decoding a datatype, so that the same type can be built elsewhere.

use std::collections::HashMap;

use super::{Constructor, Darray, Datatype, Dimension, Order, Unit};
use crate::Basic;

/// A constructor and its arguments. Inner types are indices of earlier entries in the list that
/// [`Datatype::contents`] returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contents<'a> {
    /// A predefined type.
    Basic(Basic),
    /// [`Datatype::contiguous`]
    Contiguous {
        /// Number of instances.
        count: u64,
        /// The inner type.
        of: usize,
    },
    /// [`Datatype::vector`]
    Vector {
        /// Number of blocks.
        count: u64,
        /// Instances per block.
        block_length: u64,
        /// Extents from the start of one block to the next.
        stride: i64,
        /// The inner type.
        of: usize,
    },
    /// [`Datatype::hvector`]
    Hvector {
        /// Number of blocks.
        count: u64,
        /// Instances per block.
        block_length: u64,
        /// Bytes from the start of one block to the next.
        stride: i64,
        /// The inner type.
        of: usize,
    },
    /// [`Datatype::indexed`] and [`Datatype::indexed_block`]
    Indexed {
        /// Length and displacement in extents of each block.
        blocks: Vec<(u64, i64)>,
        /// The inner type.
        of: usize,
    },
    /// [`Datatype::hindexed`] and [`Datatype::hindexed_block`]
    Hindexed {
        /// Length and displacement in bytes of each block.
        blocks: Vec<(u64, i64)>,
        /// The inner type.
        of: usize,
    },
    /// [`Datatype::structure`]
    Structure {
        /// Length, displacement in bytes and inner type of each block.
        members: Vec<(u64, i64, usize)>,
    },
    /// [`Datatype::subarray`]
    Subarray {
        /// Elements of the array in each dimension.
        sizes: Vec<u64>,
        /// Elements of the part in each dimension.
        subsizes: Vec<u64>,
        /// The first element of the part in each dimension.
        starts: Vec<u64>,
        /// Order of the array in memory.
        order: Order,
        /// The inner type.
        of: usize,
    },
    /// [`Datatype::darray`]
    Darray {
        /// Its arguments.
        array: &'a Darray,
        /// The inner type.
        of: usize,
    },
    /// [`Datatype::resized`]
    Resized {
        /// The lower bound.
        lower_bound: i64,
        /// The extent.
        extent: i64,
        /// The inner type.
        of: usize,
    },
}

impl Datatype {
    /// The tree of constructors as a list. Inner types precede the types that use them, shared
    /// types appear once, and this type comes last.
    pub fn contents(&self) -> Vec<(&Datatype, Contents<'_>)> {
        let mut list = Vec::new();
        add(self, &mut list, &mut HashMap::new());
        list
    }
}

fn add<'a>(
    datatype: &'a Datatype,
    list: &mut Vec<(&'a Datatype, Contents<'a>)>,
    known: &mut HashMap<usize, usize>,
) -> usize {
    if let Some(&index) = known.get(&datatype.address()) {
        return index;
    }
    let children: Vec<usize> = datatype
        .constructor()
        .children()
        .map(|child| add(child, list, known))
        .collect();
    list.push((datatype, contents(datatype.constructor(), &children)));
    known.insert(datatype.address(), list.len() - 1);
    list.len() - 1
}

/// One constructor; `children` are the indices of its inner types.
fn contents<'a>(constructor: &'a Constructor, children: &[usize]) -> Contents<'a> {
    let of = children.first().copied().unwrap_or_default();
    match constructor {
        Constructor::Basic(basic) => Contents::Basic(*basic),
        &Constructor::Contiguous { count, .. } => Contents::Contiguous { count, of },
        &Constructor::Vector {
            count,
            block_length,
            stride,
            unit,
            ..
        } => match unit {
            Unit::Extents => Contents::Vector {
                count,
                block_length,
                stride,
                of,
            },
            Unit::Bytes => Contents::Hvector {
                count,
                block_length,
                stride,
                of,
            },
        },
        Constructor::Indexed {
            lengths,
            displacements,
            unit,
            ..
        } => {
            let places = displacements.iter().enumerate();
            let blocks = places
                .map(|(index, &place)| (lengths.get(index), place))
                .collect();
            match unit {
                Unit::Extents => Contents::Indexed { blocks, of },
                Unit::Bytes => Contents::Hindexed { blocks, of },
            }
        }
        Constructor::Structure { members } => {
            let members = members.iter().zip(children);
            Contents::Structure {
                members: members
                    .map(|(member, &of)| (member.block_length, member.displacement, of))
                    .collect(),
            }
        }
        Constructor::Subarray {
            dimensions, order, ..
        } => {
            let each = |part: fn(&Dimension) -> u64| dimensions.iter().map(part).collect();
            Contents::Subarray {
                sizes: each(|dimension| dimension.size),
                subsizes: each(|dimension| dimension.subsize),
                starts: each(|dimension| dimension.start),
                order: *order,
                of,
            }
        }
        Constructor::Darray { array, .. } => Contents::Darray { array, of },
        &Constructor::Resized {
            lower_bound,
            extent,
            ..
        } => Contents::Resized {
            lower_bound,
            extent,
            of,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_types_come_first_and_shared_ones_once() {
        let int = Datatype::basic(Basic::Int);
        let row = Datatype::vector(3, 2, 4, &int).unwrap();
        let both = Datatype::structure(&[(1, 0, row.clone()), (2, 64, row)]).unwrap();
        let list: Vec<_> = both.contents().into_iter().map(|(_, it)| it).collect();
        let expected = [
            Contents::Basic(Basic::Int),
            Contents::Vector {
                count: 3,
                block_length: 2,
                stride: 4,
                of: 0,
            },
            Contents::Structure {
                members: vec![(1, 0, 1), (2, 64, 1)],
            },
        ];
        assert_eq!(list, expected);
    }

    #[test]
    fn shared_inner_types_keep_the_list_short() {
        let mut datatype = Datatype::basic(Basic::Byte);
        for _ in 0..40 {
            let member = |place| (1, place, datatype.clone());
            datatype = Datatype::structure(&[member(0), member(datatype.extent())]).unwrap();
        }
        assert_eq!(datatype.contents().len(), 41);
    }
}
