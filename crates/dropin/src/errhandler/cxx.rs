//! Error handlers of the C++ bindings, which MPI-3 removed and MPIs still ship.
//!
//! Such a handler takes a reference to an `MPI::File`, which only the bindings can create.
//! MPICH's bindings register the function that calls their handlers; Open MPI keeps it in the
//! handler's object. Both may throw exceptions, which pass through this library's frames: every
//! function between the handler and the program is `extern "C-unwind"`, and none of them
//! catches anything.
#![allow(unsafe_code)] // functions of the hosts' C++ bindings are called

use std::ffi::{CString, c_char, c_int, c_void};
use std::{mem, ptr};

use pario_mpi::{Errhandler, Flavour, Host};

use crate::files::FileId;

/// How MPICH's bindings call a C++ function: with the kind of object, the addresses of its
/// handle and of the code, and the function.
type DispatchFunction = unsafe extern "C-unwind" fn(c_int, *mut FileId, *mut c_int, *const c_void);

/// The kind of object that is a file in MPICH's bindings.
const MPICH_FILE: c_int = 1;

/// Open MPI's function that calls a handler: with the handler, the object and its kind, the
/// code, and a message.
type Invoke =
    unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, c_int, c_int, *const c_char) -> c_int;

/// The kind of object that is a file in Open MPI 4, the last one with C++ bindings.
const OPEN_MPI_FILE: c_int = 3;

/// The function by which MPICH's bindings call C++ handlers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dispatch(DispatchFunction);

impl Dispatch {
    /// # Safety
    /// It is what the bindings pass to `MPII_Errhandler_set_cxx`.
    pub(crate) unsafe fn new(function: *const c_void) -> Option<Dispatch> {
        if function.is_null() {
            return None;
        }
        // SAFETY: promised by the caller.
        Some(Dispatch(unsafe {
            mem::transmute::<*const c_void, DispatchFunction>(function)
        }))
    }

    /// # Safety
    /// `function` is that of a handler for files of the same bindings.
    pub(super) unsafe fn call(self, id: &mut FileId, code: &mut c_int, function: *const c_void) {
        // SAFETY: promised by the caller.
        unsafe { (self.0)(MPICH_FILE, id, code, function) };
    }
}

/// `MPI::ERRORS_THROW_EXCEPTIONS`: returns the code, if it returns. MPICH's bindings throw when
/// the C function has returned the error to them.
pub(super) fn throw(host: &Host, id: FileId, code: c_int, message: &str) -> c_int {
    match (host.flavour(), host.errors_throw()) {
        (Flavour::OpenMpi, Some(handler)) => invoke(host, handler, id, code, message),
        _ => code,
    }
}

/// Lets Open MPI call one of its handlers. It uses the file's handle only for Fortran
/// functions, which C++ programs do not have.
pub(super) fn invoke(
    host: &Host,
    handler: Errhandler,
    id: FileId,
    code: c_int,
    message: &str,
) -> c_int {
    let Some(invoke) = host.symbol("ompi_errhandler_invoke") else {
        return code;
    };
    let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
    let pointer = |number: u64| ptr::with_exposed_provenance_mut(number as usize);
    // SAFETY: the function has this type in all versions with C++ bindings, and the handler
    // belongs to the host.
    unsafe {
        let invoke = mem::transmute::<*mut c_void, Invoke>(invoke);
        let (handler, file) = (pointer(handler.0), pointer(id.0));
        invoke(handler, file, OPEN_MPI_FILE, code, message.as_ptr())
    }
}
