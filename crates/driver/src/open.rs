//! How a file is opened.

use std::io;

use crate::{Direction, StripingRequest};

/// The directions that a handle allows.
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
    /// Whether transfers in this direction are allowed.
    pub fn allows(self, direction: Direction) -> bool {
        match direction {
            Direction::Read => self != Access::Write,
            Direction::Write => self != Access::Read,
        }
    }

    /// Returns an error unless transfers in this direction are allowed.
    pub(crate) fn require(self, direction: Direction) -> io::Result<()> {
        if self.allows(direction) {
            return Ok(());
        }
        let message = match direction {
            Direction::Read => "cannot read: the file was opened for writing only",
            Direction::Write => "cannot write: the file was opened for reading only",
        };
        Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
    }
}

/// Whether opening creates the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Create {
    /// A missing file is an error.
    Never,
    /// A missing file is created.
    IfMissing,
    /// An existing file is an error.
    Exclusive,
}

/// Buffered or direct I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoMode {
    /// Through the kernel's page cache.
    Buffered,
    /// Bypassing the page cache (`O_DIRECT`) where the file system and the
    /// alignment allow it. Unaligned edges, and file systems without direct
    /// I/O, use the page cache.
    Direct,
}

/// How background transfers are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AsyncMethod {
    /// io_uring if the kernel allows it, otherwise threads.
    Automatic,
    /// io_uring; opening fails if the kernel does not allow it.
    Uring,
    /// I/O threads. Use this if a library that intercepts file calls (a
    /// profiler, a user-level file system) has to see every transfer.
    Pool,
}

/// How lists of many small pieces are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScatteredWrites {
    /// The kernel copies them into a mapping of the file where that is faster
    /// and the file system allows it.
    Automatic,
    /// One call per contiguous run, which a library that intercepts file calls
    /// sees. [`AsyncMethod::Pool`] implies it.
    Calls,
}

/// How a file will be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Advice {
    /// Sequentially: read ahead more than usual.
    Sequential,
    /// In random order: do not read ahead.
    Random,
    /// Once per byte: do not cache the data.
    NoReuse,
    /// Only this range, until [`Advice::FreeRange`]: a file system that passes tokens
    /// between nodes can give this one all of them at once.
    AccessRange {
        /// Where the range starts.
        start: u64,
        /// Where it ends.
        end: u64,
        /// What will be done there.
        direction: Direction,
    },
    /// Not this range any more: other nodes may have its tokens.
    FreeRange {
        /// Where the range starts.
        start: u64,
        /// Where it ends.
        end: u64,
    },
}

/// Permissions of created files, before the umask.
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
    /// The directions that the handle allows.
    pub access: Access,
    /// Whether opening creates the file.
    pub create: Create,
    /// Permissions of a created file, before the umask.
    pub permissions: u32,
    /// Buffered or direct reads.
    pub reads: IoMode,
    /// Buffered or direct writes.
    pub writes: IoMode,
    /// How background transfers are carried out.
    pub asynchronous: AsyncMethod,
    /// How lists of many small pieces are written.
    pub scattered: ScatteredWrites,
    /// The number of pieces per page from which such lists are stored through a mapping; `None`
    /// measures it when it is first needed ([`stored_pieces`](crate::stored_pieces)).
    pub stored_pieces: Option<u64>,
    /// The placement of a new file.
    pub striping: StripingRequest,
    /// Whether a handle that allows only writes should be able to read what it will
    /// write back ([`Handle::reads_back`](crate::Handle::reads_back)).
    pub read_back: bool,
}

impl OpenHow {
    /// Opens an existing file, buffered.
    pub fn new(access: Access) -> Self {
        OpenHow {
            access,
            create: Create::Never,
            permissions: PERMISSIONS_DEFAULT,
            reads: IoMode::Buffered,
            writes: IoMode::Buffered,
            asynchronous: AsyncMethod::Automatic,
            scattered: ScatteredWrites::Automatic,
            stored_pieces: None,
            striping: StripingRequest::default(),
            read_back: false,
        }
    }

    /// Sets whether opening creates the file.
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

    /// Sets buffered or direct reads.
    #[must_use]
    pub fn reads(self, reads: IoMode) -> Self {
        OpenHow { reads, ..self }
    }

    /// Sets buffered or direct writes.
    #[must_use]
    pub fn writes(self, writes: IoMode) -> Self {
        OpenHow { writes, ..self }
    }

    /// Sets how background transfers are carried out.
    #[must_use]
    pub fn asynchronous(self, asynchronous: AsyncMethod) -> Self {
        OpenHow {
            asynchronous,
            ..self
        }
    }

    /// Sets how lists of many small pieces are written.
    #[must_use]
    pub fn scattered(self, scattered: ScatteredWrites) -> Self {
        OpenHow { scattered, ..self }
    }

    /// Sets the number of pieces per page from which lists are stored through a mapping.
    #[must_use]
    pub fn stored_pieces(self, stored_pieces: Option<u64>) -> Self {
        OpenHow {
            stored_pieces,
            ..self
        }
    }

    /// Sets the placement of a new file.
    #[must_use]
    pub fn striping(self, striping: StripingRequest) -> Self {
        OpenHow { striping, ..self }
    }

    /// Sets whether a handle that allows only writes should be able to read what it will
    /// write back.
    #[must_use]
    pub fn read_back(self, read_back: bool) -> Self {
        OpenHow { read_back, ..self }
    }

    /// Buffered or direct I/O in one direction.
    pub fn mode(&self, direction: Direction) -> IoMode {
        match direction {
            Direction::Read => self.reads,
            Direction::Write => self.writes,
        }
    }
}

impl Default for OpenHow {
    /// Opens an existing file for reading, buffered.
    fn default() -> Self {
        OpenHow::new(Access::Read)
    }
}
