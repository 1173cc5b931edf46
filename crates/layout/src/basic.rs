//! The predefined types.

/// Defines the enum and its tables from one list, so that they cannot diverge.
macro_rules! basics {
    ($($variant:ident = $code:literal, $name:literal, $size:literal, $alignment:literal;)*) => {
        /// A predefined MPI datatype of C, C++ or Fortran.
        ///
        /// Pair types such as `MPI_DOUBLE_INT` are structures of two of these; see
        /// [`Datatype::pair`](crate::Datatype::pair).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Basic {
            $(#[doc = concat!("`", $name, "`")] $variant = $code,)*
        }

        impl Basic {
            /// Every predefined type.
            pub const ALL: &[Basic] = &[$(Basic::$variant),*];

            /// Size in memory in bytes, on 64-bit Linux.
            pub const fn size(self) -> u64 {
                match self { $(Basic::$variant => $size,)* }
            }

            /// Alignment in memory in bytes, on 64-bit Linux.
            pub const fn alignment(self) -> u64 {
                match self { $(Basic::$variant => $alignment,)* }
            }

            /// The name in the MPI standard, such as `"MPI_INT"`.
            pub const fn name(self) -> &'static str {
                match self { $(Basic::$variant => $name,)* }
            }

            /// The type with this wire code.
            pub const fn from_code(code: u8) -> Option<Basic> {
                match code { $($code => Some(Basic::$variant),)* _ => None }
            }
        }
    };
}

// Codes are part of the wire form: never reuse one.
basics! {
    Char = 1, "MPI_CHAR", 1, 1;
    SignedChar = 2, "MPI_SIGNED_CHAR", 1, 1;
    UnsignedChar = 3, "MPI_UNSIGNED_CHAR", 1, 1;
    Byte = 4, "MPI_BYTE", 1, 1;
    Packed = 5, "MPI_PACKED", 1, 1;
    Wchar = 6, "MPI_WCHAR", 4, 4;
    Short = 7, "MPI_SHORT", 2, 2;
    UnsignedShort = 8, "MPI_UNSIGNED_SHORT", 2, 2;
    Int = 9, "MPI_INT", 4, 4;
    Unsigned = 10, "MPI_UNSIGNED", 4, 4;
    Long = 11, "MPI_LONG", 8, 8;
    UnsignedLong = 12, "MPI_UNSIGNED_LONG", 8, 8;
    LongLong = 13, "MPI_LONG_LONG", 8, 8;
    UnsignedLongLong = 14, "MPI_UNSIGNED_LONG_LONG", 8, 8;
    Float = 15, "MPI_FLOAT", 4, 4;
    Double = 16, "MPI_DOUBLE", 8, 8;
    LongDouble = 17, "MPI_LONG_DOUBLE", 16, 16;
    Int8 = 18, "MPI_INT8_T", 1, 1;
    Int16 = 19, "MPI_INT16_T", 2, 2;
    Int32 = 20, "MPI_INT32_T", 4, 4;
    Int64 = 21, "MPI_INT64_T", 8, 8;
    Uint8 = 22, "MPI_UINT8_T", 1, 1;
    Uint16 = 23, "MPI_UINT16_T", 2, 2;
    Uint32 = 24, "MPI_UINT32_T", 4, 4;
    Uint64 = 25, "MPI_UINT64_T", 8, 8;
    CBool = 26, "MPI_C_BOOL", 1, 1;
    CFloatComplex = 27, "MPI_C_FLOAT_COMPLEX", 8, 4;
    CDoubleComplex = 28, "MPI_C_DOUBLE_COMPLEX", 16, 8;
    CLongDoubleComplex = 29, "MPI_C_LONG_DOUBLE_COMPLEX", 32, 16;
    Aint = 30, "MPI_AINT", 8, 8;
    Offset = 31, "MPI_OFFSET", 8, 8;
    Count = 32, "MPI_COUNT", 8, 8;
    Character = 33, "MPI_CHARACTER", 1, 1;
    Logical = 34, "MPI_LOGICAL", 4, 4;
    Integer = 35, "MPI_INTEGER", 4, 4;
    Real = 36, "MPI_REAL", 4, 4;
    DoublePrecision = 37, "MPI_DOUBLE_PRECISION", 8, 8;
    Complex = 38, "MPI_COMPLEX", 8, 4;
    DoubleComplex = 39, "MPI_DOUBLE_COMPLEX", 16, 8;
    Integer1 = 40, "MPI_INTEGER1", 1, 1;
    Integer2 = 41, "MPI_INTEGER2", 2, 2;
    Integer4 = 42, "MPI_INTEGER4", 4, 4;
    Integer8 = 43, "MPI_INTEGER8", 8, 8;
    Integer16 = 44, "MPI_INTEGER16", 16, 16;
    Real2 = 45, "MPI_REAL2", 2, 2;
    Real4 = 46, "MPI_REAL4", 4, 4;
    Real8 = 47, "MPI_REAL8", 8, 8;
    Real16 = 48, "MPI_REAL16", 16, 16;
    Complex4 = 49, "MPI_COMPLEX4", 4, 2;
    Complex8 = 50, "MPI_COMPLEX8", 8, 4;
    Complex16 = 51, "MPI_COMPLEX16", 16, 8;
    Complex32 = 52, "MPI_COMPLEX32", 32, 16;
    Logical1 = 53, "MPI_LOGICAL1", 1, 1;
    Logical2 = 54, "MPI_LOGICAL2", 2, 2;
    Logical4 = 55, "MPI_LOGICAL4", 4, 4;
    Logical8 = 56, "MPI_LOGICAL8", 8, 8;
    Logical16 = 57, "MPI_LOGICAL16", 16, 16;
    CxxBool = 58, "MPI_CXX_BOOL", 1, 1;
    CxxFloatComplex = 59, "MPI_CXX_FLOAT_COMPLEX", 8, 4;
    CxxDoubleComplex = 60, "MPI_CXX_DOUBLE_COMPLEX", 16, 8;
    CxxLongDoubleComplex = 61, "MPI_CXX_LONG_DOUBLE_COMPLEX", 32, 16;
}

/// Synonyms defined by the standard.
const SYNONYMS: &[(&str, Basic)] = &[
    ("MPI_LONG_LONG_INT", Basic::LongLong),
    ("MPI_C_COMPLEX", Basic::CFloatComplex),
];

impl Basic {
    /// The type with this name; synonyms are recognised.
    pub fn from_name(name: &str) -> Option<Basic> {
        let synonym = SYNONYMS.iter().find(|(synonym, _)| *synonym == name);
        let named = || Self::ALL.iter().copied().find(|basic| basic.name() == name);
        synonym.map(|(_, basic)| *basic).or_else(named)
    }

    /// Wire code of this type.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Alignment of an element that takes `size` bytes in some representation: the native
    /// alignment if the size is native, otherwise the largest that divides the size.
    pub(crate) fn alignment_at(self, size: u64) -> u64 {
        if size == self.size() || size == 0 {
            return self.alignment();
        }
        let natural = 1 << size.trailing_zeros();
        natural.min(self.alignment())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_round_trip() {
        for &basic in Basic::ALL {
            assert_eq!(Basic::from_name(basic.name()), Some(basic));
            assert_eq!(Basic::from_code(basic.code()), Some(basic));
            assert!(basic.alignment().is_power_of_two());
            assert_eq!(basic.size() % basic.alignment(), 0, "{}", basic.name());
        }
        assert_eq!(Basic::from_name("MPI_LONG_LONG_INT"), Some(Basic::LongLong));
        assert_eq!(Basic::from_name("MPI_NOTHING"), None);
        assert_eq!(Basic::from_code(0), None);
    }

    #[test]
    fn sizes_match_the_compiler() {
        assert_eq!(Basic::Long.size() as usize, size_of::<std::ffi::c_long>());
        assert_eq!(Basic::Int.size() as usize, size_of::<std::ffi::c_int>());
        assert_eq!(Basic::Aint.size() as usize, size_of::<isize>());
    }
}
