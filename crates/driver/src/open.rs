//! How a file is opened.

use std::io;

use crate::Direction;

/// Which directions a handle allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Reads only.
    Read,
    /// Writes only.
    Write,
    /// Both.
    ReadWrite,
}

impl Access {
    /// Whether bytes may go this way.
    pub fn allows(self, direction: Direction) -> bool {
        match direction {
            Direction::Read => self != Access::Write,
            Direction::Write => self != Access::Read,
        }
    }

    /// An error unless bytes may go this way.
    pub(crate) fn require(self, direction: Direction) -> io::Result<()> {
        if self.allows(direction) {
            return Ok(());
        }
        let message = match direction {
            Direction::Read => "the file was opened for writing only: reading is not allowed",
            Direction::Write => "the file was opened for reading only: changing it is not allowed",
        };
        Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
    }
}

/// What happens when the file exists or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Create {
    /// A missing file is an error.
    Never,
    /// A missing file is created.
    IfMissing,
    /// A file that exists is an error.
    Exclusive,
}

/// Through the kernel's page cache or past it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoMode {
    /// Through the page cache.
    Buffered,
    /// Past it (`O_DIRECT`) where the file system and the alignment allow;
    /// unaligned edges, and file systems without direct I/O, go through it.
    Direct,
}

/// What carries background transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AsyncMethod {
    /// io_uring where the kernel allows it, else threads.
    Automatic,
    /// io_uring; opening fails where the kernel does not allow it.
    Uring,
    /// I/O threads. The choice where a library that intercepts file calls
    /// (a profiler, a user-level file system) has to see every transfer.
    Pool,
}

/// Permissions of created files, before the process's umask.
/// How a file will be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Advice {
    /// From front to back: read ahead more than usual.
    Sequential,
    /// Here and there: do not read ahead.
    Random,
    /// Each byte once: do not keep the data.
    NoReuse,
}

const PERMISSIONS_DEFAULT: u32 = 0o666;

/// How a file is opened.
///
/// ```
/// use pario_driver::{Access, Create, OpenHow};
/// let how = OpenHow::new(Access::ReadWrite).create(Create::IfMissing);
/// assert_eq!(how.permissions, 0o666);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenHow {
    /// Which directions the handle allows.
    pub access: Access,
    /// What happens when the file exists or not.
    pub create: Create,
    /// Permissions of a created file, before the umask.
    pub permissions: u32,
    /// How reads go.
    pub reads: IoMode,
    /// How writes go.
    pub writes: IoMode,
    /// What carries background transfers.
    pub asynchronous: AsyncMethod,
}

impl OpenHow {
    /// An existing file, buffered.
    pub fn new(access: Access) -> Self {
        OpenHow {
            access,
            create: Create::Never,
            permissions: PERMISSIONS_DEFAULT,
            reads: IoMode::Buffered,
            writes: IoMode::Buffered,
            asynchronous: AsyncMethod::Automatic,
        }
    }

    /// Sets what happens when the file exists or not.
    #[must_use]
    pub fn create(self, create: Create) -> Self {
        OpenHow { create, ..self }
    }

    /// Sets the permissions of a created file, before the umask.
    #[must_use]
    pub fn permissions(self, permissions: u32) -> Self {
        OpenHow {
            permissions,
            ..self
        }
    }

    /// Sets how reads go.
    #[must_use]
    pub fn reads(self, reads: IoMode) -> Self {
        OpenHow { reads, ..self }
    }

    /// Sets how writes go.
    #[must_use]
    pub fn writes(self, writes: IoMode) -> Self {
        OpenHow { writes, ..self }
    }

    /// Sets what carries background transfers.
    #[must_use]
    pub fn asynchronous(self, asynchronous: AsyncMethod) -> Self {
        OpenHow {
            asynchronous,
            ..self
        }
    }

    /// How bytes go in one direction.
    pub fn mode(&self, direction: Direction) -> IoMode {
        match direction {
            Direction::Read => self.reads,
            Direction::Write => self.writes,
        }
    }
}

impl Default for OpenHow {
    /// An existing file for reading, buffered.
    fn default() -> Self {
        OpenHow::new(Access::Read)
    }
}
