//! Error handling: the handlers of files, and of `MPI_FILE_NULL` for everything that concerns
//! no open file.
//!
//! The host does not know pario's files, so it cannot call their handlers. Handles are
//! nevertheless those of the host: a program may pass them to other functions of the host, or
//! use them on the host's own files. Their functions are kept here ([`user`]), with the
//! references of files and of the program ([`held`]); the host's object is freed with the last
//! of them.

mod cxx;
mod held;
mod user;

use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pario_mpi::{Comm, Errhandler, ErrorClass, Flavour, Host};
use pario_transport::Transport;

pub(crate) use cxx::Dispatch;
pub(crate) use held::{call_by, hold, hold_again, release};
pub(crate) use user::{Function, User};

use crate::codes;
use crate::failure::Failure;
use crate::files::{FileId, OpenFile};
use crate::notice;

/// How an error is handled.
#[derive(Clone, Debug)]
pub(crate) enum Handler {
    /// `MPI_ERRORS_RETURN`
    Return,
    /// `MPI_ERRORS_ARE_FATAL`
    AreFatal,
    /// `MPI_ERRORS_ABORT`
    Abort,
    /// `MPI::ERRORS_THROW_EXCEPTIONS`
    Throw(Errhandler),
    /// A function of the program.
    User(Arc<User>),
}

impl Handler {
    /// The handler for a handle of the program.
    pub(crate) fn of(host: &Host, handle: Errhandler) -> Result<Handler, Failure> {
        if handle == host.predefined().errhandler_null {
            let message = "the error handler is MPI_ERRHANDLER_NULL";
            return Err(Failure::new(ErrorClass::Arg, message));
        }
        let known = Handler::predefined(host, handle).or_else(|| held::find(handle));
        known.ok_or_else(|| {
            let message = "the error handler was not made by MPI_File_create_errhandler";
            Failure::new(ErrorClass::Arg, message)
        })
    }

    fn predefined(host: &Host, handle: Errhandler) -> Option<Handler> {
        let predefined = host.predefined();
        match handle {
            _ if handle == predefined.errors_return => Some(Handler::Return),
            _ if handle == predefined.errors_are_fatal => Some(Handler::AreFatal),
            _ if Some(handle) == host.errors_abort() => Some(Handler::Abort),
            _ if Some(handle) == host.errors_throw() => Some(Handler::Throw(handle)),
            _ => None,
        }
    }

    /// The host's handle of it.
    pub(crate) fn handle(&self, host: &Host) -> Errhandler {
        let predefined = host.predefined();
        match self {
            Handler::Return => predefined.errors_return,
            Handler::AreFatal => predefined.errors_are_fatal,
            // The handler was made from such a handle.
            Handler::Abort => host.errors_abort().unwrap_or(predefined.errors_are_fatal),
            Handler::Throw(handle) => *handle,
            Handler::User(user) => user.handle(),
        }
    }
}

/// The handler of `MPI_FILE_NULL`.
static DEFAULT: Mutex<Handler> = Mutex::new(Handler::Return);

fn lock(handler: &Mutex<Handler>) -> MutexGuard<'_, Handler> {
    // A panic cannot leave it half changed, because an assignment is one step.
    handler.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The handler of files that are opened from now on.
pub(crate) fn default_handler() -> Handler {
    lock(&DEFAULT).clone()
}

/// Sets the handler of files that are opened from now on.
pub(crate) fn set_default_handler(handler: Handler) {
    // The host frees the old handler, which must not happen under the lock.
    let _old = std::mem::replace(&mut *lock(&DEFAULT), handler);
}

impl OpenFile {
    /// The handler of this file.
    pub(crate) fn handler(&self) -> Handler {
        lock(&self.handler).clone()
    }

    /// Sets the handler of this file.
    pub(crate) fn set_handler(&self, handler: Handler) {
        // As for the default.
        let _old = std::mem::replace(&mut *lock(&self.handler), handler);
    }
}

/// Passes a failure to the file's handler; returns the code for the program.
pub(crate) fn raise_on_file(file: &OpenFile, failure: &Failure) -> c_int {
    match Host::current() {
        Ok(host) => {
            let code = failure.code(host);
            invoke(host, Some(file), code, &failure.to_string())
        }
        Err(_) => without_host(),
    }
}

/// Passes a failure to the handler of `MPI_FILE_NULL`; returns the code for the program.
pub(crate) fn raise_on_no_file(failure: &Failure) -> c_int {
    match Host::current() {
        Ok(host) => {
            let code = failure.code(host);
            invoke(host, None, code, &failure.to_string())
        }
        Err(_) => without_host(),
    }
}

/// Passes a code from the program to a file's handler.
pub(crate) fn call(host: &'static Host, file: Option<&OpenFile>, code: c_int) -> c_int {
    invoke(host, file, code, &codes::text_of(host, code))
}

/// A code other than success, if there is no host to define codes.
fn without_host() -> c_int {
    ErrorClass::Other.number(Flavour::Standard)
}

/// Calls the current handler. No lock is held during the call: the program's function may call
/// anything.
fn invoke(host: &'static Host, file: Option<&OpenFile>, code: c_int, message: &str) -> c_int {
    let handler = file.map_or_else(default_handler, OpenFile::handler);
    let id = file.map_or(FileId(host.predefined().file_null.0), |file| file.id);
    let comm = file.and_then(|file| file.transport.comm());
    let world = host.has_world().then_some(host.predefined().comm_world);
    match handler {
        Handler::Return => code,
        Handler::User(user) => user.call(id, code, message),
        Handler::Throw(_) => cxx::throw(host, id, code, message),
        Handler::AreFatal | Handler::Abort => {
            let rank = match (world.map(|world| host.comm_rank(world)), file) {
                (Some(Ok(rank)), _) => format!("rank {rank}: "),
                (_, Some(file)) => format!("rank {}: ", file.transport.rank().0),
                _ => String::new(),
            };
            notice::line(&format!("{rank}{message}"));
            let comm = match handler {
                Handler::Abort => comm.or(world),
                _ => world.or(comm),
            };
            abort(host, comm, code)
        }
    }
}

/// Ends the processes of a communicator, or this one if there is none.
fn abort(host: &Host, comm: Option<Comm>, code: c_int) -> ! {
    // A class fits into the exit status of a process, a code may not.
    let status = host.class_number_of(code).max(1);
    if let Some(comm) = comm {
        // It returns only if it fails.
        let _ = host.abort(comm, status);
    }
    std::process::abort()
}
