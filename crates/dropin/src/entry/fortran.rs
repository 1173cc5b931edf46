//! The Fortran symbols that must be intercepted.
//!
//! The hosts' Fortran bindings call the C functions of this library and convert handles with
//! `MPI_File_c2f` and `MPI_File_f2c`, so most need nothing more. Two take functions of the
//! program, which are Fortran subroutines: their arguments are passed by reference, and handles
//! are Fortran integers. MPICH's bindings pass them on as if they were C functions, Open MPI's
//! store them in internal structures.
//!
//! Compilers decorate names in several ways; the `_f08` forms belong to the module `mpi_f08`,
//! whose handles are structures with one integer.
#![allow(unsafe_code)] // functions of C's and Fortran's calling conventions

use std::ffi::{c_char, c_int, c_void};
use std::mem;

use pario_mpi::host::abi::Slot;
use pario_mpi::host::symbols;
use pario_mpi::{Errhandler, ErrorClass, Flavour, Host};

use super::{HandlePointer, errors, representation};
use crate::call::{self, Outcome};
use crate::conversion::{Extent, Functions, Item};
use crate::errhandler::{self, Function};
use crate::failure::Failure;
use crate::files::FileId;
use crate::{forward, memory, policy};

type CreateErrhandler = unsafe extern "C-unwind" fn(*const c_void, *mut c_int, *mut c_int);
type RegisterDatarep = unsafe extern "C-unwind" fn(
    *const c_char,
    *const c_void,
    *const c_void,
    *const c_void,
    *mut i64,
    *mut c_int,
    c_int,
);
type CreateStateful =
    unsafe extern "C-unwind" fn(*const c_void, *const c_void, *mut c_void, HandlePointer) -> c_int;

/// Writes the `ierror` of a Fortran call, which the module `mpi_f08` may omit.
///
/// # Safety
/// `place` is null or valid for an integer.
unsafe fn put_error(place: *mut c_int, code: c_int) {
    if !place.is_null() {
        // SAFETY: promised by the caller.
        unsafe { place.write(code) };
    }
}

/// Exports a subroutine under several names. If pario does nothing in this process, it calls
/// the next library's subroutine of the same name.
macro_rules! subroutine {
    ($work:ident as $type:ident $arguments:tt: $($name:literal)*) => {
        $(subroutine!(@export $name $work $type $arguments);)*
    };
    (@export $name:literal $work:ident $type:ident ($($arg:ident : $argtype:ty),*)) => {
        const _: () = {
            #[unsafe(export_name = $name)]
            unsafe extern "C-unwind" fn subroutine($($arg: $argtype),*) {
                // SAFETY: the caller's promises are those of the subroutine,
                // and that of the next library has the same type.
                unsafe {
                    match (policy::host_for_pario(), next::<$type>($name)) {
                        (None, Some(next)) => next($($arg),*),
                        _ => $work($($arg),*),
                    }
                }
            }
        };
    };
}

/// The subroutine of that name in the libraries after this one.
///
/// # Safety
/// `Type` is the type of a function pointer, and the subroutine's.
unsafe fn next<Type: Copy>(name: &str) -> Option<Type> {
    const { assert!(size_of::<Type>() == size_of::<*const c_void>()) };
    let address = symbols::next(name)?;
    // SAFETY: of the same size, and promised by the caller.
    Some(unsafe { mem::transmute_copy::<*const c_void, Type>(&address) })
}

subroutine! {
    create_errhandler as CreateErrhandler
    (function: *const c_void, errhandler: *mut c_int, error: *mut c_int):
    "mpi_file_create_errhandler" "mpi_file_create_errhandler_" "mpi_file_create_errhandler__"
    "MPI_FILE_CREATE_ERRHANDLER"
    "pmpi_file_create_errhandler" "pmpi_file_create_errhandler_" "pmpi_file_create_errhandler__"
    "PMPI_FILE_CREATE_ERRHANDLER"
    "mpi_file_create_errhandler_f08_" "pmpi_file_create_errhandler_f08_"
    "pmpir_file_create_errhandler_f08_"
    "MPI_File_create_errhandler_f" "MPI_File_create_errhandler_f08"
    "PMPI_File_create_errhandler_f" "PMPI_File_create_errhandler_f08"
    "ompi_file_create_errhandler_f"
}

/// `MPI_FILE_CREATE_ERRHANDLER`
unsafe fn create_errhandler(function: *const c_void, errhandler: *mut c_int, error: *mut c_int) {
    let create = || -> Outcome {
        let host = call::host()?;
        // SAFETY: the program's promises are those of the standard.
        unsafe {
            let kept = Function::fortran(function)?;
            let handle = create_at_host(host, function)?;
            let handler = errors::made(host, handle, kept);
            let integer = host.errhandler_to_fortran(handle);
            memory::put(errhandler, integer, "the error handler")?;
            errhandler::hold(host, handler);
        }
        Ok(())
    };
    let code = call::on_no_file("MPI_File_create_errhandler", create);
    // SAFETY: as above.
    unsafe { put_error(error, code) };
}

/// An error handler of the host for a subroutine, for the host's own files.
///
/// # Safety
/// It is a subroutine for error handlers.
unsafe fn create_at_host(
    host: &'static Host,
    function: *const c_void,
) -> Result<Errhandler, Failure> {
    const OPEN_MPI: &str = "ompi_file_create_errhandler_f";
    if host.flavour() == Flavour::OpenMpi {
        // SAFETY: it has this type in all its versions.
        if let Some(create) = unsafe { next::<CreateErrhandler>(OPEN_MPI) } {
            let (mut integer, mut code) = (0, call::SUCCESS);
            // SAFETY: there is space for the results.
            unsafe { create(function, &mut integer, &mut code) };
            host.check("MPI_File_create_errhandler", code)?;
            return Ok(host.errhandler_from_fortran(integer));
        }
    }
    // SAFETY: this is what the bindings of other hosts do.
    Ok(unsafe { host.file_create_errhandler(function.cast_mut()) }?)
}

/// Exports a C function under two names.
macro_rules! function {
    ($work:ident $arguments:tt: $($name:literal)*) => {
        $(function!(@export $name $work $arguments);)*
    };
    (@export $name:literal $work:ident ($($arg:ident : $argtype:ty),*)) => {
        const _: () = {
            #[unsafe(export_name = $name)]
            unsafe extern "C-unwind" fn function($($arg: $argtype),*) -> c_int {
                // SAFETY: the caller's promises are those of the function.
                unsafe { $work($($arg),*) }
            }
        };
    };
}

function! {
    create_stateful
    (function: *const c_void, destroy: *const c_void, state: *mut c_void, errhandler: HandlePointer):
    "MPIX_File_create_errhandler_x" "PMPIX_File_create_errhandler_x"
}

/// Creates error handlers for newer bindings of MPICH. The host destroys the state together
/// with its object.
unsafe fn create_stateful(
    function: *const c_void,
    destroy: *const c_void,
    state: *mut c_void,
    errhandler: HandlePointer,
) -> c_int {
    const NAME: &str = "MPIX_File_create_errhandler_x";
    let Some(create) = stateful_of_host() else {
        return forward::refuse(NAME, FileId(0));
    };
    let Some(host) = policy::host_for_pario() else {
        // SAFETY: the program's promises are those of the function.
        return unsafe { create(function, destroy, state, errhandler) };
    };
    call::on_no_file(NAME, || {
        let mut slot = Slot::new(host.flavour(), host.predefined().errhandler_null.0);
        // SAFETY: as above.
        unsafe {
            let kept = Function::stateful(function, state)?;
            host.check(NAME, create(function, destroy, state, slot.pointer()))?;
            let handler = errors::made(host, Errhandler(slot.handle()), kept);
            errors::give(host, errhandler, handler)
        }
    })
}

fn stateful_of_host() -> Option<CreateStateful> {
    const NAME: &str = "PMPIX_File_create_errhandler_x";
    let address = match Host::current() {
        Ok(host) => host.symbol(NAME)?.cast_const(),
        // SAFETY: only the address is looked up.
        Err(_) => unsafe { next::<*const c_void>(NAME) }?,
    };
    // SAFETY: the host's function of this name has this type.
    Some(unsafe { mem::transmute::<*const c_void, CreateStateful>(address) })
}

subroutine! {
    register_datarep as RegisterDatarep
    (name: *const c_char, read: *const c_void, write: *const c_void, extent: *const c_void,
     state: *mut i64, error: *mut c_int, length: c_int):
    "mpi_register_datarep" "mpi_register_datarep_" "mpi_register_datarep__"
    "MPI_REGISTER_DATAREP"
    "pmpi_register_datarep" "pmpi_register_datarep_" "pmpi_register_datarep__"
    "PMPI_REGISTER_DATAREP"
    "mpi_register_datarep_f08_" "pmpi_register_datarep_f08_" "pmpir_register_datarep_f08_"
    "MPI_Register_datarep_f" "MPI_Register_datarep_f08"
    "PMPI_Register_datarep_f" "PMPI_Register_datarep_f08"
    "ompi_register_datarep_f"
}

subroutine! {
    register_datarep_c as RegisterDatarep
    (name: *const c_char, read: *const c_void, write: *const c_void, extent: *const c_void,
     state: *mut i64, error: *mut c_int, length: c_int):
    "mpi_register_datarep_c_f08_" "pmpi_register_datarep_c_f08_" "pmpir_register_datarep_c_f08_"
}

/// Defines a subroutine that registers functions of one kind.
macro_rules! registration {
    ($(#[$doc:meta])* $work:ident $name:literal $item:path) => {
        $(#[$doc])*
        unsafe fn $work(
            name: *const c_char,
            read: *const c_void,
            write: *const c_void,
            extent: *const c_void,
            state: *mut i64,
            error: *mut c_int,
            length: c_int,
        ) {
            // SAFETY: the program's promises are those of the standard.
            unsafe {
                let [read, write] = [read, write].map(|function| $item(present(function)));
                let functions = Functions {
                    read,
                    write,
                    extent: Extent::fortran(extent),
                    state: lasting(state),
                };
                register($name, name, length, functions, error);
            }
        }
    };
}

registration! {
    /// `MPI_REGISTER_DATAREP`
    register_datarep "MPI_Register_datarep" Item::fortran
}

registration! {
    /// `MPI_REGISTER_DATAREP` with functions for large counts.
    register_datarep_c "MPI_Register_datarep_c" Item::large_fortran
}

/// # Safety
/// The name has so many characters, and there is space for the error or null.
unsafe fn register(
    function: &'static str,
    name: *const c_char,
    length: c_int,
    functions: Functions,
    error: *mut c_int,
) {
    // SAFETY: promised by the caller.
    let name = unsafe { blank_padded(name, length) };
    let code = call::on_no_file(function, || representation::register(&name?, functions));
    // SAFETY: promised by the caller.
    unsafe { put_error(error, code) };
}

/// A Fortran string without its padding.
///
/// # Safety
/// It has so many characters.
unsafe fn blank_padded(text: *const c_char, length: c_int) -> Result<String, Failure> {
    let length = usize::try_from(length).unwrap_or(0);
    // SAFETY: promised by the caller.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) };
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.trim_matches(' ').to_owned()),
        Err(_) => {
            let message = "the name of the data representation is not UTF-8 text";
            Err(Failure::new(ErrorClass::Arg, message))
        }
    }
}

/// Copies the state of a representation to memory that is never freed, as representations are
/// not: Fortran functions get it by reference.
///
/// # Safety
/// It is the address of an integer.
unsafe fn lasting(state: *mut i64) -> *mut c_void {
    // SAFETY: promised by the caller.
    let state = unsafe { state.read() };
    let place: *mut i64 = Box::leak(Box::new(state));
    place.cast()
}

/// The function, or null if it is `MPI_CONVERSION_FN_NULL`, which in Fortran is a different
/// subroutine in each module and under each decoration.
fn present(function: *const c_void) -> *const c_void {
    const NULL: &str = "mpi_conversion_fn_null";
    let is_null = symbols::name_of(function).is_some_and(|name| name.to_lowercase().contains(NULL));
    match is_null {
        true => std::ptr::null(),
        false => function,
    }
}
