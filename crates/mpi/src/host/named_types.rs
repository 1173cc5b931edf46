//! The handles of predefined datatypes.
//!
//! The name of a datatype identifies most of them, but a program may rename predefined ones,
//! and conversion functions of data representations need handles.

use super::abi::Flavour;
use super::{Host, Library};
use crate::handles::Datatype;

/// A predefined datatype on the three kinds of hosts; `None` if the kind lacks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedType {
    /// The standard's name.
    pub name: &'static str,
    /// The number under MPICH's ABI. Its second lowest byte is the size, which for Fortran
    /// types depends on how the host was configured.
    pub mpich: Option<u64>,
    /// Open MPI's symbol.
    pub symbol: Option<&'static str>,
    /// The number under the standard ABI.
    pub standard: Option<u64>,
}

/// The highest byte of MPICH's handles that contain the size.
const MPICH_BUILTIN: u64 = 0x4c;
/// The bits of such a handle that contain the size.
const MPICH_SIZE_BITS: u64 = 0xff00;

impl NamedType {
    /// The handle in a library.
    fn handle(&self, flavour: Flavour, library: &Library) -> Option<Datatype> {
        let raw = match flavour {
            Flavour::Mpich => self.mpich,
            Flavour::OpenMpi => self.symbol.and_then(|symbol| library.variable(symbol)),
            Flavour::Standard => self.standard,
        };
        raw.map(Datatype)
    }

    /// Whether a handle is this type's.
    fn is(&self, flavour: Flavour, library: &Library, datatype: Datatype) -> bool {
        let Some(own) = self.handle(flavour, library) else {
            return false;
        };
        let has_size = flavour == Flavour::Mpich && own.0 >> 24 == MPICH_BUILTIN;
        let ignored = if has_size { MPICH_SIZE_BITS } else { 0 };
        (own.0 ^ datatype.0) & !ignored == 0
    }
}

impl Host {
    /// The predefined datatype of a standard name, if the host's header has it. Some hosts have
    /// handles of types that they were built without: their size is zero.
    pub fn named_type(&self, name: &str) -> Option<Datatype> {
        let named = NamedType::ALL.iter().find(|named| named.name == name)?;
        named.handle(self.flavour, &self.library)
    }

    /// The standard's name of a predefined datatype, whatever the program calls it.
    pub fn standard_name(&self, datatype: Datatype) -> Option<&'static str> {
        let mut all = NamedType::ALL.iter();
        let found = all.find(|named| named.is(self.flavour, &self.library, datatype));
        found.map(|named| named.name)
    }
}

/// Defines the table: name; MPICH's number, Open MPI's symbol, the standard ABI's number.
macro_rules! named_types {
    ($($name:literal, $mpich:tt, $symbol:tt, $standard:tt;)*) => {
        impl NamedType {
            /// Every predefined datatype.
            pub const ALL: &[NamedType] = &[$(NamedType {
                name: $name,
                mpich: named_types!(@value $mpich),
                symbol: named_types!(@value $symbol),
                standard: named_types!(@value $standard),
            }),*];
        }
    };
    (@value _) => { None };
    (@value $value:literal) => { Some($value) };
}

named_types! {
    "MPI_CHAR", 0x4c000101, "ompi_mpi_char", 0x243;
    "MPI_SIGNED_CHAR", 0x4c000118, "ompi_mpi_signed_char", 0x244;
    "MPI_UNSIGNED_CHAR", 0x4c000102, "ompi_mpi_unsigned_char", 0x245;
    "MPI_BYTE", 0x4c00010d, "ompi_mpi_byte", 0x247;
    "MPI_PACKED", 0x4c00010f, "ompi_mpi_packed", 0x207;
    "MPI_WCHAR", 0x4c00040e, "ompi_mpi_wchar", 0x23c;
    "MPI_SHORT", 0x4c000203, "ompi_mpi_short", 0x208;
    "MPI_UNSIGNED_SHORT", 0x4c000204, "ompi_mpi_unsigned_short", 0x20c;
    "MPI_INT", 0x4c000405, "ompi_mpi_int", 0x209;
    "MPI_UNSIGNED", 0x4c000406, "ompi_mpi_unsigned", 0x20d;
    "MPI_LONG", 0x4c000807, "ompi_mpi_long", 0x20a;
    "MPI_UNSIGNED_LONG", 0x4c000808, "ompi_mpi_unsigned_long", 0x20e;
    "MPI_LONG_LONG", 0x4c000809, "ompi_mpi_long_long_int", 0x20b;
    "MPI_UNSIGNED_LONG_LONG", 0x4c000819, "ompi_mpi_unsigned_long_long", 0x20f;
    "MPI_FLOAT", 0x4c00040a, "ompi_mpi_float", 0x210;
    "MPI_DOUBLE", 0x4c00080b, "ompi_mpi_double", 0x214;
    "MPI_LONG_DOUBLE", 0x4c00100c, "ompi_mpi_long_double", 0x220;
    "MPI_INT8_T", 0x4c000137, "ompi_mpi_int8_t", 0x240;
    "MPI_INT16_T", 0x4c000238, "ompi_mpi_int16_t", 0x248;
    "MPI_INT32_T", 0x4c000439, "ompi_mpi_int32_t", 0x250;
    "MPI_INT64_T", 0x4c00083a, "ompi_mpi_int64_t", 0x258;
    "MPI_UINT8_T", 0x4c00013b, "ompi_mpi_uint8_t", 0x241;
    "MPI_UINT16_T", 0x4c00023c, "ompi_mpi_uint16_t", 0x249;
    "MPI_UINT32_T", 0x4c00043d, "ompi_mpi_uint32_t", 0x251;
    "MPI_UINT64_T", 0x4c00083e, "ompi_mpi_uint64_t", 0x259;
    "MPI_C_BOOL", 0x4c00013f, "ompi_mpi_c_bool", 0x238;
    "MPI_C_FLOAT_COMPLEX", 0x4c000840, "ompi_mpi_c_float_complex", 0x212;
    "MPI_C_DOUBLE_COMPLEX", 0x4c001041, "ompi_mpi_c_double_complex", 0x216;
    "MPI_C_LONG_DOUBLE_COMPLEX", 0x4c002042, "ompi_mpi_c_long_double_complex", 0x224;
    "MPI_AINT", 0x4c000843, "ompi_mpi_aint", 0x201;
    "MPI_OFFSET", 0x4c000844, "ompi_mpi_offset", 0x203;
    "MPI_COUNT", 0x4c000845, "ompi_mpi_count", 0x202;
    "MPI_CHARACTER", 0x4c00011a, "ompi_mpi_character", 0x21e;
    "MPI_LOGICAL", 0x4c00041d, "ompi_mpi_logical", 0x218;
    "MPI_INTEGER", 0x4c00041b, "ompi_mpi_integer", 0x219;
    "MPI_REAL", 0x4c00041c, "ompi_mpi_real", 0x21a;
    "MPI_DOUBLE_PRECISION", 0x4c00081f, "ompi_mpi_dblprec", 0x21c;
    "MPI_COMPLEX", 0x4c00081e, "ompi_mpi_cplex", 0x21b;
    "MPI_DOUBLE_COMPLEX", 0x4c001022, "ompi_mpi_dblcplex", 0x21d;
    "MPI_INTEGER1", 0x4c00012d, "ompi_mpi_integer1", 0x2c1;
    "MPI_INTEGER2", 0x4c00022f, "ompi_mpi_integer2", 0x2c9;
    "MPI_INTEGER4", 0x4c000430, "ompi_mpi_integer4", 0x2d1;
    "MPI_INTEGER8", 0x4c000831, "ompi_mpi_integer8", 0x2d9;
    "MPI_INTEGER16", 0x4c001032, "ompi_mpi_integer16", 0x2e1;
    "MPI_REAL2", 0x4c000226, "ompi_mpi_real2", 0x2ca;
    "MPI_REAL4", 0x4c000427, "ompi_mpi_real4", 0x2d2;
    "MPI_REAL8", 0x4c000829, "ompi_mpi_real8", 0x2da;
    "MPI_REAL16", 0x4c00102b, "ompi_mpi_real16", 0x2e2;
    "MPI_COMPLEX4", 0x4c00042e, _, 0x2d3;
    "MPI_COMPLEX8", 0x4c000828, "ompi_mpi_complex8", 0x2db;
    "MPI_COMPLEX16", 0x4c00102a, "ompi_mpi_complex16", 0x2e3;
    "MPI_COMPLEX32", 0x4c00202c, "ompi_mpi_complex32", 0x2eb;
    "MPI_LOGICAL1", 0x4c000147, "ompi_mpi_logical1", 0x2c0;
    "MPI_LOGICAL2", 0x4c000248, "ompi_mpi_logical2", 0x2c8;
    "MPI_LOGICAL4", 0x4c000449, "ompi_mpi_logical4", 0x2d0;
    "MPI_LOGICAL8", 0x4c00084a, "ompi_mpi_logical8", 0x2d8;
    "MPI_LOGICAL16", 0x4c00104b, _, 0x2e0;
    "MPI_CXX_BOOL", 0x4c000133, "ompi_mpi_cxx_bool", 0x239;
    "MPI_CXX_FLOAT_COMPLEX", 0x4c000834, "ompi_mpi_cxx_cplex", 0x213;
    "MPI_CXX_DOUBLE_COMPLEX", 0x4c001035, "ompi_mpi_cxx_dblcplex", 0x217;
    "MPI_CXX_LONG_DOUBLE_COMPLEX", 0x4c002036, "ompi_mpi_cxx_ldblcplex", 0x225;
    "MPI_FLOAT_INT", 0x8c000000, "ompi_mpi_float_int", 0x228;
    "MPI_DOUBLE_INT", 0x8c000001, "ompi_mpi_double_int", 0x229;
    "MPI_LONG_INT", 0x8c000002, "ompi_mpi_long_int", 0x22a;
    "MPI_2INT", 0x4c000816, "ompi_mpi_2int", 0x22b;
    "MPI_SHORT_INT", 0x8c000003, "ompi_mpi_short_int", 0x22c;
    "MPI_LONG_DOUBLE_INT", 0x8c000004, "ompi_mpi_longdbl_int", 0x22d;
    "MPI_2REAL", 0x4c000821, "ompi_mpi_2real", 0x230;
    "MPI_2DOUBLE_PRECISION", 0x4c001023, "ompi_mpi_2dblprec", 0x231;
    "MPI_2INTEGER", 0x4c000820, "ompi_mpi_2integer", 0x232;
    "MPI_2COMPLEX", _, "ompi_mpi_2cplex", _;
    "MPI_2DOUBLE_COMPLEX", _, "ompi_mpi_2dblcplex", _;
    "MPI_LB", 0x4c000010, "ompi_mpi_lb", _;
    "MPI_UB", 0x4c000011, "ompi_mpi_ub", _;
}
