//! An open file description of the kernel, and the transfers on it.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
};

use super::{
    calls::{Calls, SystemCall},
    direct::{self, Descriptors, Direct},
    lease, sys,
    transfer::{self, step},
};
use crate::{
    Access, Batch, Create, IoMode, OnePiece, OpenHow, Outcome, Placement, by_server,
    mapped::{Copier, Stores, Target},
    uring,
};

/// How the runs of a list of pieces get to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListMethod {
    /// Many at a time through a ring.
    Ring,
    /// Stored in a mapping of the file where they are small and close together
    /// and the file system allows it, otherwise one system call each.
    Mapping(Copier),
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
    /// Shared with the descriptors that replace this one; `None` if lists are not
    /// stored.
    stores: Option<Arc<Stores>>,
    /// Where lists of long pieces go to several servers at the same time.
    striped: Option<Striped>,
    may_use_ring: bool,
}

/// A file on several servers, which can work at the same time.
#[derive(Clone, Debug)]
pub(super) struct Striped {
    pub(super) placement: Placement,
    pub(super) means: Means,
}

/// How several calls are under way at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Means {
    /// Through a ring, or by threads where there is none.
    Ring,
    /// By threads, whose calls interceptors see.
    Threads,
}

impl Descriptor {
    /// A file that was opened with the flags for `how`.
    pub(crate) fn of(
        buffered: OwnedFd,
        how: &OpenHow,
        calls: Calls,
        lists: ListMethod,
    ) -> io::Result<Self> {
        let access = access_flags(how);
        // The kernel itself refuses to open one for writing.
        if how.access == Access::Read && sys::is_directory(buffered.as_fd())? {
            return Err(io::Error::from_raw_os_error(libc::EISDIR));
        }
        let wanted = how.reads == IoMode::Direct || how.writes == IoMode::Direct;
        let direct = wanted
            .then(|| Direct::reopen(buffered.as_fd(), access))
            .flatten();
        Ok(Descriptor {
            buffered,
            access,
            direct,
            how: how.clone(),
            calls,
            lists,
            stores: None,
            striped: None,
            may_use_ring: true,
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
            striped: self.striped.clone(),
            may_use_ring: self.may_use_ring,
        })
    }

    /// Uses the description of another descriptor of the same file from now on, under the same
    /// number. Nothing may use this one meanwhile.
    pub(super) fn adopt(&self, other: BorrowedFd<'_>) -> io::Result<()> {
        let (mine, theirs) = (sys::identity(self.buffered())?, sys::identity(other)?);
        let is_same = (mine.device, mine.inode) == (theirs.device, theirs.inode);
        if !is_same || sys::access_mode(other)? != self.access || self.direct.is_some() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if let Some(stores) = &self.stores {
            stores.forget_mapping();
        }
        sys::replace_description(self.buffered(), other)
    }

    /// Uses a description that no other rank has from now on, under the same number.
    pub(super) fn unshare(&self) -> io::Result<()> {
        let own = self.reopen()?;
        sys::replace_description(self.buffered(), own.buffered())
    }

    /// Another descriptor of the same description.
    pub(super) fn duplicate(&self) -> io::Result<OwnedFd> {
        self.buffered.try_clone()
    }

    /// Closes the file in such a way that it can be opened again; returned unchanged if it
    /// could not be.
    pub(super) fn park(self) -> Result<Parked, Box<Self>> {
        let way = match &self.direct {
            None => lease::way_back(&self),
            Some(_) => Err(io::ErrorKind::Unsupported.into()),
        };
        let Ok(way) = way else {
            return Err(Box::new(self));
        };
        if let Some(stores) = &self.stores {
            stores.forget_mapping();
        }
        Ok(Parked(Descriptor {
            buffered: way,
            ..self
        }))
    }

    /// The accesses that the file was opened for.
    pub(super) fn opened_for(&self) -> Access {
        self.how.access
    }

    /// Stores dense lists in mappings of the file from now on.
    pub(super) fn with_stores(self, stores: Stores) -> Self {
        Descriptor {
            stores: Some(Arc::new(stores)),
            ..self
        }
    }

    /// Moves lists of long pieces to or from several servers at the same time from
    /// now on.
    pub(super) fn with_stripes(self, striped: Striped) -> Self {
        Descriptor {
            striped: Some(striped),
            ..self
        }
    }

    /// Moves everything by plain system calls from now on.
    pub(super) fn without_ring(self) -> Self {
        Descriptor {
            may_use_ring: false,
            ..self
        }
    }

    /// Asks the server for the size before reads beyond the known one, from now on. A ring would not.
    pub(super) fn refreshing_sizes(self) -> Self {
        Descriptor {
            calls: self.calls.clone().refreshing_sizes(),
            ..self.without_ring()
        }
    }

    /// Whether transfers may go through a ring.
    pub(super) fn may_use_ring(&self) -> bool {
        self.may_use_ring
    }

    /// The stores in mappings of the file, if lists are stored.
    pub(super) fn stores(&self) -> Option<&Stores> {
        self.stores.as_deref()
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
        let by_calls = |some: &Batch<'_>| transfer::run(calls, buffered, some);
        let striped = self.striped.as_ref().filter(|_| has_long_pieces(batch));
        let by_ring = match (self.lists, striped) {
            _ if !self.may_use_ring => false,
            (ListMethod::Ring, _) => true,
            (_, None) => false,
            (_, Some(striped)) => striped.means == Means::Ring && uring::is_available(),
        };
        if by_ring && calls.undisturbed() {
            return uring::transfer(buffered, batch, |vector| step(calls, buffered, vector));
        }
        if let Some(Striped { placement, .. }) = striped {
            return by_server::transfer(placement, batch, by_calls);
        }
        match &self.stores {
            None => by_calls(batch),
            Some(stores) => {
                let target = Target {
                    calls,
                    file: buffered,
                    can_read: self.access == libc::O_RDWR,
                };
                stores.transfer(&target, batch, by_calls)
            }
        }
    }

    /// Moves one piece.
    #[inline]
    pub(super) fn transfer_one(&self, one: &OnePiece<'_>) -> Outcome {
        let is_direct = self.direct.is_some() && self.how.mode(one.direction()) == IoMode::Direct;
        match is_direct || self.lists == ListMethod::Ring {
            false => transfer::run_one(&self.calls, self.buffered(), one),
            true => self.transfer(&one.batch()),
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

/// What remains of a descriptor whose file is closed: its descriptor is only a way to the
/// file.
#[derive(Debug)]
pub(super) struct Parked(Descriptor);

impl Parked {
    /// Opens the file again.
    pub(super) fn unpark(self) -> Result<Descriptor, (Box<Self>, io::Error)> {
        match self.0.reopen() {
            Ok(descriptor) => Ok(descriptor),
            Err(error) => Err((Box::new(self), error)),
        }
    }
}

/// Pieces of this length take longer to move than to queue.
const LONG_PIECE_BYTES: u64 = 64 << 10;

/// Whether a batch has several pieces, long ones on average.
fn has_long_pieces(batch: &Batch<'_>) -> bool {
    let pieces = batch.pieces().len() as u64;
    pieces > 1 && batch.bytes() / pieces >= LONG_PIECE_BYTES
}

pub(crate) fn access_flags(how: &OpenHow) -> libc::c_int {
    match how.access {
        Access::Read => libc::O_RDONLY,
        Access::Write => libc::O_WRONLY,
        Access::ReadWrite => libc::O_RDWR,
    }
}

pub(crate) fn create_flags(how: &OpenHow) -> libc::c_int {
    match how.create {
        Create::Never => 0,
        Create::IfMissing => libc::O_CREAT,
        Create::Exclusive => libc::O_CREAT | libc::O_EXCL,
    }
}
