//! The constructors of the standard.

use std::sync::OnceLock;

use super::{Constructor, Darray, Datatype, Dimension, Lengths, Member, Order, Unit};
use crate::{Basic, Element, Signature, TypeError};

impl Datatype {
    /// The predefined type of a Rust number: `Datatype::of::<f64>()` is `MPI_DOUBLE`.
    pub fn of<T: Element>() -> Self {
        Self::basic(T::BASIC)
    }

    /// A predefined type. Cached, since programs pass one to every access.
    pub fn basic(basic: Basic) -> Self {
        Self::basic_ref(basic).clone()
    }

    /// As [`Datatype::basic`], without a reference to count.
    pub fn basic_ref(basic: Basic) -> &'static Self {
        static MADE: [OnceLock<Datatype>; 1 << u8::BITS] =
            [const { OnceLock::new() }; 1 << u8::BITS];
        let make = || Self::new(Constructor::Basic(basic)).expect("a predefined type is valid");
        MADE[usize::from(basic.code())].get_or_init(make)
    }

    /// `count` instances in a row: `MPI_Type_contiguous`.
    pub fn contiguous(count: u64, of: &Datatype) -> Result<Self, TypeError> {
        Self::new(Constructor::Contiguous {
            count,
            of: of.clone(),
        })
    }

    /// Blocks whose starts are `stride` extents apart: `MPI_Type_vector`.
    pub fn vector(
        count: u64,
        block_length: u64,
        stride: i64,
        of: &Datatype,
    ) -> Result<Self, TypeError> {
        let (unit, of) = (Unit::Extents, of.clone());
        Self::new(Constructor::Vector {
            count,
            block_length,
            stride,
            unit,
            of,
        })
    }

    /// Blocks whose starts are `stride_bytes` apart: `MPI_Type_create_hvector`.
    pub fn hvector(
        count: u64,
        block_length: u64,
        stride_bytes: i64,
        of: &Datatype,
    ) -> Result<Self, TypeError> {
        let (unit, of) = (Unit::Bytes, of.clone());
        Self::new(Constructor::Vector {
            count,
            block_length,
            stride: stride_bytes,
            unit,
            of,
        })
    }

    /// Blocks of (length, displacement in extents): `MPI_Type_indexed`.
    pub fn indexed(blocks: &[(u64, i64)], of: &Datatype) -> Result<Self, TypeError> {
        Self::blocks(blocks, Unit::Extents, of)
    }

    /// Blocks of (length, displacement in bytes): `MPI_Type_create_hindexed`.
    pub fn hindexed(blocks: &[(u64, i64)], of: &Datatype) -> Result<Self, TypeError> {
        Self::blocks(blocks, Unit::Bytes, of)
    }

    fn blocks(blocks: &[(u64, i64)], unit: Unit, of: &Datatype) -> Result<Self, TypeError> {
        let lengths = Lengths::Each(blocks.iter().map(|(length, _)| *length).collect());
        let displacements = blocks
            .iter()
            .map(|(_, displacement)| *displacement)
            .collect();
        Self::new(Constructor::Indexed {
            lengths,
            displacements,
            unit,
            of: of.clone(),
        })
    }

    /// Blocks of one length at displacements in extents: `MPI_Type_create_indexed_block`.
    pub fn indexed_block(
        block_length: u64,
        displacements: &[i64],
        of: &Datatype,
    ) -> Result<Self, TypeError> {
        Self::equal_blocks(block_length, displacements, Unit::Extents, of)
    }

    /// Blocks of one length at displacements in bytes: `MPI_Type_create_hindexed_block`.
    pub fn hindexed_block(
        block_length: u64,
        displacements: &[i64],
        of: &Datatype,
    ) -> Result<Self, TypeError> {
        Self::equal_blocks(block_length, displacements, Unit::Bytes, of)
    }

    fn equal_blocks(
        block_length: u64,
        displacements: &[i64],
        unit: Unit,
        of: &Datatype,
    ) -> Result<Self, TypeError> {
        let (lengths, displacements) = (Lengths::Uniform(block_length), displacements.into());
        Self::new(Constructor::Indexed {
            lengths,
            displacements,
            unit,
            of: of.clone(),
        })
    }

    /// Blocks of (length, displacement in bytes, type): `MPI_Type_create_struct`.
    ///
    /// The extent is rounded up to the strictest alignment among the members, as a C compiler
    /// does, unless a member's bounds were set by [`resized`](Self::resized).
    pub fn structure(members: &[(u64, i64, Datatype)]) -> Result<Self, TypeError> {
        let member = |(block_length, displacement, of): &(u64, i64, Datatype)| Member {
            block_length: *block_length,
            displacement: *displacement,
            of: of.clone(),
        };
        Self::new(Constructor::Structure {
            members: members.iter().map(member).collect(),
        })
    }

    /// A part of an array: `MPI_Type_create_subarray`. The extent is that of the whole array.
    ///
    /// Unlike in the standard, the part may be empty in any dimension.
    pub fn subarray(
        sizes: &[u64],
        subsizes: &[u64],
        starts: &[u64],
        order: Order,
        of: &Datatype,
    ) -> Result<Self, TypeError> {
        if sizes.is_empty() || sizes.len() != subsizes.len() || sizes.len() != starts.len() {
            return Err(TypeError::argument(format!(
                "a subarray needs one size, subsize and start for each of one or more dimensions, \
                 not {}, {} and {}",
                sizes.len(),
                subsizes.len(),
                starts.len()
            )));
        }
        let places = sizes.iter().zip(subsizes).zip(starts).enumerate();
        let dimensions = places.map(|(index, ((&size, &subsize), &start))| {
            if subsize > size || start > size - subsize {
                return Err(TypeError::argument(format!(
                    "a part of {subsize} elements from {start} on exceeds dimension {index} of \
                     the array, which has {size}"
                )));
            }
            Ok(Dimension {
                size,
                subsize,
                start,
            })
        });
        let dimensions = dimensions.collect::<Result<_, _>>()?;
        Self::new(Constructor::Subarray {
            dimensions,
            order,
            of: of.clone(),
        })
    }

    /// One process's part of a distributed array: `MPI_Type_create_darray`. The extent is that
    /// of the whole array.
    pub fn darray(array: &Darray, of: &Datatype) -> Result<Self, TypeError> {
        array.check()?;
        Self::new(Constructor::Darray {
            array: array.clone(),
            of: of.clone(),
        })
    }

    /// The same data with other bounds: `MPI_Type_create_resized`.
    pub fn resized(of: &Datatype, lower_bound: i64, extent: i64) -> Result<Self, TypeError> {
        Self::new(Constructor::Resized {
            lower_bound,
            extent,
            of: of.clone(),
        })
    }

    /// The same type: `MPI_Type_dup`.
    pub fn dup(&self) -> Self {
        self.clone()
    }
}

/// The basic types of a constructed type, in type-map order.
pub(super) fn signature(constructor: &Constructor) -> Result<Signature, TypeError> {
    let overflow = || TypeError::overflow("the number of elements");
    match constructor {
        Constructor::Basic(basic) => Ok(Signature::basic(*basic)),
        Constructor::Contiguous { count, of } => of.signature().repeat(*count),
        Constructor::Vector {
            count,
            block_length,
            of,
            ..
        } => of.signature().repeat(*block_length)?.repeat(*count),
        Constructor::Indexed {
            lengths,
            displacements,
            of,
            ..
        } => {
            let mut lengths = (0..displacements.len()).map(|index| lengths.get(index));
            let total = lengths
                .try_fold(0_u64, u64::checked_add)
                .ok_or_else(overflow)?;
            of.signature().repeat(total)
        }
        Constructor::Structure { members } => {
            let block = |member: &Member| member.of.signature().repeat(member.block_length);
            let parts = members.iter().map(block).collect::<Result<Vec<_>, _>>()?;
            Signature::sequence(&parts)
        }
        Constructor::Subarray { dimensions, of, .. } => {
            let each = |signature: Signature, part: &Dimension| signature.repeat(part.subsize);
            dimensions.iter().try_fold(of.signature().clone(), each)
        }
        Constructor::Darray { array, of } => {
            let counts = array.grid().map(|axis| axis.elements());
            let mut signature = of.signature().clone();
            for count in counts {
                signature = signature.repeat(count)?;
            }
            Ok(signature)
        }
        Constructor::Resized { of, .. } => Ok(of.signature().clone()),
    }
}
