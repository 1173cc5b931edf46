//! A condition variable that costs nothing to notify if no thread waits. The standard one makes
//! a system call each time, which takes as long as a small write to the page cache.

use std::{
    sync::{
        Condvar, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

#[derive(Debug, Default)]
pub(crate) struct Condition {
    changed: Condvar,
    /// Changed under the mutex of the waiting threads.
    waiters: AtomicUsize,
}

impl Condition {
    /// Wakes all waiting threads, after a change that was made under their mutex. A thread that
    /// took the mutex before the change has been counted by now, and one that takes it later
    /// sees the change: the mutex orders both, so the counter need not.
    pub(crate) fn notify_all(&self) {
        if self.waiters.load(Ordering::Relaxed) > 0 {
            self.changed.notify_all();
        }
    }

    /// Waits until `pending` is false.
    pub(crate) fn wait_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut pending: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        if !pending(&mut guard) {
            return guard;
        }
        self.waiters.fetch_add(1, Ordering::Relaxed);
        let guard = self.changed.wait_while(guard, pending);
        self.waiters.fetch_sub(1, Ordering::Relaxed);
        guard.unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`wait_while`](Self::wait_while), for at most `bound`.
    pub(crate) fn wait_timeout_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        bound: Duration,
        mut pending: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        if bound.is_zero() || !pending(&mut guard) {
            return guard;
        }
        self.waiters.fetch_add(1, Ordering::Relaxed);
        let waited = self.changed.wait_timeout_while(guard, bound, pending);
        self.waiters.fetch_sub(1, Ordering::Relaxed);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Mutex, thread};

    use super::*;

    #[test]
    fn no_wait_outlasts_its_change() {
        let turn = Mutex::new(0u32);
        let condition = Condition::default();
        let lock = || turn.lock().unwrap();
        thread::scope(|scope| {
            for me in 0..4 {
                let (condition, lock) = (&condition, &lock);
                scope.spawn(move || {
                    for _ in 0..2000 {
                        *condition.wait_while(lock(), |turn| *turn % 4 != me) += 1;
                        condition.notify_all();
                    }
                });
            }
        });
        assert_eq!(*lock(), 8000);
        assert_eq!(condition.waiters.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_bounded_wait_ends() {
        let never = Mutex::new(());
        let condition = Condition::default();
        let guard = never.lock().unwrap();
        drop(condition.wait_timeout_while(guard, Duration::from_millis(1), |()| true));
        assert_eq!(condition.waiters.load(Ordering::Relaxed), 0);
    }
}
