//! Writes under a group lock: a lock on the whole file that the ranks of a handle hold together,
//! which takes one request per client and object instead of one per piece.
//!
//! The caches of the holders are not coherent with each other, so every piece must consist of whole
//! pages, and nothing else on this rank's handle may use the file meanwhile. The lock is released,
//! with the data on the servers, before the call ends on any path. It is never kept for the next call:
//! another rank's read, or write of part of a page, would wait for it, and this rank may make no
//! further call before it has heard from that one.

use std::{
    hash::{BuildHasher, RandomState},
    io,
    num::NonZeroU32,
};

use pario_driver::{Direction, FileSystem, Handle};
use pario_hints::{Hints, Rmw};
use pario_plan::locks;
use pario_transport::{Rank, Transport};

use super::{Atomicity, Operation};
use crate::{
    Error, Mode, Result, Status,
    access::{Locking, ReadModifyWrite},
    agree,
};

/// A group lock takes a request per object. Fewer pieces than twice as many are not worth it, since
/// the call also waits until its data is on the servers.
const PIECES_PER_OBJECT_MIN: u64 = 2;

/// The group of a handle's ranks, if they are to use one: a number that programs with group locks of
/// their own are unlikely to use, the same on all ranks. *Collective*.
pub(crate) fn agree_on_group(
    comm: &dyn Transport,
    handle: &dyn Handle,
    mode: Mode,
    hints: &Hints,
) -> Result<Option<NonZeroU32>> {
    let is_concerned = hints.pario_group_lock
        && hints.pario_rmw != Rmw::Locked
        && mode.can_write()
        && comm.spans_nodes()
        && handle.facts().file_system == FileSystem::Lustre;
    if !is_concerned {
        return Ok(None);
    }
    let random = || {
        let number = RandomState::new().hash_one(std::process::id());
        (number as u32 >> 1).to_le_bytes().to_vec()
    };
    let message = agree::broadcast(comm, Rank(0), || Ok(random()))?;
    let number = message.as_slice().try_into().map_or(0, u32::from_le_bytes);
    Ok(Some(NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)))
}

impl Operation {
    /// The group under whose lock an independent write is made, if that takes fewer requests.
    pub(super) fn group(&self) -> Option<NonZeroU32> {
        let group = self.file.group?;
        let is_concerned = self.call.direction == Direction::Write
            && self.settings.atomicity == Atomicity::NonAtomic
            && !self.settings.locks_writes()
            && self.log.is_none()
            && !self.access.view.layout().is_dense();
        (is_concerned && self.has_many_pages()).then_some(group)
    }

    /// Whether it consists of whole pages, and of enough pieces for a group lock.
    fn has_many_pages(&self) -> bool {
        let Some(placement) = self.placement() else {
            return false;
        };
        let counts = placement.components().iter().map(|it| it.striping.count);
        let objects = counts.fold(0, u64::saturating_add);
        self.in_file().is_some_and(|access| {
            access.is_increasing()
                && access.stats().pieces >= objects.saturating_mul(PIECES_PER_OBJECT_MIN)
                && locks::is_paged(&access)
        })
    }

    /// Writes whole pages under the lock of the handle's group; as usual if the lock cannot be
    /// had, or if this rank has something else under way on the handle. It then waits in its writes
    /// until the others have released theirs.
    pub(crate) fn run_in_group(&self) -> Result<Status> {
        let Some(group) = self.file.group else {
            return self.run_alone();
        };
        let guard = self.file.writer_lock.try_exclusive();
        let is_held = guard.is_some() && self.handle().lock_group(group).unwrap_or(false);
        if !is_held {
            drop(guard);
            return self.run_alone();
        }
        let plan = super::exclusion::Plan {
            read_modify_write: ReadModifyWrite::Forbidden("other ranks share the group lock"),
            locking: Locking::None,
        };
        let mut held = Held(Some(self.handle()));
        let written = self.result(self.transfer(plan).run());
        match (written, held.release()) {
            (Ok(_), Err(error)) => Err(Error::from(error)),
            (written, _) => written,
        }
    }
}

/// A group lock, which is released even if a conversion function of the program panics.
struct Held<'a>(Option<&'a dyn Handle>);

impl Held<'_> {
    fn release(&mut self) -> io::Result<()> {
        self.0.take().map_or(Ok(()), |handle| handle.unlock_group())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let _ = self.release();
    }
}
