//! The predefined types for MAXLOC and MINLOC.

use super::Datatype;
use crate::Basic;

/// A predefined pair of a value and an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pair {
    /// `MPI_FLOAT_INT`
    FloatInt,
    /// `MPI_DOUBLE_INT`
    DoubleInt,
    /// `MPI_LONG_INT`
    LongInt,
    /// `MPI_2INT`
    TwoInt,
    /// `MPI_SHORT_INT`
    ShortInt,
    /// `MPI_LONG_DOUBLE_INT`
    LongDoubleInt,
    /// `MPI_2REAL`
    TwoReal,
    /// `MPI_2DOUBLE_PRECISION`
    TwoDoublePrecision,
    /// `MPI_2INTEGER`
    TwoInteger,
}

impl Pair {
    /// The types of value and index.
    fn members(self) -> (Basic, Basic) {
        match self {
            Self::FloatInt => (Basic::Float, Basic::Int),
            Self::DoubleInt => (Basic::Double, Basic::Int),
            Self::LongInt => (Basic::Long, Basic::Int),
            Self::TwoInt => (Basic::Int, Basic::Int),
            Self::ShortInt => (Basic::Short, Basic::Int),
            Self::LongDoubleInt => (Basic::LongDouble, Basic::Int),
            Self::TwoReal => (Basic::Real, Basic::Real),
            Self::TwoDoublePrecision => (Basic::DoublePrecision, Basic::DoublePrecision),
            Self::TwoInteger => (Basic::Integer, Basic::Integer),
        }
    }
}

impl Datatype {
    /// A predefined pair type: a C structure of the two, padding included.
    pub fn pair(pair: Pair) -> Self {
        let (value, index) = pair.members();
        let place = value
            .size()
            .next_multiple_of(index.alignment())
            .cast_signed();
        Self::structure(&[(1, 0, value.into()), (1, place, index.into())])
            .expect("a predefined type is valid")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_padded_like_c_structures() {
        let shape = |pair| {
            let datatype = Datatype::pair(pair);
            (datatype.size(), datatype.extent(), datatype.true_extent())
        };
        assert_eq!(shape(Pair::FloatInt), (8, 8, 8));
        assert_eq!(shape(Pair::DoubleInt), (12, 16, 12));
        assert_eq!(shape(Pair::LongInt), (12, 16, 12));
        assert_eq!(shape(Pair::TwoInt), (8, 8, 8));
        assert_eq!(shape(Pair::ShortInt), (6, 8, 8));
        assert_eq!(shape(Pair::LongDoubleInt), (20, 32, 20));
        assert_eq!(shape(Pair::TwoDoublePrecision), (16, 16, 16));
    }
}
