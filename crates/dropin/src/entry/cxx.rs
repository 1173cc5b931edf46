//! Functions of the C++ bindings that must be intercepted.
//!
//! The bindings call the C functions of this library, so most need nothing more. Error
//! handlers, however, are C++ functions, which the bindings register with the MPI by internal
//! functions: see [`Dispatch`].
#![allow(unsafe_code)] // functions of the hosts' C++ bindings

use std::ffi::c_void;
use std::mem;

use pario_mpi::host::symbols;
use pario_mpi::{Errhandler, ErrorClass};

use super::{Raw, errors};
use crate::errhandler::{self, Dispatch, Function};
use crate::failure::Failure;
use crate::{call, policy};

type SetCxx = unsafe extern "C-unwind" fn(Raw, *const c_void);
type CreateFile = unsafe extern "C-unwind" fn(*const c_void) -> u64;

/// The address of an intercepted function: in a library after this one, or in the host.
fn next(name: &str) -> Option<*const c_void> {
    symbols::next(name).or_else(|| Some(call::host().ok()?.symbol(name)?.cast_const()))
}

/// Exports the function that MPICH's bindings call after they have created a handler, under its
/// name in one of MPICH's versions.
macro_rules! set_cxx {
    ($($name:literal)*) => {$(
        const _: () = {
            #[unsafe(export_name = $name)]
            unsafe extern "C-unwind" fn set_cxx(errhandler: Raw, dispatch: *const c_void) {
                if let Some(function) = next($name) {
                    // SAFETY: the host's function of this name has this type.
                    unsafe { mem::transmute::<*const c_void, SetCxx>(function)(errhandler, dispatch) };
                }
                // SAFETY: the bindings pass such a function.
                let dispatch = unsafe { Dispatch::new(dispatch) };
                if let (Some(dispatch), Some(host)) = (dispatch, policy::host_for_pario()) {
                    let handle = Errhandler(host.flavour().from_register(errhandler));
                    errhandler::call_by(handle, dispatch);
                }
            }
        };
    )*};
}

set_cxx! { "MPII_Errhandler_set_cxx" "MPIR_Errhandler_set_cxx" }

/// Creates a handler for Open MPI's bindings. The object belongs to the host, which also calls
/// it.
#[unsafe(export_name = "ompi_cxx_errhandler_create_file")]
unsafe extern "C-unwind" fn create_file(function: *const c_void) -> u64 {
    const NAME: &str = "MPI::File::Create_errhandler";
    // SAFETY: the function of this name has this type.
    let made = next("ompi_cxx_errhandler_create_file")
        .map(|create| unsafe { mem::transmute::<*const c_void, CreateFile>(create)(function) });
    let Some(host) = policy::host_for_pario() else {
        return made.unwrap_or(0);
    };
    let null = host.predefined().errhandler_null.0;
    let handle = made.filter(|handle| ![0, null].contains(handle));
    match handle {
        Some(handle) => {
            let handler = errors::made(host, Errhandler(handle), Function::OpenMpiCxx);
            errhandler::hold(host, handler);
            handle
        }
        None => {
            call::on_no_file(NAME, || {
                let message = "Open MPI's C++ bindings could not make an error handler";
                Err(Failure::new(ErrorClass::Other, message))
            });
            null
        }
    }
}
