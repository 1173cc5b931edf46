//! What is under way on a file handle.
//!
//! The gate keeps a read-modify-write that relies on being alone apart from
//! every other write on the handle; the count of pending requests is what
//! collective calls must find at zero.

use std::sync::{
    Arc, Condvar, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<Writers>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Writers {
    ordinary: usize,
    alone: bool,
    waiting: usize,
}

/// A write under way.
#[derive(Debug)]
pub(crate) struct Pass {
    gate: Arc<Gate>,
    alone: bool,
}

impl Gate {
    fn state(&self) -> MutexGuard<'_, Writers> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether entering would wait.
    pub(crate) fn is_closed(&self) -> bool {
        self.state().alone
    }

    /// Waits while a writer needs to be alone.
    pub(crate) fn enter(self: &Arc<Gate>) -> Pass {
        let mut state = self.state();
        while state.alone {
            state.waiting += 1;
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
        state.ordinary += 1;
        Pass {
            gate: self.clone(),
            alone: false,
        }
    }

    /// Enters if no other write is under way, and keeps others out.
    pub(crate) fn enter_alone(self: &Arc<Gate>) -> Option<Pass> {
        let mut state = self.state();
        if state.alone || state.ordinary > 0 {
            return None;
        }
        state.alone = true;
        Some(Pass {
            gate: self.clone(),
            alone: true,
        })
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut state = self.gate.state();
        if self.alone {
            state.alone = false;
        } else {
            state.ordinary -= 1;
        }
        // Waking costs a system call, even of nobody.
        if state.waiting > 0 {
            self.gate.changed.notify_all();
        }
    }
}

/// How many requests are pending: started, and not yet both finished and
/// waited for (or dropped).
#[derive(Clone, Debug, Default)]
pub(crate) struct Pending(Arc<AtomicUsize>);

/// One of them. Shared by the operation and its request: the last to let go
/// counts it off.
#[derive(Debug)]
pub(crate) struct PendingMark(Pending);

impl Pending {
    pub(crate) fn mark(&self) -> Arc<PendingMark> {
        self.0.fetch_add(1, Ordering::AcqRel);
        Arc::new(PendingMark(self.clone()))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

impl Drop for PendingMark {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alone_means_alone() {
        let gate = Arc::new(Gate::default());
        let pass = gate.enter();
        assert!(gate.enter_alone().is_none());
        drop(pass);
        let alone = gate.enter_alone().unwrap();
        assert!(gate.enter_alone().is_none());
        let other = gate.clone();
        let waiting = std::thread::spawn(move || drop(other.enter()));
        drop(alone);
        waiting.join().unwrap();
    }

    #[test]
    fn a_mark_counts_until_both_holders_let_go() {
        let pending = Pending::default();
        let mark = pending.mark();
        let twin = mark.clone();
        drop(mark);
        assert_eq!(pending.count(), 1);
        drop(twin);
        assert_eq!(pending.count(), 0);
    }
}
