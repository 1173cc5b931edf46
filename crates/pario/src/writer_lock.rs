//! Operations under way on a file handle.
//!
//! The lock separates a read-modify-write that must be alone from all other writes on the
//! handle; the number of pending requests must be zero in some collective calls.
//!
//! Where other ranks may rewrite ranges through the same open description, the handle's ordinary
//! writes are announced to them: the first of those under way announces, the last retracts.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pario_driver::WriterGroup;

use crate::condition::Condition;

#[derive(Debug, Default)]
pub(crate) struct WriterLock {
    state: Mutex<Writers>,
    changed: Condition,
}

#[derive(Debug, Default)]
struct Writers {
    ordinary: usize,
    alone: bool,
    /// The ranks that use the same open description.
    group: Option<Arc<WriterGroup>>,
    /// Whether all ranks announce their writes, so that they may rewrite.
    may_rewrite: bool,
    announcement: Announcement,
}

/// Whether the group knows of ordinary writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Announcement {
    #[default]
    None,
    UnderWay,
    Made,
}

/// Held while a write is under way.
#[derive(Debug)]
pub(crate) struct WriteGuard {
    writer_lock: Arc<WriterLock>,
    alone: bool,
}

impl WriterLock {
    fn state(&self) -> MutexGuard<'_, Writers> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether `shared` would wait.
    pub(crate) fn is_closed(&self) -> bool {
        let state = self.state();
        let waits_for_others = match (&state.group, state.announcement) {
            (None, _) | (_, Announcement::Made) => false,
            (_, Announcement::UnderWay) => true,
            (Some(group), Announcement::None) => group.has_rewriters(),
        };
        state.alone || waits_for_others
    }

    /// Waits while an exclusive guard is held, or another rank rewrites.
    pub(crate) fn shared(self: &Arc<WriterLock>) -> WriteGuard {
        let waits =
            |state: &mut Writers| state.alone || state.announcement == Announcement::UnderWay;
        let mut state = self.changed.wait_while(self.state(), waits);
        state.ordinary += 1;
        let group = state.group.clone();
        if let Some(group) = group.filter(|_| state.announcement == Announcement::None) {
            state.announcement = Announcement::UnderWay;
            drop(state);
            group.announce();
            self.state().announcement = Announcement::Made;
            self.changed.notify_all();
        }
        WriteGuard {
            writer_lock: self.clone(),
            alone: false,
        }
    }

    /// Returns a guard that excludes other writes, unless one is under way.
    pub(crate) fn try_exclusive(self: &Arc<WriterLock>) -> Option<WriteGuard> {
        let mut state = self.state();
        if state.alone || state.ordinary > 0 {
            return None;
        }
        state.alone = true;
        Some(WriteGuard {
            writer_lock: self.clone(),
            alone: true,
        })
    }

    /// The group whose ranks may rewrite. It stays so while this rank holds an exclusive guard.
    pub(crate) fn rewriting_group(&self) -> Option<Arc<WriterGroup>> {
        let state = self.state();
        state.group.clone().filter(|_| state.may_rewrite)
    }

    /// Lets no more writes rewrite; returns whether none does.
    pub(crate) fn stop_rewriting(&self) -> bool {
        let mut state = self.state();
        state.may_rewrite = false;
        !state.alone
    }

    /// Announces writes to a group from now on; fails if one is under way.
    pub(crate) fn try_join(&self, group: Arc<WriterGroup>) -> bool {
        let mut state = self.state();
        let is_idle = !state.alone && state.ordinary == 0;
        if is_idle {
            state.group = Some(group);
        }
        is_idle
    }

    /// Announces no more writes, unless one is under way: nobody rewrites.
    pub(crate) fn forget_group(&self) {
        let mut state = self.state();
        if state.ordinary == 0 {
            state.group = None;
        }
    }

    /// Lets writes rewrite, now that all ranks announce theirs.
    pub(crate) fn allow_rewriting(&self) {
        self.state().may_rewrite = true;
    }
}

impl Drop for WriteGuard {
    fn drop(&mut self) {
        let mut state = self.writer_lock.state();
        if self.alone {
            state.alone = false;
        } else {
            state.ordinary -= 1;
            if state.ordinary == 0 && state.announcement == Announcement::Made {
                state.announcement = Announcement::None;
                if let Some(group) = &state.group {
                    group.retract();
                }
            }
        }
        self.writer_lock.changed.notify_all();
    }
}

/// The numbers of requests that have not been waited for or dropped, and of operations that
/// have not finished.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pending(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    requests: AtomicUsize,
    operations: Mutex<usize>,
    finished: Condition,
}

/// Keeps a request counted as pending.
#[derive(Debug)]
pub(crate) struct PendingRequest(Pending);

/// Keeps an operation counted as under way.
#[derive(Debug)]
pub(crate) struct PendingOperation(Pending);

impl Pending {
    /// Counts an operation and its request.
    pub(crate) fn start(&self) -> (PendingRequest, PendingOperation) {
        *self.operations() += 1;
        (self.request(), PendingOperation(self.clone()))
    }

    /// Counts the request of an operation that is already complete.
    pub(crate) fn request(&self) -> PendingRequest {
        self.0.requests.fetch_add(1, Ordering::AcqRel);
        PendingRequest(self.clone())
    }

    fn operations(&self) -> MutexGuard<'_, usize> {
        self.0
            .operations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of pending requests.
    pub(crate) fn requests(&self) -> usize {
        self.0.requests.load(Ordering::Acquire)
    }

    /// Waits for at most `bound`; returns whether no operation is under way.
    pub(crate) fn wait_for_operations(&self, bound: Duration) -> bool {
        let under_way = |operations: &mut usize| *operations > 0;
        let finished = &self.0.finished;
        *finished.wait_timeout_while(self.operations(), bound, under_way) == 0
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        self.0.0.requests.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for PendingOperation {
    fn drop(&mut self) {
        let mut operations = self.0.operations();
        *operations -= 1;
        if *operations == 0 {
            drop(operations);
            self.0.0.finished.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alone_means_alone() {
        let writer_lock = Arc::new(WriterLock::default());
        let guard = writer_lock.shared();
        assert!(writer_lock.try_exclusive().is_none());
        drop(guard);
        let alone = writer_lock.try_exclusive().unwrap();
        assert!(writer_lock.try_exclusive().is_none());
        let other = writer_lock.clone();
        let waiting = std::thread::spawn(move || drop(other.shared()));
        drop(alone);
        waiting.join().unwrap();
    }

    #[test]
    fn operations_outlive_requests_that_are_dropped() {
        let pending = Pending::default();
        let (request, operation) = pending.start();
        assert_eq!(pending.requests(), 1);
        drop(request);
        assert_eq!(pending.requests(), 0);
        assert!(!pending.wait_for_operations(Duration::from_millis(1)));
        let waiting =
            std::thread::spawn(
                move || {
                    while !pending.wait_for_operations(Duration::from_secs(1)) {}
                },
            );
        drop(operation);
        waiting.join().unwrap();
    }
}
