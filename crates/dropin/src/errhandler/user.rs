//! Error handlers that are functions of the program.
#![allow(unsafe_code)] // functions of the program's are called

use std::ffi::{c_int, c_void};
use std::fmt;
use std::mem;
use std::sync::OnceLock;

use pario_mpi::{Errhandler, ErrorClass, Host};

use super::cxx::{self, Dispatch};
use crate::entry::handles;
use crate::failure::Failure;
use crate::files::FileId;

/// A C function, as in the standard.
type CFunction = unsafe extern "C-unwind" fn(*mut FileId, *mut c_int, ...);
/// A Fortran subroutine: both arguments are Fortran integers.
type FortranFunction = unsafe extern "C-unwind" fn(*mut c_int, *mut c_int);
/// A function with a state, which MPICH provides for bindings.
type StatefulFunction = unsafe extern "C-unwind" fn(FileId, c_int, *mut c_void);

/// The function of an error handler.
#[derive(Clone, Copy)]
pub(crate) enum Function {
    /// A C function.
    C(CFunction),
    /// A Fortran subroutine.
    Fortran(FortranFunction),
    /// A C function with the address of its state.
    Stateful(StatefulFunction, usize),
    /// A C++ function in an object of Open MPI, which can call it.
    OpenMpiCxx,
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Function::C(_) => "C",
            Function::Fortran(_) => "Fortran",
            Function::Stateful(..) => "Stateful",
            Function::OpenMpiCxx => "OpenMpiCxx",
        })
    }
}

fn present(function: *const c_void) -> Result<*const c_void, Failure> {
    match function.is_null() {
        true => Err(Failure::new(
            ErrorClass::Arg,
            "the error handler's function is null",
        )),
        false => Ok(function),
    }
}

impl Function {
    /// # Safety
    /// It is a `MPI_File_errhandler_function`.
    pub(crate) unsafe fn c(function: *const c_void) -> Result<Function, Failure> {
        let function = present(function)?;
        // SAFETY: promised by the caller.
        Ok(Function::C(unsafe {
            mem::transmute::<*const c_void, CFunction>(function)
        }))
    }

    /// # Safety
    /// It is a subroutine that Fortran's `MPI_File_create_errhandler` takes.
    pub(crate) unsafe fn fortran(function: *const c_void) -> Result<Function, Failure> {
        let function = present(function)?;
        // SAFETY: promised by the caller.
        Ok(Function::Fortran(unsafe {
            mem::transmute::<*const c_void, FortranFunction>(function)
        }))
    }

    /// # Safety
    /// It is a `MPIX_File_errhandler_function_x`.
    pub(crate) unsafe fn stateful(
        function: *const c_void,
        state: *mut c_void,
    ) -> Result<Function, Failure> {
        let function = present(function)?;
        // SAFETY: promised by the caller.
        let function = unsafe { mem::transmute::<*const c_void, StatefulFunction>(function) };
        Ok(Function::Stateful(function, state.expose_provenance()))
    }
}

/// An error handler with a function, and one reference to the host's object.
#[derive(Debug)]
pub(crate) struct User {
    host: &'static Host,
    handle: Errhandler,
    function: Function,
    /// How MPICH's C++ bindings call the function, if it is a C++ function.
    dispatch: OnceLock<Dispatch>,
}

impl User {
    /// The handler that calls `function`. It takes ownership of a reference to the host's
    /// object.
    pub(crate) fn new(host: &'static Host, handle: Errhandler, function: Function) -> User {
        User {
            host,
            handle,
            function,
            dispatch: OnceLock::new(),
        }
    }

    /// Makes the function a C++ function, called by `dispatch`.
    pub(super) fn call_by(&self, dispatch: Dispatch) {
        // A second call would set the same function of the same bindings.
        let _ = self.dispatch.set(dispatch);
    }

    pub(super) fn handle(&self) -> Errhandler {
        self.handle
    }

    /// Calls the function and returns the code that it leaves. The function may throw a C++
    /// exception, which nothing here may catch.
    pub(super) fn call(&self, id: FileId, mut code: c_int, message: &str) -> c_int {
        let mut id = id;
        match self.function {
            // SAFETY: promised by the creator of the handler.
            Function::C(function) => unsafe {
                match self.dispatch.get() {
                    Some(dispatch) => dispatch.call(&mut id, &mut code, function as *const c_void),
                    None => function(&mut id, &mut code),
                }
            },
            Function::Fortran(function) => {
                let mut file = handles::to_fortran(id);
                // SAFETY: as above.
                unsafe { function(&mut file, &mut code) };
            }
            Function::Stateful(function, state) => {
                let state = std::ptr::with_exposed_provenance_mut(state);
                // SAFETY: as above; the host deletes the state with its object.
                unsafe { function(id, code, state) };
            }
            Function::OpenMpiCxx => return cxx::invoke(self.host, self.handle, id, code, message),
        }
        code
    }
}

impl Drop for User {
    fn drop(&mut self) {
        // Hosts may abort programs that call them after their end.
        if !self.host.is_finalized() {
            // An error cannot be handled: the object leaks.
            let _ = self.host.errhandler_free(self.handle);
        }
    }
}
