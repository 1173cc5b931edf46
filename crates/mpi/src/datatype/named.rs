//! Predefined datatypes, by their names, which all hosts share.

use pario_layout::{Basic, Datatype as Layout, Pair, TypeError};

use super::DecodeError;
use crate::handles::Datatype;
use crate::host::Host;

/// Fortran's integers of given sizes.
pub(super) const INTEGERS: &[Basic] = &[
    Basic::Integer1,
    Basic::Integer2,
    Basic::Integer4,
    Basic::Integer8,
    Basic::Integer16,
];
/// Fortran's reals of given sizes.
pub(super) const REALS: &[Basic] = &[Basic::Real2, Basic::Real4, Basic::Real8, Basic::Real16];
/// Fortran's complex numbers of given sizes.
pub(super) const COMPLEXES: &[Basic] = &[
    Basic::Complex4,
    Basic::Complex8,
    Basic::Complex16,
    Basic::Complex32,
];
/// Fortran's logicals of given sizes.
const LOGICALS: &[Basic] = &[
    Basic::Logical1,
    Basic::Logical2,
    Basic::Logical4,
    Basic::Logical8,
    Basic::Logical16,
];

/// The pair types.
const PAIRS: &[(&str, Pair)] = &[
    ("MPI_FLOAT_INT", Pair::FloatInt),
    ("MPI_DOUBLE_INT", Pair::DoubleInt),
    ("MPI_LONG_INT", Pair::LongInt),
    ("MPI_2INT", Pair::TwoInt),
    ("MPI_SHORT_INT", Pair::ShortInt),
    ("MPI_LONG_DOUBLE_INT", Pair::LongDoubleInt),
    ("MPI_2REAL", Pair::TwoReal),
    ("MPI_2DOUBLE_PRECISION", Pair::TwoDoublePrecision),
    ("MPI_2INTEGER", Pair::TwoInteger),
];

/// Pairs of complex numbers, which some hosts still have.
const COMPLEX_PAIRS: &[(&str, Basic)] = &[
    ("MPI_2COMPLEX", Basic::Complex),
    ("MPI_2DOUBLE_COMPLEX", Basic::DoubleComplex),
];

/// MPI-1's markers of bounds: no data, and the bounds themselves come from the host.
const MARKERS: &[&str] = &["MPI_LB", "MPI_UB"];

pub(super) fn decode(host: &Host, datatype: Datatype) -> Result<Layout, DecodeError> {
    let size = host.type_size(datatype)?;
    let name = match host.standard_name(datatype) {
        Some(name) => name.to_owned(),
        None => host.type_name(datatype)?,
    };
    if let Some(basic) = Basic::from_name(&name).and_then(|basic| at_size(basic, size)) {
        return Ok(basic.into());
    }
    if let Some((_, pair)) = PAIRS.iter().find(|(known, _)| *known == name) {
        return Ok(Layout::pair(*pair));
    }
    if let Some((_, basic)) = COMPLEX_PAIRS.iter().find(|(known, _)| *known == name) {
        return Ok(Layout::contiguous(2, &(*basic).into())?);
    }
    if MARKERS.contains(&name.as_str()) {
        return Ok(Layout::contiguous(0, &Basic::Byte.into())?);
    }
    Err(DecodeError::UnknownName { name, size })
}

/// The basic type itself if the host's has the same size, or another one of its kind that has:
/// Fortran compilers have options for integers and reals of 8 bytes.
fn at_size(basic: Basic, size: u64) -> Option<Basic> {
    if basic.size() == size {
        return Some(basic);
    }
    let kinds = match basic {
        Basic::Integer => INTEGERS,
        Basic::Real | Basic::DoublePrecision => REALS,
        Basic::Complex | Basic::DoubleComplex => COMPLEXES,
        Basic::Logical => LOGICALS,
        _ => return None,
    };
    kinds.iter().copied().find(|kind| kind.size() == size)
}

/// A C structure of a value and an index.
pub(super) fn value_and_index(value: &Layout, index: &Layout) -> Result<Layout, TypeError> {
    let alignment = index.size().max(1).cast_signed();
    let place = value.extent().div_euclid(alignment) + i64::from(value.extent() % alignment != 0);
    Layout::structure(&[(1, 0, value.clone()), (1, place * alignment, index.clone())])
}
