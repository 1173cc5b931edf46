//! Background operations on I/O threads; those on io_uring are in `uring`.

mod pool;

pub use pool::{THREADS_MAX, spawn};

use std::io;

use crate::{Completion, Outcome};

/// Reports an error through the callback, on another thread: the caller may
/// hold locks that the callback takes.
pub(crate) fn fail(error: io::Error, done: Completion) {
    spawn(Box::new(move || done(Outcome::failed(0, error))));
}
