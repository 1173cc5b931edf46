//! File handles as integers: Fortran's, and those of the standard ABI.
#![allow(unsafe_code)] // C functions

use std::ffi::{c_int, c_void};
use std::mem;

use super::functions;
use crate::files::{self, FileId};
use crate::forward::HostFunction;

type ToInteger = unsafe extern "C-unwind" fn(FileId) -> c_int;
type FromInteger = unsafe extern "C-unwind" fn(c_int) -> FileId;

/// The host's function of either name: older hosts lack the newer one, those with the standard
/// ABI the older one.
fn hosts(names: [&'static HostFunction; 2]) -> Option<*const c_void> {
    names.into_iter().find_map(HostFunction::get)
}

/// The integer of a file, pario's or the host's.
pub(crate) fn to_fortran(id: FileId) -> c_int {
    if id.is_ours() {
        return files::to_fortran(id);
    }
    static C2F: HostFunction = HostFunction::new("MPI_File_c2f");
    static TOINT: HostFunction = HostFunction::new("MPI_File_toint");
    match hosts([&C2F, &TOINT]) {
        // SAFETY: the host's functions of these names have this type.
        Some(function) => unsafe { mem::transmute::<*const c_void, ToInteger>(function)(id) },
        // Without a host there are no files of the host.
        None => 0,
    }
}

/// The file of an integer.
fn from_fortran(integer: c_int) -> FileId {
    if let Some(id) = files::from_fortran(integer) {
        return id;
    }
    static F2C: HostFunction = HostFunction::new("MPI_File_f2c");
    static FROMINT: HostFunction = HostFunction::new("MPI_File_fromint");
    match hosts([&F2C, &FROMINT]) {
        // SAFETY: the host's functions of these names have this type.
        Some(function) => unsafe {
            mem::transmute::<*const c_void, FromInteger>(function)(integer)
        },
        None => FileId(0),
    }
}

functions! {
    "File_c2f" fn c2f(fh: FileId) -> c_int {
        to_fortran(fh)
    }

    "File_f2c" fn f2c(integer: c_int) -> FileId {
        from_fortran(integer)
    }

    "File_toint" fn toint(fh: FileId) -> c_int {
        to_fortran(fh)
    }

    "File_fromint" fn fromint(integer: c_int) -> FileId {
        from_fortran(integer)
    }
}
