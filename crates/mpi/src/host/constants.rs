//! Constants of MPI that differ between hosts.
//!
//! There is one line for each: the value with MPICH's ABI, with Open MPI's and with the
//! standard one. `tests/headers.rs` compares every line with the headers of the installed MPIs.

use super::abi::Flavour;
use super::loader::Library;
use crate::handles::{Comm, Datatype, Errhandler, FileHandle, Group, Info, Message, Op, Request};

/// Defines the numeric constants: field, type, name; MPICH, Open MPI, standard ABI.
macro_rules! constants {
    ($($field:ident: $type:ty = $name:literal, $mpich:literal, $open_mpi:literal, $standard:literal;)*) => {
        /// The numeric constants of one flavour.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Constants {
            $(#[doc = concat!("`", $name, "`")] pub $field: $type,)*
        }

        impl Constants {
            /// The name of every constant, with its value on each flavour in the order of
            /// [`Flavour::ALL`].
            pub const TABLE: &[(&str, [i64; 3])] =
                &[$(($name, [$mpich, $open_mpi, $standard])),*];

            /// The constants of a flavour.
            pub const fn of(flavour: Flavour) -> &'static Constants {
                const TABLES: [Constants; 3] = [
                    Constants { $($field: $mpich,)* },
                    Constants { $($field: $open_mpi,)* },
                    Constants { $($field: $standard,)* },
                ];
                &TABLES[flavour.column()]
            }
        }
    };
}

constants! {
    mode_rdonly: i32 = "MPI_MODE_RDONLY", 2, 2, 16;
    mode_rdwr: i32 = "MPI_MODE_RDWR", 8, 8, 32;
    mode_wronly: i32 = "MPI_MODE_WRONLY", 4, 4, 256;
    mode_create: i32 = "MPI_MODE_CREATE", 1, 1, 2;
    mode_excl: i32 = "MPI_MODE_EXCL", 64, 64, 8;
    mode_delete_on_close: i32 = "MPI_MODE_DELETE_ON_CLOSE", 16, 16, 4;
    mode_unique_open: i32 = "MPI_MODE_UNIQUE_OPEN", 32, 32, 128;
    mode_append: i32 = "MPI_MODE_APPEND", 128, 128, 1;
    mode_sequential: i32 = "MPI_MODE_SEQUENTIAL", 256, 256, 64;
    seek_set: i32 = "MPI_SEEK_SET", 600, 600, 403;
    seek_cur: i32 = "MPI_SEEK_CUR", 602, 602, 401;
    seek_end: i32 = "MPI_SEEK_END", 604, 604, 402;
    displacement_current: i64 = "MPI_DISPLACEMENT_CURRENT", -54278278, -54278278, -1;
    order_c: i32 = "MPI_ORDER_C", 56, 0, 12;
    order_fortran: i32 = "MPI_ORDER_FORTRAN", 57, 1, 15;
    distribute_block: i32 = "MPI_DISTRIBUTE_BLOCK", 121, 0, 17;
    distribute_cyclic: i32 = "MPI_DISTRIBUTE_CYCLIC", 122, 1, 18;
    distribute_none: i32 = "MPI_DISTRIBUTE_NONE", 123, 2, 16;
    distribute_dflt_darg: i32 = "MPI_DISTRIBUTE_DFLT_DARG", -49767, -1, 19;
    thread_single: i32 = "MPI_THREAD_SINGLE", 0, 0, 0;
    thread_funneled: i32 = "MPI_THREAD_FUNNELED", 1, 1, 1024;
    thread_serialized: i32 = "MPI_THREAD_SERIALIZED", 2, 2, 2048;
    thread_multiple: i32 = "MPI_THREAD_MULTIPLE", 3, 3, 4096;
    comm_type_shared: i32 = "MPI_COMM_TYPE_SHARED", 1, 0, 221;
    keyval_invalid: i32 = "MPI_KEYVAL_INVALID", 0x24000000, -1, 0;
    last_used_code: i32 = "MPI_LASTUSEDCODE", 0x6440000b, 5, 506;
    err_lastcode: i32 = "MPI_ERR_LASTCODE", 0x3fffffff, 92, 0x3fff;
    undefined: i32 = "MPI_UNDEFINED", -32766, -32766, -32766;
    any_source: i32 = "MPI_ANY_SOURCE", -2, -1, -1;
    any_tag: i32 = "MPI_ANY_TAG", -1, -1, -2;
    proc_null: i32 = "MPI_PROC_NULL", -1, -2, -3;
    ident: i32 = "MPI_IDENT", 0, 0, 201;
    congruent: i32 = "MPI_CONGRUENT", 1, 1, 202;
    similar: i32 = "MPI_SIMILAR", 2, 2, 203;
    unequal: i32 = "MPI_UNEQUAL", 3, 3, 204;
    max_info_key: usize = "MPI_MAX_INFO_KEY", 255, 36, 256;
    max_info_val: usize = "MPI_MAX_INFO_VAL", 1024, 256, 1024;
    max_error_string: usize = "MPI_MAX_ERROR_STRING", 512, 256, 512;
    max_object_name: usize = "MPI_MAX_OBJECT_NAME", 128, 64, 128;
    max_datarep_string: usize = "MPI_MAX_DATAREP_STRING", 128, 128, 128;
    max_library_version_string: usize = "MPI_MAX_LIBRARY_VERSION_STRING", 8192, 256, 8192;
    bottom: isize = "MPI_BOTTOM", 0, 0, 0;
    in_place: isize = "MPI_IN_PLACE", -1, 1, 1;
    status_ignore: isize = "MPI_STATUS_IGNORE", 1, 0, 0;
    statuses_ignore: isize = "MPI_STATUSES_IGNORE", 1, 0, 0;
    errcodes_ignore: isize = "MPI_ERRCODES_IGNORE", 0, 0, 0;
    conversion_fn_null: isize = "MPI_CONVERSION_FN_NULL", 0, 0, 0;
}

/// Defines the predefined handles: field, type, name; MPICH's number, Open MPI's symbol, the
/// standard ABI's number.
macro_rules! predefined {
    ($($field:ident: $type:ident = $name:literal, $mpich:literal, $symbol:literal, $standard:literal;)*) => {
        /// The predefined handles of a host.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Predefined {
            $(#[doc = concat!("`", $name, "`")] pub $field: $type,)*
        }

        impl Predefined {
            /// Every handle: its name, MPICH's number, Open MPI's symbol, the standard ABI's
            /// number.
            pub const TABLE: &[(&str, u64, &str, u64)] =
                &[$(($name, $mpich, $symbol, $standard)),*];

            /// The handles of a library, or the names of those it lacks.
            pub(super) fn of(
                flavour: Flavour,
                library: &Library,
            ) -> Result<Predefined, Vec<String>> {
                let mut missing = Vec::new();
                let mut handle = |mpich, symbol: &str, standard| match flavour {
                    Flavour::Mpich => mpich,
                    Flavour::Standard => standard,
                    Flavour::OpenMpi => library.variable(symbol).unwrap_or_else(|| {
                        missing.push(symbol.to_owned());
                        0
                    }),
                };
                let handles = Predefined {
                    $($field: $type(handle($mpich, $symbol, $standard)),)*
                };
                if missing.is_empty() { Ok(handles) } else { Err(missing) }
            }
        }
    };
}

predefined! {
    comm_world: Comm = "MPI_COMM_WORLD", 0x44000000, "ompi_mpi_comm_world", 0x101;
    comm_self: Comm = "MPI_COMM_SELF", 0x44000001, "ompi_mpi_comm_self", 0x102;
    comm_null: Comm = "MPI_COMM_NULL", 0x04000000, "ompi_mpi_comm_null", 0x100;
    group_null: Group = "MPI_GROUP_NULL", 0x08000000, "ompi_mpi_group_null", 0x108;
    group_empty: Group = "MPI_GROUP_EMPTY", 0x48000000, "ompi_mpi_group_empty", 0x109;
    file_null: FileHandle = "MPI_FILE_NULL", 0, "ompi_mpi_file_null", 0x118;
    info_null: Info = "MPI_INFO_NULL", 0x1c000000, "ompi_mpi_info_null", 0x130;
    info_env: Info = "MPI_INFO_ENV", 0x5c000001, "ompi_mpi_info_env", 0x131;
    request_null: Request = "MPI_REQUEST_NULL", 0x2c000000, "ompi_request_null", 0x180;
    message_null: Message = "MPI_MESSAGE_NULL", 0x2c000000, "ompi_message_null", 0x128;
    message_no_proc: Message = "MPI_MESSAGE_NO_PROC", 0x6c000000, "ompi_message_no_proc", 0x129;
    errhandler_null: Errhandler = "MPI_ERRHANDLER_NULL", 0x14000000, "ompi_mpi_errhandler_null", 0x140;
    errors_are_fatal: Errhandler = "MPI_ERRORS_ARE_FATAL", 0x54000000, "ompi_mpi_errors_are_fatal", 0x141;
    errors_return: Errhandler = "MPI_ERRORS_RETURN", 0x54000001, "ompi_mpi_errors_return", 0x143;
    datatype_null: Datatype = "MPI_DATATYPE_NULL", 0x0c000000, "ompi_mpi_datatype_null", 0x200;
    byte: Datatype = "MPI_BYTE", 0x4c00010d, "ompi_mpi_byte", 0x247;
    char: Datatype = "MPI_CHAR", 0x4c000101, "ompi_mpi_char", 0x243;
    int: Datatype = "MPI_INT", 0x4c000405, "ompi_mpi_int", 0x209;
    int64: Datatype = "MPI_INT64_T", 0x4c00083a, "ompi_mpi_int64_t", 0x258;
    uint64: Datatype = "MPI_UINT64_T", 0x4c00083e, "ompi_mpi_uint64_t", 0x259;
    op_max: Op = "MPI_MAX", 0x58000001, "ompi_mpi_op_max", 0x23;
    op_min: Op = "MPI_MIN", 0x58000002, "ompi_mpi_op_min", 0x22;
    op_sum: Op = "MPI_SUM", 0x58000003, "ompi_mpi_op_sum", 0x21;
    op_land: Op = "MPI_LAND", 0x58000005, "ompi_mpi_op_land", 0x30;
    op_band: Op = "MPI_BAND", 0x58000006, "ompi_mpi_op_band", 0x28;
    op_lor: Op = "MPI_LOR", 0x58000007, "ompi_mpi_op_lor", 0x31;
    op_bor: Op = "MPI_BOR", 0x58000008, "ompi_mpi_op_bor", 0x29;
}

/// `MPI_ERRORS_ABORT` came with MPI-4: Open MPI 4 lacks it.
pub(super) fn errors_abort(flavour: Flavour, library: &Library) -> Option<Errhandler> {
    match flavour {
        Flavour::Mpich => Some(Errhandler(0x5400_0003)),
        Flavour::OpenMpi => library.variable("ompi_mpi_errors_abort").map(Errhandler),
        Flavour::Standard => Some(Errhandler(0x142)),
    }
}

/// `MPI::ERRORS_THROW_EXCEPTIONS` of the C++ bindings, which MPI-3 removed.
pub(super) fn errors_throw(flavour: Flavour, library: &Library) -> Option<Errhandler> {
    match flavour {
        Flavour::Mpich => Some(Errhandler(0x5400_0002)),
        Flavour::OpenMpi => {
            let address = library.variable("ompi_mpi_errors_throw_exceptions");
            address.map(Errhandler)
        }
        Flavour::Standard => None,
    }
}
