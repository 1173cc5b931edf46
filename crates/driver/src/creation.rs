//! Creation of files with a placement of their own, on file systems that stripe
//! files over servers.
//!
//! The placement has to be set before anything is written, so one rank creates
//! the file and the others open it. A placement that the file system refuses is
//! not an error: the file then has the file system's default.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use crate::{
    Create, FileSystem, OpenHow, beegfs, cephfs::attribute, control::Control, detect, lustre,
    posix::sys,
};

/// The placement requested for a new file. By default nothing is requested, and
/// the file system decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StripingRequest {
    /// Number of servers.
    pub servers: Option<ServerCount>,
    /// Bytes per stripe.
    pub unit: Option<u64>,
    /// The server of the first stripe.
    pub first_server: Option<u32>,
    /// The pool of servers to choose from.
    pub pool: Option<String>,
    /// Stripes per server; 0 and 1 mean one.
    pub stripes_per_server: u32,
    /// What to choose a placement from if nothing is requested; `None` leaves it
    /// to the file system.
    pub expected: Option<ExpectedUse>,
}

/// A number of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerCount {
    /// All of them.
    All,
    /// This many.
    Exactly(u32),
}

/// How a new file is going to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedUse {
    /// Nodes that have it open.
    pub nodes: u32,
    /// Its size in the end, if known.
    pub bytes: Option<u64>,
}

impl StripingRequest {
    /// Whether the user asked for anything.
    pub fn is_explicit(&self) -> bool {
        self.servers.is_some()
            || self.unit.is_some()
            || self.first_server.is_some()
            || self.pool.is_some()
            || self.stripes_per_server > 1
    }

    /// Whether there is nothing to do.
    fn is_empty(&self) -> bool {
        !self.is_explicit() && self.expected.is_none()
    }
}

/// The placement of a file that this handle created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Creation {
    /// It was set.
    Set {
        /// What was asked of the file system, and why.
        reason: String,
    },
    /// The file system's default was left.
    Default {
        /// Why.
        reason: String,
    },
    /// What the user asked for could not be set; the file has the default.
    Refused {
        /// What was asked of the file system, and its answer.
        reason: String,
    },
}

impl Creation {
    /// The result of an attempt to set a placement, described by `what`.
    pub(crate) fn attempted(what: String, is_explicit: bool, result: io::Result<()>) -> Creation {
        match result {
            Ok(()) => Creation::Set { reason: what },
            Err(error) if is_explicit => Creation::Refused {
                reason: format!("{what}: {error}"),
            },
            Err(error) => Creation::Default {
                reason: format!("{what} was refused: {error}"),
            },
        }
    }
}

/// Opens a file with these flags and sets the placement of a new one.
pub(crate) fn open(
    path: &Path,
    flags: libc::c_int,
    how: &OpenHow,
    assumed: Option<&FileSystem>,
    control: &Control,
) -> io::Result<(OwnedFd, Option<Creation>)> {
    let as_usual = || Ok((sys::open(path, flags, how.permissions)?, None));
    if how.create == Create::Never || how.striping.is_empty() {
        return as_usual();
    }
    let directory = parent(path);
    let kind = match assumed {
        Some(kind) => Ok(kind.clone()),
        None => detect::of_directory(&directory),
    };
    let file = NewFile {
        path,
        directory: &directory,
        flags,
        how,
        control,
    };
    let created = match kind {
        Ok(FileSystem::Lustre) => lustre::create(&file)?,
        Ok(FileSystem::BeeGfs) => beegfs::create(&file)?,
        Ok(kind) if kind.is_ceph() => attribute::create(&file)?,
        _ => None,
    };
    match created {
        Some((file, creation)) => Ok((file, Some(creation))),
        None => as_usual(),
    }
}

/// A file that may have to be created.
pub(crate) struct NewFile<'a> {
    pub(crate) path: &'a Path,
    pub(crate) directory: &'a Path,
    /// For `open`.
    pub(crate) flags: libc::c_int,
    pub(crate) how: &'a OpenHow,
    pub(crate) control: &'a Control,
}

impl NewFile<'_> {
    pub(crate) fn request(&self) -> &StripingRequest {
        &self.how.striping
    }

    /// Opens the file, which must not exist, with further flags. `None` if it
    /// exists and that is allowed.
    pub(crate) fn create(&self, flags: libc::c_int) -> io::Result<Option<OwnedFd>> {
        let flags = self.flags | libc::O_CREAT | libc::O_EXCL | flags;
        self.unless_existing(sys::open(self.path, flags, self.how.permissions))
    }

    /// The result of an attempt to create the file; `None` if it exists and that
    /// is allowed.
    pub(crate) fn unless_existing<T>(&self, created: io::Result<T>) -> io::Result<Option<T>> {
        match created {
            Err(error)
                if error.kind() == io::ErrorKind::AlreadyExists
                    && self.how.create == Create::IfMissing =>
            {
                Ok(None)
            }
            created => created.map(Some),
        }
    }

    /// Calls `ask` with the directory.
    pub(crate) fn with_directory<T>(
        &self,
        ask: impl FnOnce(BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY;
        ask(sys::open(self.directory, flags, 0)?.as_fd())
    }
}

/// The directory of a file.
fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}
