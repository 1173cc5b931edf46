//! Error handlers of files.
//!
//! A handler that the program creates is an object of the host with a function that pario
//! keeps: see [`errhandler`](crate::errhandler). In processes in which pario does nothing, all
//! of this is left to the host.
#![allow(unsafe_code)] // C functions

use std::ffi::{c_int, c_void};
use std::mem;
use std::sync::Arc;

use pario_mpi::{Errhandler, Host};

use super::{HandlePointer, Raw, functions};
use crate::call::{self, Outcome, SUCCESS};
use crate::errhandler::{self, Function, Handler, User};
use crate::files::{self, FileId, Found};
use crate::forward::HostFunction;
use crate::{forward, memory, policy};

type Create = unsafe extern "C-unwind" fn(*const c_void, HandlePointer) -> c_int;
type Set = unsafe extern "C-unwind" fn(FileId, Raw) -> c_int;
type Get = unsafe extern "C-unwind" fn(FileId, HandlePointer) -> c_int;
type Call = unsafe extern "C-unwind" fn(FileId, c_int) -> c_int;
type Free = unsafe extern "C-unwind" fn(HandlePointer) -> c_int;

/// Calls the host's function of a name, with a type defined in this file.
macro_rules! hosts {
    ($type:ident, $name:expr, $file:expr, ($($argument:expr),*)) => {{
        static HOSTS: HostFunction = HostFunction::new($name);
        match HOSTS.get() {
            // SAFETY: the host's function of this name has this type; the
            // program's promises are those of the standard.
            Some(function) => unsafe {
                mem::transmute::<*const c_void, $type>(function)($($argument),*)
            },
            None => forward::refuse($name, $file),
        }
    }};
}

/// No file at all, in messages about hosts that lack a function.
const NO_FILE: FileId = FileId(0);

/// The handler for a function and the host's object that was created for it.
pub(super) fn made(host: &'static Host, handle: Errhandler, function: Function) -> Handler {
    Handler::User(Arc::new(User::new(host, handle, function)))
}

/// Gives the program a reference to a handler.
///
/// # Safety
/// `place` is null or valid for a handle of the host.
pub(super) unsafe fn give(host: &Host, place: HandlePointer, handler: Handler) -> Outcome {
    let handle = handler.handle(host);
    // SAFETY: promised by the caller.
    unsafe { memory::put_handle(host, place, handle.0, "the error handler") }?;
    errhandler::hold(host, handler);
    Ok(())
}

/// The handler to pass to the host for its own files: MPICH 4.0 fails an assertion on
/// `MPI_ERRORS_ABORT`.
fn accepted_by_host(host: &Host, handle: Errhandler) -> Errhandler {
    match Some(handle) == host.errors_abort() {
        true => host.predefined().errors_are_fatal,
        false => handle,
    }
}

/// The handler of one of the host's own files. If pario created it, the program gets a
/// reference from pario, and the host's is returned.
///
/// # Safety
/// `place` has the handle that the host wrote.
unsafe fn exchange(host: &'static Host, place: HandlePointer) {
    // SAFETY: promised by the caller.
    let handle = Errhandler(unsafe { host.flavour().read_handle(place, 0) });
    if errhandler::hold_again(handle) {
        // An error cannot be handled: a reference leaks.
        let _ = host.errhandler_free(handle);
    }
}

functions! {
    "File_create_errhandler" fn create(function: *const c_void, errhandler: HandlePointer) -> c_int {
        let Some(host) = policy::host_for_pario() else {
            return hosts!(Create, NAME, NO_FILE, (function, errhandler));
        };
        call::on_no_file(NAME, || {
            // SAFETY: the program's promises are those of the standard.
            unsafe {
                let kept = Function::c(function)?;
                let handle = host.file_create_errhandler(function.cast_mut())?;
                give(host, errhandler, made(host, handle, kept))
            }
        })
    }

    "File_set_errhandler" fn set(fh: FileId, errhandler: Raw) -> c_int {
        let Some(host) = policy::host_for_pario() else {
            return hosts!(Set, NAME, fh, (fh, errhandler));
        };
        let handle = Errhandler(host.flavour().from_register(errhandler));
        match files::find(fh) {
            Found::Ours(open) => call::on_file(NAME, &open, || {
                open.set_handler(Handler::of(host, handle)?);
                Ok(())
            }),
            Found::Closed => call::refuse_closed(NAME, fh),
            Found::Hosts if forward::is_null(fh) => call::on_no_file(NAME, || {
                let handler = Handler::of(host, handle)?;
                let hosts = accepted_by_host(host, handle);
                host.check(NAME, hosts!(Set, NAME, fh, (fh, hosts.0)))?;
                errhandler::set_default_handler(handler);
                Ok(())
            }),
            Found::Hosts => {
                let handle = accepted_by_host(host, handle);
                hosts!(Set, NAME, fh, (fh, handle.0))
            }
        }
    }

    "File_get_errhandler" fn get(fh: FileId, errhandler: HandlePointer) -> c_int {
        let Some(host) = policy::host_for_pario() else {
            return hosts!(Get, NAME, fh, (fh, errhandler));
        };
        match files::find(fh) {
            // SAFETY: the program's promises are those of the standard.
            Found::Ours(open) => call::on_file(NAME, &open, || unsafe {
                give(host, errhandler, open.handler())
            }),
            Found::Closed => call::refuse_closed(NAME, fh),
            // SAFETY: as above.
            Found::Hosts if forward::is_null(fh) => call::on_no_file(NAME, || unsafe {
                give(host, errhandler, errhandler::default_handler())
            }),
            Found::Hosts => {
                let code = hosts!(Get, NAME, fh, (fh, errhandler));
                if code == SUCCESS {
                    // SAFETY: the host wrote a handle.
                    unsafe { exchange(host, errhandler) };
                }
                code
            }
        }
    }

    "File_call_errhandler" fn call_errhandler(fh: FileId, code: c_int) -> c_int {
        let Some(host) = policy::host_for_pario() else {
            return hosts!(Call, NAME, fh, (fh, code));
        };
        match files::find(fh) {
            Found::Ours(open) => {
                errhandler::call(host, Some(&open), code);
                SUCCESS
            }
            Found::Closed => call::refuse_closed(NAME, fh),
            Found::Hosts if forward::is_null(fh) => {
                errhandler::call(host, None, code);
                SUCCESS
            }
            Found::Hosts => hosts!(Call, NAME, fh, (fh, code)),
        }
    }

    "Errhandler_free" fn free(errhandler: HandlePointer) -> c_int {
        if let (false, Some(host)) = (errhandler.is_null(), policy::host_for_pario()) {
            let flavour = host.flavour();
            // SAFETY: the program's promises are those of the standard.
            let handle = Errhandler(unsafe { flavour.read_handle(errhandler, 0) });
            if errhandler::release(handle) {
                let null = host.predefined().errhandler_null;
                // SAFETY: as above.
                unsafe { flavour.write_handle(errhandler, 0, null.0) };
                return SUCCESS;
            }
        }
        hosts!(Free, NAME, NO_FILE, (errhandler))
    }
}
