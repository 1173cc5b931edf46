//! An open file as the kernel knows it, and the ways its bytes can go.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
};

use super::{
    calls::Calls,
    direct::{self, Direct, Route},
    sys,
    transfer::{self, step},
};
use crate::{Access, Batch, Create, IoMode, OpenHow, Outcome, uring};

/// How the runs of a list of pieces get to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListMethod {
    /// One system call each.
    #[default]
    Calls,
    /// Many at a time through a ring.
    Ring,
}

/// One open file description, and a second one for direct transfers where
/// they are asked for and possible.
#[derive(Debug)]
pub(crate) struct Descriptor {
    buffered: OwnedFd,
    direct: Option<Direct>,
    how: OpenHow,
    calls: Calls,
    lists: ListMethod,
}

impl Descriptor {
    pub(crate) fn open(
        path: &Path,
        how: &OpenHow,
        calls: Calls,
        lists: ListMethod,
    ) -> io::Result<Self> {
        let buffered = sys::open(path, access_flags(how) | create_flags(how), how.permissions)?;
        if sys::is_directory(buffered.as_fd())? {
            return Err(io::Error::from_raw_os_error(libc::EISDIR));
        }
        let wanted = how.reads == IoMode::Direct || how.writes == IoMode::Direct;
        let direct = wanted
            .then(|| Direct::reopen(buffered.as_fd(), access_flags(how)))
            .flatten();
        Ok(Descriptor {
            buffered,
            direct,
            how: how.clone(),
            calls,
            lists,
        })
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
                &Route {
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
            ListMethod::Ring | ListMethod::Calls => transfer::run(calls, buffered, batch),
        }
    }

    /// Closes; the first failure counts.
    pub(super) fn close(self) -> io::Result<()> {
        let direct = self
            .direct
            .map_or(Ok(()), |direct| sys::close(direct.into_descriptor()));
        sys::close(self.buffered).and(direct)
    }
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
