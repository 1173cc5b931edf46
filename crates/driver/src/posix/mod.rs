//! Files that the kernel mounts, through libc's file calls.

mod calls;
mod handle;
mod locks;
mod preallocate;
pub(crate) mod sys;
mod transfer;

pub use calls::{Interference, SystemCall, Verdict};
pub(crate) use transfer::beyond_files;

use std::{io, path::Path, sync::Arc};

use crate::{Background, Capabilities, Driver, FileSystem, Handle, OpenHow};
use calls::Calls;
use handle::PosixHandle;

/// Any file system that the kernel mounts.
///
/// All calls go through libc's symbols, so that libraries that intercept them
/// (profilers, user-level file systems) see them. No memory is mapped: an I/O
/// error is an error, not a signal.
#[derive(Clone, Debug, Default)]
pub struct Posix {
    assumed: Option<FileSystem>,
    calls: Calls,
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
}

impl Driver for Posix {
    fn name(&self) -> &'static str {
        "posix"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            between_processes: true,
            locks: true,
            durable: true,
            background: Background::Kernel,
        }
    }

    fn open(&self, path: &Path, how: &OpenHow) -> io::Result<Arc<dyn Handle>> {
        let handle = PosixHandle::open(path, how, self.calls.clone(), self.assumed.as_ref())?;
        Ok(Arc::new(handle))
    }

    fn delete(&self, path: &Path) -> io::Result<()> {
        sys::unlink(path)
    }
}
