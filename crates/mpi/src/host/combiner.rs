//! The constructors of datatypes, and their numbers on each host.

use std::ffi::c_int;

use super::abi::Flavour;

/// Defines the enum and its numbers: name, then MPICH, Open MPI, standard ABI. `_` if a host
/// lacks one.
macro_rules! combiners {
    ($($variant:ident = $name:literal, $mpich:tt, $open_mpi:tt, $standard:tt;)*) => {
        /// The constructor that made a datatype.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Combiner {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl Combiner {
            /// Every constructor.
            pub const ALL: &[Combiner] = &[$(Self::$variant),*];

            /// The standard's name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The number on hosts of that flavour, if they have the constructor.
            pub const fn number(self, flavour: Flavour) -> Option<c_int> {
                let row: [Option<c_int>; 3] = match self {
                    $(Self::$variant => [
                        combiners!(@number $mpich),
                        combiners!(@number $open_mpi),
                        combiners!(@number $standard),
                    ],)*
                };
                row[flavour.column()]
            }
        }
    };
    (@number _) => { None };
    (@number $number:literal) => { Some($number) };
}

combiners! {
    Named = "MPI_COMBINER_NAMED", 1, 0, 101;
    Dup = "MPI_COMBINER_DUP", 2, 1, 102;
    Contiguous = "MPI_COMBINER_CONTIGUOUS", 3, 2, 103;
    Vector = "MPI_COMBINER_VECTOR", 4, 3, 104;
    HvectorInteger = "MPI_COMBINER_HVECTOR_INTEGER", 5, 4, _;
    Hvector = "MPI_COMBINER_HVECTOR", 6, 5, 105;
    Indexed = "MPI_COMBINER_INDEXED", 7, 6, 106;
    HindexedInteger = "MPI_COMBINER_HINDEXED_INTEGER", 8, 7, _;
    Hindexed = "MPI_COMBINER_HINDEXED", 9, 8, 107;
    IndexedBlock = "MPI_COMBINER_INDEXED_BLOCK", 10, 9, 108;
    StructInteger = "MPI_COMBINER_STRUCT_INTEGER", 11, 10, _;
    Struct = "MPI_COMBINER_STRUCT", 12, 11, 110;
    Subarray = "MPI_COMBINER_SUBARRAY", 13, 12, 111;
    Darray = "MPI_COMBINER_DARRAY", 14, 13, 112;
    F90Real = "MPI_COMBINER_F90_REAL", 15, 14, 113;
    F90Complex = "MPI_COMBINER_F90_COMPLEX", 16, 15, 114;
    F90Integer = "MPI_COMBINER_F90_INTEGER", 17, 16, 115;
    Resized = "MPI_COMBINER_RESIZED", 18, 17, 116;
    HindexedBlock = "MPI_COMBINER_HINDEXED_BLOCK", 19, 18, 109;
    ValueIndex = "MPI_COMBINER_VALUE_INDEX", 20, _, 117;
}

impl Combiner {
    /// The constructor of that number.
    pub fn from_number(flavour: Flavour, number: c_int) -> Option<Combiner> {
        let is_it = |combiner: &Combiner| combiner.number(flavour) == Some(number);
        // Most numbers follow each other in this order.
        let first = Self::Named.number(flavour)?;
        let place = usize::try_from(number.checked_sub(first)?).ok()?;
        let likely = Self::ALL.get(place).copied().filter(is_it);
        likely.or_else(|| Self::ALL.iter().copied().find(is_it))
    }

    /// Whether types of this constructor are predefined and must not be freed.
    pub const fn is_predefined(self) -> bool {
        matches!(
            self,
            Self::Named | Self::F90Real | Self::F90Complex | Self::F90Integer | Self::ValueIndex
        )
    }
}
