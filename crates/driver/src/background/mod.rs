//! What runs in the background on I/O threads; what io_uring carries is in
//! `uring`.

mod pool;

pub use pool::{THREADS_MAX, spawn};

use std::io;

use crate::{Completion, Outcome};

/// Calls back with an error, from another thread: the caller may hold locks
/// that its callback takes.
pub(crate) fn fail(error: io::Error, done: Completion) {
    spawn(Box::new(move || done(Outcome::failed(0, error))));
}
