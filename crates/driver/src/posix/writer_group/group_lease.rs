//! The lease on a shared description, as one rank of the group holds it.

use std::{
    ops::Range,
    sync::{
        Arc, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{WriterGroup, leave};
use crate::{
    Lease, RangeLock,
    closing::ResourceGuard,
    posix::{descriptor::Descriptor, sys},
};

/// A lease on the shared description.
#[derive(Debug)]
pub(super) struct GroupLease {
    pub(super) group: Arc<WriterGroup>,
    pub(super) file: ResourceGuard<Descriptor>,
    /// Set once this rank writes like any other, and no longer rewrites.
    pub(super) is_ordinary: AtomicBool,
}

impl GroupLease {
    fn is_ordinary(&self) -> bool {
        self.is_ordinary.load(Ordering::Relaxed)
    }

    fn leave(&self) {
        self.group.announcements.leave();
        let _ = self.group.with_locks(|fd| leave(fd, self.file.buffered()));
    }

    /// Lets ordinary writers of other ranks in, and becomes one. No range may be locked: others
    /// who rewrite do the same, but only after the range that they are waiting for.
    fn become_ordinary(&self) {
        self.leave();
        self.is_ordinary.store(true, Ordering::Relaxed);
        self.group.announce();
    }
}

impl Lease for GroupLease {
    fn is_intact(&self) -> bool {
        let lock_file = self.group.lock_file.read();
        let lock_file = lock_file.unwrap_or_else(PoisonError::into_inner);
        !self.is_ordinary()
            && lock_file.is_some()
            && self.group.is_shared()
            && sys::has_lease(self.file.buffered())
    }

    fn lock(&self, range: Range<u64>) -> Option<RangeLock> {
        if self.is_ordinary() {
            return None;
        }
        let lock = match self.group.announcements.is_written() {
            true => None,
            false => self.group.lock_range(range).ok(),
        };
        if lock.is_none() {
            self.become_ordinary();
        }
        lock
    }
}

impl Drop for GroupLease {
    fn drop(&mut self) {
        match self.is_ordinary() {
            true => self.group.retract(),
            false => self.leave(),
        }
    }
}
