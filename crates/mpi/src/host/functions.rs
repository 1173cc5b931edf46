//! The functions of the host, one per line.
//!
//! Handles that are passed by value are 64 bits in a register; a callee that takes a C integer
//! uses only the lower half of it (x86-64 and aarch64). Handles behind pointers have the width
//! of the host: see [`Slot`](super::abi::Slot) and [`Slots`](super::abi::Slots).

#![allow(unsafe_code)] // Addresses from the dynamic linker become function pointers.

use std::ffi::{c_char, c_int, c_void};
use std::mem;

use super::loader::Library;

/// A handle by value.
pub type Handle = u64;
/// A pointer to a handle, or to several.
pub type Handles = *mut c_void;
/// A pointer to a buffer, a status, an attribute, a callback.
pub type Pointer = *mut c_void;
/// A pointer to one C integer or several.
pub type Ints = *mut c_int;
/// A pointer to one `MPI_Aint` or `MPI_Count` or several: both are 64 bits wide.
pub type Longs = *mut i64;
/// A C string that is written.
pub type Text = *mut c_char;
/// A C string that is read.
pub type ConstText = *const c_char;

/// Defines the table: the functions that a host must have, those that some hosts lack, and
/// those that are not part of MPI.
macro_rules! functions {
    (
        required { $($required:ident = $required_name:literal ($($required_type:ty),*);)* }
        optional { $($optional:ident = $optional_name:literal ($($optional_type:ty),*) $(-> $optional_return:ty)?;)* }
        foreign { $($foreign:ident = $foreign_name:literal ($($foreign_type:ty),*);)* }
    ) => {
        /// The functions of a host. Names are without `MPI_`.
        #[derive(Debug)]
        pub struct Functions {
            $(#[doc = concat!("`MPI_", $required_name, "`")]
            pub $required: unsafe extern "C" fn($($required_type),*) -> c_int,)*
            $(#[doc = concat!("`MPI_", $optional_name, "`, where the host has it")]
            pub $optional: Option<unsafe extern "C" fn($($optional_type),*) -> functions!(@return $($optional_return)?)>,)*
            $(#[doc = concat!("`", $foreign_name, "`, where the host has it")]
            pub $foreign: Option<unsafe extern "C" fn($($foreign_type),*) -> c_int>,)*
        }

        /// The functions' names in messages.
        #[allow(non_upper_case_globals, dead_code, missing_docs)]
        pub(super) mod name {
            $(pub(in crate::host) const $required: &str = concat!("MPI_", $required_name);)*
            $(pub(in crate::host) const $optional: &str = concat!("MPI_", $optional_name);)*
        }

        impl Functions {
            /// Looks up every function; fails with the names of required ones that the library
            /// lacks.
            pub(super) fn of(library: &Library) -> Result<Functions, Vec<String>> {
                let required = [$(concat!("MPI_", $required_name)),*];
                let found = [$(library.function($required_name).is_some()),*];
                let missing = required.iter().zip(found).filter(|(_, found)| !found);
                let missing: Vec<String> = missing.map(|(name, _)| (*name).to_owned()).collect();
                if !missing.is_empty() {
                    return Err(missing);
                }
                let present = |name| library.function(name).expect("it was there just now");
                // SAFETY: the signatures are those of the standard, except for handles: see
                // above.
                Ok(unsafe { Functions {
                    $($required: mem::transmute::<
                        Pointer,
                        unsafe extern "C" fn($($required_type),*) -> c_int,
                    >(present($required_name)),)*
                    $($optional: library.function($optional_name).map(|address| mem::transmute::<
                        Pointer,
                        unsafe extern "C" fn($($optional_type),*) -> functions!(@return $($optional_return)?),
                    >(address)),)*
                    $($foreign: library.symbol($foreign_name).map(|address| mem::transmute::<
                        Pointer,
                        unsafe extern "C" fn($($foreign_type),*) -> c_int,
                    >(address)),)*
                } })
            }
        }
    };
    (@return) => { c_int };
    (@return $type:ty) => { $type };
}

functions! {
    required {
        initialized = "Initialized" (Ints);
        finalized = "Finalized" (Ints);
        query_thread = "Query_thread" (Ints);
        init = "Init" (Ints, Pointer);
        init_thread = "Init_thread" (Ints, Pointer, c_int, Ints);
        finalize = "Finalize" ();
        abort = "Abort" (Handle, c_int);
        get_version = "Get_version" (Ints, Ints);

        comm_dup = "Comm_dup" (Handle, Handles);
        comm_rank = "Comm_rank" (Handle, Ints);
        comm_size = "Comm_size" (Handle, Ints);
        comm_free = "Comm_free" (Handles);
        comm_split = "Comm_split" (Handle, c_int, c_int, Handles);
        comm_split_type = "Comm_split_type" (Handle, c_int, c_int, Handle, Handles);
        comm_compare = "Comm_compare" (Handle, Handle, Ints);
        comm_test_inter = "Comm_test_inter" (Handle, Ints);
        comm_group = "Comm_group" (Handle, Handles);
        comm_set_errhandler = "Comm_set_errhandler" (Handle, Handle);
        comm_get_errhandler = "Comm_get_errhandler" (Handle, Handles);
        comm_call_errhandler = "Comm_call_errhandler" (Handle, c_int);
        comm_create_keyval = "Comm_create_keyval" (Pointer, Pointer, Ints, Pointer);
        comm_free_keyval = "Comm_free_keyval" (Ints);
        comm_set_attr = "Comm_set_attr" (Handle, c_int, Pointer);
        comm_get_attr = "Comm_get_attr" (Handle, c_int, Pointer, Ints);
        comm_delete_attr = "Comm_delete_attr" (Handle, c_int);

        group_size = "Group_size" (Handle, Ints);
        group_rank = "Group_rank" (Handle, Ints);
        group_compare = "Group_compare" (Handle, Handle, Ints);
        group_translate_ranks = "Group_translate_ranks" (Handle, c_int, Ints, Handle, Ints);
        group_union = "Group_union" (Handle, Handle, Handles);
        group_free = "Group_free" (Handles);

        send = "Send" (Pointer, c_int, Handle, c_int, c_int, Handle);
        isend = "Isend" (Pointer, c_int, Handle, c_int, c_int, Handle, Handles);
        issend = "Issend" (Pointer, c_int, Handle, c_int, c_int, Handle, Handles);
        recv = "Recv" (Pointer, c_int, Handle, c_int, c_int, Handle, Pointer);
        irecv = "Irecv" (Pointer, c_int, Handle, c_int, c_int, Handle, Handles);
        iprobe = "Iprobe" (c_int, c_int, Handle, Ints, Pointer);
        improbe = "Improbe" (c_int, c_int, Handle, Ints, Handles, Pointer);
        mrecv = "Mrecv" (Pointer, c_int, Handle, Handles, Pointer);
        imrecv = "Imrecv" (Pointer, c_int, Handle, Handles, Handles);

        test = "Test" (Handles, Ints, Pointer);
        testall = "Testall" (c_int, Handles, Ints, Pointer);
        testany = "Testany" (c_int, Handles, Ints, Ints, Pointer);
        testsome = "Testsome" (c_int, Handles, Ints, Ints, Pointer);
        wait = "Wait" (Handles, Pointer);
        waitall = "Waitall" (c_int, Handles, Pointer);
        waitany = "Waitany" (c_int, Handles, Ints, Pointer);
        waitsome = "Waitsome" (c_int, Handles, Ints, Ints, Pointer);
        cancel = "Cancel" (Handles);
        request_free = "Request_free" (Handles);
        request_get_status = "Request_get_status" (Handle, Ints, Pointer);
        grequest_start = "Grequest_start" (Pointer, Pointer, Pointer, Pointer, Handles);
        grequest_complete = "Grequest_complete" (Handle);

        barrier = "Barrier" (Handle);
        bcast = "Bcast" (Pointer, c_int, Handle, c_int, Handle);
        allgather = "Allgather" (Pointer, c_int, Handle, Pointer, c_int, Handle, Handle);
        allgatherv = "Allgatherv" (Pointer, c_int, Handle, Pointer, Ints, Ints, Handle, Handle);
        allreduce = "Allreduce" (Pointer, Pointer, c_int, Handle, Handle, Handle);
        ialltoallw = "Ialltoallw" (Pointer, Ints, Ints, Handles, Pointer, Ints, Ints, Handles, Handle, Handles);

        info_create = "Info_create" (Handles);
        info_free = "Info_free" (Handles);
        info_dup = "Info_dup" (Handle, Handles);
        info_set = "Info_set" (Handle, ConstText, ConstText);
        info_delete = "Info_delete" (Handle, ConstText);
        info_get_nkeys = "Info_get_nkeys" (Handle, Ints);
        info_get_nthkey = "Info_get_nthkey" (Handle, c_int, Text);

        type_get_envelope = "Type_get_envelope" (Handle, Ints, Ints, Ints, Ints);
        type_get_contents = "Type_get_contents" (Handle, c_int, c_int, c_int, Ints, Longs, Handles);
        type_get_extent_x = "Type_get_extent_x" (Handle, Longs, Longs);
        type_get_true_extent_x = "Type_get_true_extent_x" (Handle, Longs, Longs);
        type_size_x = "Type_size_x" (Handle, Longs);
        type_get_name = "Type_get_name" (Handle, Text, Ints);
        type_dup = "Type_dup" (Handle, Handles);
        type_free = "Type_free" (Handles);
        type_commit = "Type_commit" (Handles);
        pack = "Pack" (Pointer, c_int, Handle, Pointer, c_int, Ints, Handle);
        type_contiguous = "Type_contiguous" (c_int, Handle, Handles);
        type_create_hindexed = "Type_create_hindexed" (c_int, Ints, Longs, Handle, Handles);
        type_create_keyval = "Type_create_keyval" (Pointer, Pointer, Ints, Pointer);
        type_free_keyval = "Type_free_keyval" (Ints);
        type_set_attr = "Type_set_attr" (Handle, c_int, Pointer);
        type_get_attr = "Type_get_attr" (Handle, c_int, Pointer, Ints);
        type_delete_attr = "Type_delete_attr" (Handle, c_int);

        status_set_elements_x = "Status_set_elements_x" (Pointer, Handle, i64);
        status_set_cancelled = "Status_set_cancelled" (Pointer, c_int);
        test_cancelled = "Test_cancelled" (Pointer, Ints);
        get_count = "Get_count" (Pointer, Handle, Ints);
        get_elements_x = "Get_elements_x" (Pointer, Handle, Longs);

        error_class = "Error_class" (c_int, Ints);
        error_string = "Error_string" (c_int, Text, Ints);
        add_error_class = "Add_error_class" (Ints);
        add_error_code = "Add_error_code" (c_int, Ints);
        add_error_string = "Add_error_string" (c_int, ConstText);
        comm_create_errhandler = "Comm_create_errhandler" (Pointer, Handles);
        file_create_errhandler = "File_create_errhandler" (Pointer, Handles);
        errhandler_free = "Errhandler_free" (Handles);
    }
    optional {
        info_get = "Info_get" (Handle, ConstText, c_int, Text, Ints);
        info_get_valuelen = "Info_get_valuelen" (Handle, ConstText, Ints, Ints);
        info_get_string = "Info_get_string" (Handle, ConstText, Ints, Text, Ints);

        type_get_envelope_c = "Type_get_envelope_c" (Handle, Longs, Longs, Longs, Longs, Ints);
        type_get_contents_c = "Type_get_contents_c" (Handle, i64, i64, i64, i64, Ints, Longs, Longs, Handles);
        type_get_extent = "Type_get_extent" (Handle, Longs, Longs);
        type_size = "Type_size" (Handle, Ints);

        request_get_status_all = "Request_get_status_all" (c_int, Handles, Ints, Pointer);
        request_get_status_any = "Request_get_status_any" (c_int, Handles, Ints, Ints, Pointer);
        request_get_status_some = "Request_get_status_some" (c_int, Handles, Ints, Ints, Pointer);

        comm_c2f = "Comm_c2f" (Handle);
        comm_f2c = "Comm_f2c" (c_int) -> u64;
        comm_toint = "Comm_toint" (Handle);
        comm_fromint = "Comm_fromint" (c_int) -> u64;
        type_c2f = "Type_c2f" (Handle);
        type_f2c = "Type_f2c" (c_int) -> u64;
        type_toint = "Type_toint" (Handle);
        type_fromint = "Type_fromint" (c_int) -> u64;
        info_c2f = "Info_c2f" (Handle);
        info_f2c = "Info_f2c" (c_int) -> u64;
        info_toint = "Info_toint" (Handle);
        info_fromint = "Info_fromint" (c_int) -> u64;
        request_c2f = "Request_c2f" (Handle);
        request_f2c = "Request_f2c" (c_int) -> u64;
        request_toint = "Request_toint" (Handle);
        request_fromint = "Request_fromint" (c_int) -> u64;
        errhandler_c2f = "Errhandler_c2f" (Handle);
        errhandler_f2c = "Errhandler_f2c" (c_int) -> u64;
        errhandler_toint = "Errhandler_toint" (Handle);
        errhandler_fromint = "Errhandler_fromint" (c_int) -> u64;
        op_c2f = "Op_c2f" (Handle);
        op_f2c = "Op_f2c" (c_int) -> u64;
        op_toint = "Op_toint" (Handle);
        op_fromint = "Op_fromint" (c_int) -> u64;
        group_c2f = "Group_c2f" (Handle);
        group_f2c = "Group_f2c" (c_int) -> u64;
        group_toint = "Group_toint" (Handle);
        group_fromint = "Group_fromint" (c_int) -> u64;
    }
    foreign {
        opal_progress_register = "opal_progress_register" (Pointer);
        opal_progress_unregister = "opal_progress_unregister" (Pointer);
        opal_progress = "opal_progress" ();
        mpix_async_start = "MPIX_Async_start" (Pointer, Pointer, Handle);
        mpix_grequest_start = "MPIX_Grequest_start" (Pointer, Pointer, Pointer, Pointer, Pointer, Pointer, Handles);
    }
}
