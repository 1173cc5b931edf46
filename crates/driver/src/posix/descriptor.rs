//! An open file as the kernel knows it, and the ways its bytes can go.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
    sync::Arc,
};

use super::{
    calls::{Calls, SystemCall},
    direct::{self, Descriptors, Direct},
    sys,
    transfer::{self, step},
};
use crate::{Access, Batch, Create, IoMode, OpenHow, Outcome, mapped::Stores, uring};

/// How the runs of a list of pieces get to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListMethod {
    /// One system call each.
    #[default]
    Calls,
    /// Many at a time through a ring.
    Ring,
    /// Stored in a mapping of the file where they are small and close together.
    Mapping,
}

/// One open file description, and a second one for direct transfers where
/// they are asked for and possible.
#[derive(Debug)]
pub(crate) struct Descriptor {
    buffered: OwnedFd,
    /// What `buffered` was opened for.
    access: libc::c_int,
    direct: Option<Direct>,
    how: OpenHow,
    calls: Calls,
    lists: ListMethod,
    /// Shared with the descriptors that replace this one.
    stores: Arc<Stores>,
}

impl Descriptor {
    pub(crate) fn open(
        path: &Path,
        how: &OpenHow,
        calls: Calls,
        lists: ListMethod,
    ) -> io::Result<Self> {
        let (buffered, access) = open_buffered(path, how, lists)?;
        // The kernel itself refuses to open one for writing.
        if how.access == Access::Read && sys::is_directory(buffered.as_fd())? {
            return Err(io::Error::from_raw_os_error(libc::EISDIR));
        }
        let wanted = how.reads == IoMode::Direct || how.writes == IoMode::Direct;
        let direct = wanted
            .then(|| Direct::reopen(buffered.as_fd(), access_flags(how)))
            .flatten();
        Ok(Descriptor {
            buffered,
            access,
            direct,
            how: how.clone(),
            calls,
            lists,
            stores: Arc::default(),
        })
    }

    /// The same file with a description of its own, which has no locks: whatever
    /// the file is called by now, or if it has no name any more.
    pub(super) fn reopen(&self) -> io::Result<Self> {
        let buffered = self.calls.make(SystemCall::Reopen, 0, |_| {
            sys::reopen(self.buffered(), self.access)
        })?;
        let (old, new) = (
            sys::identity(self.buffered())?,
            sys::identity(buffered.as_fd())?,
        );
        if (old.device, old.inode) != (new.device, new.inode) {
            return Err(io::Error::other("opening the file again opened another"));
        }
        let direct = match &self.direct {
            None => None,
            // Transfers of whole pages must not turn into buffered ones.
            Some(_) => Some(
                Direct::reopen(buffered.as_fd(), access_flags(&self.how))
                    .ok_or(io::ErrorKind::Unsupported)?,
            ),
        };
        Ok(Descriptor {
            buffered,
            access: self.access,
            direct,
            how: self.how.clone(),
            calls: self.calls.clone(),
            lists: self.lists,
            stores: self.stores.clone(),
        })
    }

    /// The stores in mappings of the file.
    pub(super) fn stores(&self) -> &Stores {
        &self.stores
    }

    /// The description that locks are on, and all but direct transfers.
    pub(crate) fn buffered(&self) -> BorrowedFd<'_> {
        self.buffered.as_fd()
    }

    /// The descriptor for direct transfers in the batch's direction.
    fn direct(&self, batch: &Batch<'_>) -> Option<&Direct> {
        self.direct
            .as_ref()
            .filter(|_| self.how.mode(batch.direction()) == IoMode::Direct)
    }

    /// Whether a batch goes to the kernel as it is.
    pub(super) fn is_plain(&self, batch: &Batch<'_>) -> bool {
        self.direct(batch).is_none() && self.calls.undisturbed()
    }

    /// Moves a batch.
    pub(crate) fn transfer(&self, batch: &Batch<'_>) -> Outcome {
        let (calls, buffered) = (&self.calls, self.buffered());
        if let Some(direct) = self.direct(batch) {
            return direct::run(
                &Descriptors {
                    calls,
                    buffered,
                    direct,
                },
                batch,
            );
        }
        match self.lists {
            ListMethod::Ring if calls.undisturbed() => {
                uring::transfer(buffered, batch, |vector| step(calls, buffered, vector))
            }
            ListMethod::Mapping if calls.undisturbed() => {
                let by_calls = |some: &Batch<'_>| transfer::run(calls, buffered, some);
                self.stores.transfer(buffered, batch, by_calls)
            }
            _ => transfer::run(calls, buffered, batch),
        }
    }

    /// Writes lists by calls, whatever was asked for.
    pub(super) fn without_mapping(mut self) -> Self {
        if self.lists == ListMethod::Mapping {
            self.lists = ListMethod::Calls;
        }
        self
    }

    /// Closes; the first failure counts.
    pub(super) fn close(self) -> io::Result<()> {
        let direct = self
            .direct
            .map_or(Ok(()), |direct| sys::close(direct.into_descriptor()));
        sys::close(self.buffered).and(direct)
    }
}

/// Only files that may be read as well can be mapped for writing.
/// Tells what the file was opened for.
fn open_buffered(
    path: &Path,
    how: &OpenHow,
    lists: ListMethod,
) -> io::Result<(OwnedFd, libc::c_int)> {
    let open = |access| -> io::Result<_> {
        let fd = sys::open(path, access | create_flags(how), how.permissions)?;
        Ok((fd, access))
    };
    if lists == ListMethod::Mapping && how.access == Access::Write {
        match open(libc::O_RDWR) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            opened => return opened,
        }
    }
    open(access_flags(how))
}

fn access_flags(how: &OpenHow) -> libc::c_int {
    match how.access {
        Access::Read => libc::O_RDONLY,
        Access::Write => libc::O_WRONLY,
        Access::ReadWrite => libc::O_RDWR,
    }
}

fn create_flags(how: &OpenHow) -> libc::c_int {
    match how.create {
        Create::Never => 0,
        Create::IfMissing => libc::O_CREAT,
        Create::Exclusive => libc::O_CREAT | libc::O_EXCL,
    }
}
