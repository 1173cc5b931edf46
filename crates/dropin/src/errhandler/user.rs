//! Error handlers that are functions of the program's.
#![allow(unsafe_code)] // functions of the program's are called

use std::ffi::{c_int, c_void};
use std::fmt;
use std::mem;

use pario_mpi::host::abi::Slot;
use pario_mpi::{Errhandler, ErrorClass, Host};

use super::default_handler;
use crate::entry::{HandlePointer, Raw, handles};
use crate::failure::Failure;
use crate::files::FileId;
use crate::forward::HostFunction;

/// A function of C's, as the standard has it.
type CFunction = unsafe extern "C" fn(*mut FileId, *mut c_int, ...);
/// A subroutine of Fortran's: both arguments are Fortran integers.
type FortranFunction = unsafe extern "C" fn(*mut c_int, *mut c_int);
/// A function with a state of its own, which MPICH has for bindings.
type StatefulFunction = unsafe extern "C" fn(FileId, c_int, *mut c_void);

/// What an error handler calls.
#[derive(Clone, Copy)]
pub(crate) enum Function {
    /// A function of C's.
    C(CFunction),
    /// A subroutine of Fortran's.
    Fortran(FortranFunction),
    /// A function of C's with the address of its state.
    Stateful(StatefulFunction, usize),
    /// Whatever the host knows.
    Hosts,
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Function::C(_) => "C",
            Function::Fortran(_) => "Fortran",
            Function::Stateful(..) => "Stateful",
            Function::Hosts => "Hosts",
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
}

impl User {
    /// The handler that calls `function`. It takes over a reference to the
    /// host's object.
    pub(crate) fn new(host: &'static Host, handle: Errhandler, function: Function) -> User {
        User {
            host,
            handle,
            function,
        }
    }

    /// A handler that was made where pario does not see it, by the C++ bindings
    /// of an older MPI for instance. Only the host can call it, and only on
    /// `MPI_FILE_NULL`: its function gets that handle.
    pub(super) fn adopt(host: &'static Host, handle: Errhandler) -> Result<User, Failure> {
        hosts_default::set(host, handle)?;
        let kept = hosts_default::get(host);
        hosts_default::restore(host)?;
        Ok(User::new(host, kept?, Function::Hosts))
    }

    pub(super) fn handle(&self) -> Errhandler {
        self.handle
    }

    /// Calls the function; the code as it left it.
    pub(super) fn call(&self, id: FileId, mut code: c_int) -> c_int {
        let mut id = id;
        match self.function {
            // SAFETY: whoever made the handler promised it.
            Function::C(function) => unsafe { function(&mut id, &mut code) },
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
            Function::Hosts => self.call_by_host(code),
        }
        code
    }

    /// Nobody hears of errors on the way: an error is being handled already.
    fn call_by_host(&self, code: c_int) {
        if hosts_default::set(self.host, self.handle).is_ok() {
            let _ = hosts_default::call(self.host, code);
        }
        let _ = hosts_default::restore(self.host);
    }
}

impl Drop for User {
    fn drop(&mut self) {
        // Hosts may stop programs that call them after their end.
        if !self.host.is_finalized() {
            // Nothing to be done about an error: the object is lost.
            let _ = self.host.errhandler_free(self.handle);
        }
    }
}

/// The host's own handler of `MPI_FILE_NULL`.
pub(crate) mod hosts_default {
    use super::*;

    type Set = unsafe extern "C" fn(FileId, Raw) -> c_int;
    type Get = unsafe extern "C" fn(FileId, HandlePointer) -> c_int;
    type Call = unsafe extern "C" fn(FileId, c_int) -> c_int;

    fn address(function: &'static HostFunction) -> Result<*const c_void, Failure> {
        let missing = "the MPI has no error handlers of files";
        let absent = || Failure::new(ErrorClass::UnsupportedOperation, missing);
        function.get().ok_or_else(absent)
    }

    fn null(host: &Host) -> FileId {
        FileId(host.predefined().file_null.0)
    }

    /// Makes a handler that of the host's files to come.
    pub(crate) fn set(host: &Host, handle: Errhandler) -> Result<(), Failure> {
        const NAME: &str = "MPI_File_set_errhandler";
        static HOSTS: HostFunction = HostFunction::new(NAME);
        // SAFETY: the host's function of this name has this type.
        let set = unsafe { mem::transmute::<*const c_void, Set>(address(&HOSTS)?) };
        // SAFETY: the arguments are handles.
        Ok(host.check(NAME, unsafe { set(null(host), handle.0) })?)
    }

    /// Makes the handler that pario has for files to come the host's again.
    pub(super) fn restore(host: &Host) -> Result<(), Failure> {
        set(host, default_handler().handle(host))
    }

    /// A new reference to the handler in force.
    pub(super) fn get(host: &Host) -> Result<Errhandler, Failure> {
        const NAME: &str = "MPI_File_get_errhandler";
        static HOSTS: HostFunction = HostFunction::new(NAME);
        let mut slot = Slot::new(host.flavour(), host.predefined().errhandler_null.0);
        // SAFETY: the host's function of this name has this type.
        let get = unsafe { mem::transmute::<*const c_void, Get>(address(&HOSTS)?) };
        // SAFETY: there is room for a handle.
        host.check(NAME, unsafe { get(null(host), slot.pointer()) })?;
        Ok(Errhandler(slot.handle()))
    }

    /// Calls the handler in force.
    pub(super) fn call(host: &Host, code: c_int) -> Result<(), Failure> {
        const NAME: &str = "MPI_File_call_errhandler";
        static HOSTS: HostFunction = HostFunction::new(NAME);
        // SAFETY: the host's function of this name has this type.
        let call = unsafe { mem::transmute::<*const c_void, Call>(address(&HOSTS)?) };
        // SAFETY: the arguments are a handle and a number.
        Ok(host.check(NAME, unsafe { call(null(host), code) })?)
    }
}
