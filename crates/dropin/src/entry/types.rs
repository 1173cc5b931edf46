//! Contiguous datatypes, as the program makes, commits and frees them.
//!
//! All of these calls are passed on. Types that are made for one call of a file function are known
//! this way when they are used; finding out from the MPI what they consist of would take longer
//! than a small access. Types that are made in other ways are decoded.
#![allow(unsafe_code)] // C functions

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use pario_mpi::{Datatype, Host};

use super::next::passing_functions;
use super::{HandlePointer, Raw};
use crate::call::SUCCESS;

/// The MPI, if pario knows it and the call has succeeded. Unless pario is disabled, it knows the MPI
/// from `MPI_Init` on.
fn host_after(code: c_int) -> Option<&'static Host> {
    Host::found().filter(|_| code == SUCCESS)
}

/// The handle at an address that the program passed.
///
/// # Safety
/// There is a handle of the host's there.
unsafe fn at(host: &Host, place: *const c_void) -> Datatype {
    // SAFETY: promised by the caller.
    Datatype(unsafe { host.flavour().read_handle(place, 0) })
}

thread_local! {
    /// The calls of `MPI_Type_commit` in this thread, one in the other: a tool that is loaded after
    /// pario passes the program's call on to `PMPI_Type_commit`, which is pario's again.
    static COMMITS: Cell<u32> = const { Cell::new(0) };
}

/// A handle that the program passed by value.
fn passed_by_value(host: &Host, raw: Raw) -> Datatype {
    Datatype(host.flavour().from_register(raw))
}

passing_functions! {
    "Type_contiguous" fn contiguous(count: c_int, of: Raw, made: HandlePointer)
    then |code| {
        if let (Some(host), Ok(count)) = (host_after(code), u64::try_from(count)) {
            // SAFETY: the MPI has written the handle.
            let made = unsafe { at(host, made) };
            host.type_made_contiguous(count, passed_by_value(host, of), made);
        }
    }

    "Type_dup" fn duplicate(of: Raw, made: HandlePointer)
    then |code| {
        if let Some(host) = host_after(code) {
            // SAFETY: the MPI has written the handle.
            let made = unsafe { at(host, made) };
            host.type_made_duplicate(passed_by_value(host, of), made);
        }
    }

    "Type_commit" fn commit(datatype: HandlePointer)
    unless {
        COMMITS.set(COMMITS.get() + 1);
        None
    }
    then |code| {
        COMMITS.set(COMMITS.get() - 1);
        if let (Some(host), 0) = (host_after(code), COMMITS.get()) {
            // SAFETY: the MPI has read the handle.
            host.type_committed(unsafe { at(host, datatype) });
        }
    }

    /// The type is forgotten first: as soon as it is freed, another thread may get its handle.
    "Type_free" fn free(datatype: HandlePointer)
    unless {
        if let (Some(host), false) = (Host::found(), datatype.is_null()) {
            host.type_freed(at(host, datatype));
        }
        None
    }
}
