//! io_uring: POSIX files whose lists of pieces are passed to the kernel in one
//! call, and the engine for background transfers.

mod blocking;
mod engine;
mod ring;
mod window;

pub(crate) use blocking::transfer;
pub(crate) use engine::{Operation, submit};
pub(crate) use ring::is_available;
pub use ring::require;

use std::{io, path::Path, sync::Arc};

use crate::{
    Capabilities, Driver, Handle, OpenHow,
    posix::{ListMethod, Posix},
};

/// Allows another attempt to create a ring after a failure: descriptors or
/// memory may have been short temporarily.
pub(crate) fn renew() {
    if ring::forget_failure() {
        engine::forget_failure();
    }
}

/// POSIX files whose lists of pieces are passed to the kernel many at a time,
/// through io_uring. A contiguous run is one system call either way and is made
/// directly.
///
/// If the kernel does not allow io_uring, plain calls are used. Libraries that
/// intercept file calls do not see transfers through a ring.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uring;

impl Driver for Uring {
    fn name(&self) -> &'static str {
        "uring"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::OF_THE_KERNEL
    }

    fn open(&self, path: &Path, how: &OpenHow) -> io::Result<Arc<dyn Handle>> {
        Posix::new().with_lists(ListMethod::Ring).open(path, how)
    }

    fn delete(&self, path: &Path) -> io::Result<()> {
        Posix::new().delete(path)
    }
}
