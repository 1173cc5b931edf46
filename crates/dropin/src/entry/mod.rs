//! The functions of the standard's file chapter, as C programs call them.
//!
//! Every function is exported twice, as `MPI_` for programs and as `PMPI_` for
//! tools and for the hosts' Fortran bindings; neither calls the other.

mod completion;
mod consistency;
mod cxx;
mod data;
mod errors;
mod fortran;
pub(crate) mod handles;
mod init;
mod manage;
mod next;
mod pointers;
mod representation;
mod split;
mod texts;
mod types;
mod view;

use std::ffi::{c_int, c_void};

/// Defines functions of an open file: `|file| { ... }` is the work for one of pario's files;
/// for the host's own files, the host's function of that name is called.
macro_rules! file_functions {
    ($(
        $(#[$doc:meta])*
        $name:literal fn $rust:ident ( $fh:ident $(, $arg:ident : $type:ty)* $(,)? ) |$file:ident| $body:block
        $(or_else $otherwise:block)?
    )*) => {$(
        mod $rust {
            #![allow(unused_imports)]
            use super::*;

            $(#[$doc])*
            pub(super) unsafe extern "C-unwind" fn work($fh: $crate::files::FileId $(, $arg: $type)*) -> ::std::ffi::c_int {
                const NAME: &str = concat!("MPI_", $name);
                match $crate::files::find($fh) {
                    $crate::files::Found::Ours(found) => {
                        let $file = &*found;
                        $crate::call::on_file(NAME, $file, || $body)
                    }
                    $crate::files::Found::Closed => $crate::call::refuse_closed(NAME, $fh),
                    $crate::files::Found::Hosts if $crate::forward::is_null($fh) => $crate::forward::refuse(NAME, $fh),
                    $crate::files::Found::Hosts => {
                        type Function = unsafe extern "C-unwind" fn($crate::files::FileId $(, $type)*) -> ::std::ffi::c_int;
                        static HOSTS: $crate::forward::HostFunction = $crate::forward::HostFunction::new(NAME);
                        match HOSTS.get() {
                            // SAFETY: the host's function of this name has this type.
                            Some(function) => unsafe {
                                let function = ::std::mem::transmute::<*const ::std::ffi::c_void, Function>(function);
                                function($fh $(, $arg)*)
                            },
                            None => {
                                $(if true { return $otherwise; })?
                                #[allow(unreachable_code)]
                                $crate::forward::refuse(NAME, $fh)
                            }
                        }
                    }
                }
            }

            #[unsafe(export_name = concat!("MPI_", $name))]
            unsafe extern "C-unwind" fn mpi($fh: $crate::files::FileId $(, $arg: $type)*) -> ::std::ffi::c_int {
                // SAFETY: the caller's promises are those of the function.
                unsafe { work($fh $(, $arg)*) }
            }

            #[unsafe(export_name = concat!("PMPI_", $name))]
            unsafe extern "C-unwind" fn pmpi($fh: $crate::files::FileId $(, $arg: $type)*) -> ::std::ffi::c_int {
                // SAFETY: the caller's promises are those of the function.
                unsafe { work($fh $(, $arg)*) }
            }
        }
    )*};
}

/// Defines functions that concern none of pario's open files.
macro_rules! functions {
    ($(
        $(#[$doc:meta])*
        $name:literal fn $rust:ident ( $($arg:ident : $type:ty),* $(,)? ) -> $result:ty $body:block
    )*) => {$(
        mod $rust {
            #![allow(unused_imports)]
            use super::*;

            #[allow(dead_code)]
            const NAME: &str = concat!("MPI_", $name);

            $(#[$doc])*
            unsafe extern "C-unwind" fn work($($arg: $type),*) -> $result $body

            #[unsafe(export_name = concat!("MPI_", $name))]
            unsafe extern "C-unwind" fn mpi($($arg: $type),*) -> $result {
                // SAFETY: the caller's promises are those of the function.
                unsafe { work($($arg),*) }
            }

            #[unsafe(export_name = concat!("PMPI_", $name))]
            unsafe extern "C-unwind" fn pmpi($($arg: $type),*) -> $result {
                // SAFETY: the caller's promises are those of the function.
                unsafe { work($($arg),*) }
            }
        }
    )*};
}

pub(crate) use {file_functions, functions};

/// A handle of the host that C passes by value: the upper half is undefined if handles are C
/// integers.
pub(crate) type Raw = u64;
/// A status, or `MPI_STATUS_IGNORE`.
pub(crate) type StatusPointer = *mut c_void;
/// The address to which a handle of the host is written.
pub(crate) type HandlePointer = *mut c_void;
/// `MPI_Offset` and `MPI_Count`.
pub(crate) type Offset = i64;
/// A C truth value.
pub(crate) type Logical = c_int;
