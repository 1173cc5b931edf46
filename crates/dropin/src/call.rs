//! What every function does around its work: finding the file, catching panics, delivering
//! errors.

use std::any::Any;
use std::ffi::c_int;
use std::panic::{self, AssertUnwindSafe};

use pario_mpi::{ErrorClass, Host, HostError, InsideCall};

use crate::failure::Failure;
use crate::files::{FileId, OpenFile};
use crate::{codes, errhandler};

/// The result of a function's work.
pub(crate) type Outcome = Result<(), Failure>;

/// `MPI_SUCCESS` on every host.
pub(crate) const SUCCESS: c_int = 0;

/// Runs the work of a function on a file. An error goes to the file's handler.
#[inline]
pub(crate) fn on_file(
    name: &'static str,
    file: &OpenFile,
    work: impl FnOnce() -> Outcome,
) -> c_int {
    let _inside = InsideCall::enter();
    match caught(work) {
        Ok(()) => succeeded(),
        Err(failure) => errhandler::raise_on_file(file, &failure.in_function(name)),
    }
}

/// Runs the work of a function that concerns no open file. An error goes to
/// the handler of `MPI_FILE_NULL`.
pub(crate) fn on_no_file(name: &'static str, work: impl FnOnce() -> Outcome) -> c_int {
    let _inside = InsideCall::enter();
    match caught(work) {
        Ok(()) => succeeded(),
        Err(failure) => errhandler::raise_on_no_file(&failure.in_function(name)),
    }
}

#[inline]
fn succeeded() -> c_int {
    codes::forget_failure();
    SUCCESS
}

/// The result for a handle that was closed or never valid.
pub(crate) fn refuse_closed(name: &'static str, id: FileId) -> c_int {
    on_no_file(name, || {
        Err(Failure::new(
            ErrorClass::File,
            format!("the file handle {:#x} was closed", id.0),
        ))
    })
}

/// The host, or the reason why there is none.
#[inline]
pub(crate) fn host() -> Result<&'static Host, Failure> {
    #[cold]
    fn no_host(error: HostError) -> Failure {
        Failure::new(ErrorClass::Other, error.to_string())
    }
    Host::current().map_err(no_host)
}

/// Nothing may unwind into C.
#[inline]
fn caught(work: impl FnOnce() -> Outcome) -> Outcome {
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| Err(panicked(&*payload)))
}

#[cold]
fn panicked(payload: &(dyn Any + Send)) -> Failure {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    let text = text.unwrap_or_else(|| "no message".to_owned());
    Failure::new(
        ErrorClass::Intern,
        format!("internal error in pario: {text}"),
    )
}
