//! Mounted file systems, through libc's file calls.

mod announcements;
mod calls;
mod descriptor;
mod direct;
mod handle;
mod lease;
mod lock_wait;
mod locks;
mod passing;
mod preallocate;
pub(crate) mod sys;
#[cfg(test)]
mod test_directories;
mod transfer;
mod writer_group;

pub(crate) use calls::Calls;
pub use calls::{CallAction, Interference, SystemCall};
pub(crate) use descriptor::{Descriptor, ListMethod};
pub(crate) use handle::{PosixHandle, Setup};
pub(crate) use lock_wait::LockWait;
pub use passing::{Mailbox, SharedDescription};
pub(crate) use transfer::{run_steps, step};
pub use writer_group::WriterGroup;

use std::{io, path::Path, sync::Arc};

use crate::{
    Capabilities, Driver, FileControl, FileSystem, Handle, OpenHow,
    control::{Control, KernelControl},
    detect,
    mapped::Copier,
};

/// Any mounted file system.
///
/// All calls go through libc's symbols, so that libraries that intercept them
/// (profilers, user-level file systems) see them. The exception are lists of
/// many small pieces close together on a local file system: the kernel copies
/// them into a mapping of the file, unless
/// [`ScatteredWrites::Calls`](crate::ScatteredWrites::Calls) is requested. The
/// program itself never accesses the mapping: an I/O error is an error, not a
/// signal.
#[derive(Clone, Debug)]
pub struct Posix {
    assumed: Option<FileSystem>,
    calls: Calls,
    control: Control,
    lists: ListMethod,
}

impl Posix {
    /// A driver that detects the file system.
    pub fn new() -> Self {
        Posix {
            assumed: None,
            calls: Calls::default(),
            control: Arc::new(KernelControl),
            lists: ListMethod::Mapping(Copier::Kernel),
        }
    }

    /// Assumes that files are on this kind of file system, whatever the kernel
    /// reports.
    #[must_use]
    pub fn assuming(self, file_system: FileSystem) -> Self {
        Posix {
            assumed: Some(file_system),
            ..self
        }
    }

    /// Lets `interference` shorten, interrupt and fail system calls, for tests.
    #[must_use]
    pub fn with_interference(self, interference: Arc<dyn Interference>) -> Self {
        Posix {
            calls: Calls::interfered(interference),
            ..self
        }
    }

    /// Makes the calls that only some file systems understand through `control`,
    /// for tests.
    #[must_use]
    pub fn with_control(self, control: Arc<dyn FileControl>) -> Self {
        Posix { control, ..self }
    }

    /// Sets how lists of pieces are passed to the kernel.
    pub(crate) fn with_lists(self, lists: ListMethod) -> Self {
        Posix { lists, ..self }
    }
}

impl Default for Posix {
    fn default() -> Self {
        Posix::new()
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
            control: self.control.clone(),
        };
        let handle = PosixHandle::open(path, how, setup)?;
        Ok(Arc::new(handle))
    }

    fn file_system(&self, path: &Path) -> io::Result<FileSystem> {
        match &self.assumed {
            Some(assumed) => Ok(assumed.clone()),
            None => Ok(detect::of_path(path)?.0),
        }
    }

    fn delete(&self, path: &Path) -> io::Result<()> {
        sys::unlink(path)
    }
}
