//! Data representations of the program, and the extents of types in a file.
#![allow(unsafe_code)] // C functions

use std::ffi::{c_char, c_int, c_void};
use std::mem;

use pario_datarep::UserRepresentation;

use super::{Offset, Raw, file_functions, functions};
use crate::call::{self, Outcome};
use crate::conversion::{Extent, Functions, Item};
use crate::files::FileId;
use crate::forward::HostFunction;
use crate::{datatypes, forward, memory, policy};

type Register = unsafe extern "C-unwind" fn(
    *const c_char,
    *const c_void,
    *const c_void,
    *const c_void,
    *mut c_void,
) -> c_int;

/// Registers a representation.
pub(super) fn register(name: &str, functions: Functions) -> Outcome {
    let representation: UserRepresentation = functions.try_into()?;
    pario_datarep::register(name, representation).map_err(engine::Error::from)?;
    Ok(())
}

/// Calls the host's function, if pario does nothing in this process.
macro_rules! hosts_register {
    ($name:expr, $($argument:expr),*) => {{
        static HOSTS: HostFunction = HostFunction::new($name);
        match HOSTS.get() {
            // SAFETY: the host's function of this name has this type; the
            // program's promises are those of the standard.
            Some(function) => unsafe {
                mem::transmute::<*const c_void, Register>(function)($($argument),*)
            },
            None => forward::refuse($name, FileId(0)),
        }
    }};
}

functions! {
    "Register_datarep" fn register_datarep(name: *const c_char, read: *const c_void, write: *const c_void, extent: *const c_void, state: *mut c_void) -> c_int {
        if policy::host_for_pario().is_none() {
            return hosts_register!(NAME, name, read, write, extent, state);
        }
        // SAFETY: the program's promises are those of the standard.
        call::on_no_file(NAME, || unsafe {
            let [read, write] = [read, write].map(|function| Item::c(function));
            let extent = Extent::c(extent);
            let name = memory::text(name, "the name of the data representation")?;
            register(name, Functions { read, write, extent, state })
        })
    }

    "Register_datarep_c" fn register_datarep_c(name: *const c_char, read: *const c_void, write: *const c_void, extent: *const c_void, state: *mut c_void) -> c_int {
        if policy::host_for_pario().is_none() {
            return hosts_register!(NAME, name, read, write, extent, state);
        }
        // SAFETY: the program's promises are those of the standard.
        call::on_no_file(NAME, || unsafe {
            let [read, write] = [read, write].map(|function| Item::large_c(function));
            let extent = Extent::c(extent);
            let name = memory::text(name, "the name of the data representation")?;
            register(name, Functions { read, write, extent, state })
        })
    }
}

file_functions! {
    "File_get_type_extent" fn get_type_extent(fh, datatype: Raw, extent: *mut Offset) |open| {
        let datatype = datatypes::decode(datatype)?;
        let bytes = open.file.type_extent(&datatype)?;
        // SAFETY: the program's promises are those of the standard.
        unsafe { memory::put(extent, bytes, "the extent") }
    }

    "File_get_type_extent_c" fn get_type_extent_c(fh, datatype: Raw, extent: *mut Offset) |open| {
        let datatype = datatypes::decode(datatype)?;
        let bytes = open.file.type_extent(&datatype)?;
        // SAFETY: the program's promises are those of the standard.
        unsafe { memory::put(extent, bytes, "the extent") }
    } or_else {
        // SAFETY: MPI_Aint and MPI_Count are of one size.
        unsafe { super::get_type_extent::work(fh, datatype, extent) }
    }
}
