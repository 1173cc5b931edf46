//! Files that the kernel mounts, through libc's file calls.

mod calls;
mod descriptor;
mod direct;
mod handle;
mod lock_wait;
mod locks;
mod preallocate;
pub(crate) mod sys;
mod transfer;

pub use calls::{CallAction, Interference, SystemCall};
pub(crate) use descriptor::{Descriptor, ListMethod};

use std::{io, path::Path, sync::Arc};

use crate::{Capabilities, Driver, FileSystem, Handle, OpenHow};
use calls::Calls;
use handle::{PosixHandle, Setup};

/// Any file system that the kernel mounts.
///
/// All calls go through libc's symbols, so that libraries that intercept them
/// (profilers, user-level file systems) see them. No memory is mapped: an I/O
/// error is an error, not a signal.
#[derive(Clone, Debug, Default)]
pub struct Posix {
    assumed: Option<FileSystem>,
    calls: Calls,
    lists: ListMethod,
}

impl Posix {
    /// The driver, which finds out what file system it is on.
    pub fn new() -> Self {
        Posix::default()
    }

    /// Believes that files are on this kind of file system, whatever the
    /// kernel says.
    #[must_use]
    pub fn assuming(self, file_system: FileSystem) -> Self {
        Posix {
            assumed: Some(file_system),
            ..self
        }
    }

    /// Lets `interference` shorten, interrupt and fail system calls: how the
    /// loops that continue them are tested.
    #[must_use]
    pub fn with_interference(self, interference: Arc<dyn Interference>) -> Self {
        Posix {
            calls: Calls::interfered(interference),
            ..self
        }
    }

    /// Sets how lists of pieces get to the kernel.
    pub(crate) fn with_lists(self, lists: ListMethod) -> Self {
        Posix { lists, ..self }
    }
}

impl Driver for Posix {
    fn name(&self) -> &'static str {
        "posix"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::OF_THE_KERNEL
    }

    fn open(&self, path: &Path, how: &OpenHow) -> io::Result<Arc<dyn Handle>> {
        let setup = Setup {
            calls: self.calls.clone(),
            lists: self.lists,
            assumed: self.assumed.clone(),
        };
        let handle = PosixHandle::open(path, how, setup)?;
        Ok(Arc::new(handle))
    }

    fn delete(&self, path: &Path) -> io::Result<()> {
        sys::unlink(path)
    }
}
