//! An open file in memory.

use std::{
    fmt, io,
    ops::Range,
    sync::{Arc, Mutex},
};

use super::Node;
use crate::{
    Access, Advice, Batch, Client, Coherence, Completion, Direction, Facts, FileSystem, Handle,
    Latency, LockMode, LockReach, Outcome, RangeLock, background,
    closing::{Closing, ResourceGuard, lock},
    lock::Ticket,
};

/// Preferred transfer size: the page size of the contents.
const BLOCK_BYTES: u64 = 1 << 16;

static FACTS: Facts = Facts {
    file_system: FileSystem::Memory,
    mount_point: None,
    block_size: BLOCK_BYTES,
    direct_alignment: None,
    striping: None,
    placement: None,
    lock_granularity: None,
    coherence: Coherence::WithinNode,
    client: Client::Local,
    source: String::new(),
    locks: LockReach::Node,
};

/// A file opened by one rank.
pub(super) struct MemoryHandle {
    node: Closing<Arc<Node>>,
    access: Access,
    held: Arc<Mutex<Vec<Ticket>>>,
}

impl MemoryHandle {
    pub(super) fn new(node: Arc<Node>, access: Access) -> Self {
        MemoryHandle {
            node: Closing::new(node),
            access,
            held: Arc::default(),
        }
    }

    /// A guard for a transfer.
    fn enter_for_transfer(&self, batch: &Batch<'_>) -> io::Result<ResourceGuard<Arc<Node>>> {
        let guard = self.enter(batch.direction())?;
        batch.require_addressable()?;
        Ok(guard)
    }

    fn enter(&self, direction: Direction) -> io::Result<ResourceGuard<Arc<Node>>> {
        let guard = self.node.enter()?;
        self.access.require(direction)?;
        Ok(guard)
    }

    /// The guard of a lock that was taken. `close` may release it first.
    fn guard(
        &self,
        node: Arc<Node>,
        ticket: Ticket,
        range: Range<u64>,
        mode: LockMode,
    ) -> RangeLock {
        lock(&self.held).push(ticket);
        let held = self.held.clone();
        RangeLock::new(range, mode, move || {
            let mut held = lock(&held);
            if let Some(at) = held.iter().position(|&other| other == ticket) {
                held.swap_remove(at);
                node.locks.release(ticket, |_: Range<u64>| Ok(()));
            }
        })
    }
}

impl Handle for MemoryHandle {
    fn transfer(&self, batch: &Batch<'_>) -> Outcome {
        match self.enter_for_transfer(batch) {
            Ok(node) => node.contents.transfer(batch),
            Err(error) => Outcome::failed(0, error),
        }
    }

    fn submit(&self, batch: Batch<'static>, done: Completion) {
        let node = match self.enter_for_transfer(&batch) {
            Ok(node) => node,
            Err(error) => return background::fail(error, done),
        };
        background::spawn(Box::new(move || {
            let outcome = node.contents.transfer(&batch);
            // `done` may close the file, which waits for guards.
            drop(node);
            done(outcome);
        }));
    }

    fn latency(&self, _direction: Direction) -> Latency {
        Latency::Memory
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.node.enter()?.contents.size())
    }

    fn set_size(&self, bytes: u64) -> io::Result<()> {
        self.enter(Direction::Write)?.contents.set_size(bytes)
    }

    /// Extends the file; memory is allocated when pages are written.
    fn preallocate(&self, bytes: u64) -> io::Result<()> {
        self.enter(Direction::Write)?.contents.extend(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.node.enter().map(drop)
    }

    fn advise(&self, _advice: Advice) {}

    fn lock(&self, range: Range<u64>, mode: LockMode) -> io::Result<RangeLock> {
        let node = self.node.enter()?;
        mode.require(self.access)?;
        if range.is_empty() {
            return Ok(RangeLock::nothing(range, mode));
        }
        let ticket = node.locks.acquire(range.clone(), mode);
        Ok(self.guard(Arc::clone(&node), ticket, range, mode))
    }

    fn try_lock(&self, range: Range<u64>, mode: LockMode) -> io::Result<Option<RangeLock>> {
        let node = self.node.enter()?;
        mode.require(self.access)?;
        if range.is_empty() {
            return Ok(Some(RangeLock::nothing(range, mode)));
        }
        let ticket = node.locks.try_acquire(range.clone(), mode);
        Ok(ticket.map(|ticket| self.guard(Arc::clone(&node), ticket, range, mode)))
    }

    fn facts(&self) -> &Facts {
        &FACTS
    }

    fn close(&self) -> io::Result<()> {
        let node = self.node.close()?;
        for ticket in lock(&self.held).drain(..) {
            node.locks.release(ticket, |_: Range<u64>| Ok(()));
        }
        Ok(())
    }
}

impl fmt::Debug for MemoryHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryHandle")
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}
