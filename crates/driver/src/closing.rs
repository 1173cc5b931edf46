//! A resource that closes once no call uses it any more, and can be replaced
//! while calls do.

use std::{
    io,
    ops::Deref,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

/// Locks a mutex whose data is valid after every critical section, so that a
/// panic elsewhere is not propagated.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A resource that can be closed. Calls [`enter`](Closing::enter) it; `close`
/// rejects further calls, waits for those in progress and returns the resource.
pub(crate) struct Closing<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    left: Condvar,
}

struct State<T> {
    /// What calls get; `None` once closed.
    current: Option<Arc<T>>,
    /// What they got before, until the last of them has left.
    replaced: Vec<Replaced<T>>,
    /// How closing those went.
    outcome: io::Result<()>,
}

struct Replaced<T> {
    resource: Arc<T>,
    close: fn(T) -> io::Result<()>,
}

impl<T> State<T> {
    /// Closes what was replaced and is not used any more.
    fn close_replaced(&mut self) {
        for Replaced { resource, close } in std::mem::take(&mut self.replaced) {
            match Arc::try_unwrap(resource) {
                Ok(unused) => {
                    let closed = close(unused);
                    self.outcome = std::mem::replace(&mut self.outcome, Ok(())).and(closed);
                }
                Err(resource) => self.replaced.push(Replaced { resource, close }),
            }
        }
    }
}

/// Held by a call while it uses the resource.
pub(crate) struct ResourceGuard<T> {
    /// `None` only while dropping.
    resource: Option<Arc<T>>,
    shared: Arc<Shared<T>>,
}

impl<T> Closing<T> {
    pub(crate) fn new(resource: T) -> Self {
        let state = State {
            current: Some(Arc::new(resource)),
            replaced: Vec::new(),
            outcome: Ok(()),
        };
        let shared = Shared {
            state: Mutex::new(state),
            left: Condvar::new(),
        };
        Closing {
            shared: Arc::new(shared),
        }
    }

    /// Keeps the resource open while the guard lives.
    pub(crate) fn enter(&self) -> io::Result<ResourceGuard<T>> {
        self.shared.enter().ok_or_else(closed)
    }

    /// A reference that does not delay `close`.
    pub(crate) fn weak(&self) -> WeakAccess<T> {
        WeakAccess {
            shared: self.shared.clone(),
        }
    }

    /// Rejects further calls, waits for those in progress and returns the
    /// resource.
    pub(crate) fn close(&self) -> io::Result<T> {
        let mut state = lock(&self.shared.state);
        let mut resource = state.current.take().ok_or_else(closed)?;
        loop {
            state.close_replaced();
            match (Arc::try_unwrap(resource), state.replaced.is_empty()) {
                (Ok(resource), true) => return Ok(resource),
                (Ok(unused), false) => resource = Arc::new(unused),
                (Err(shared), _) => resource = shared,
            }
            // A guard releases the resource before it locks the mutex to
            // notify, so the notification cannot be lost between check and
            // wait.
            state = self
                .shared
                .left
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// How closing what was replaced went; an error is returned once.
    pub(crate) fn replaced_outcome(&self) -> io::Result<()> {
        std::mem::replace(&mut lock(&self.shared.state).outcome, Ok(()))
    }
}

/// A reference to a resource that may have been closed.
pub(crate) struct WeakAccess<T> {
    shared: Arc<Shared<T>>,
}

impl<T> WeakAccess<T> {
    /// A guard, unless closed.
    pub(crate) fn enter(&self) -> Option<ResourceGuard<T>> {
        self.shared.enter()
    }

    /// Puts what `make` makes of the resource in its place, unless closed. Calls
    /// that are inside keep the old one; the last of them to leave closes it.
    pub(crate) fn replace(
        &self,
        make: impl FnOnce(&T) -> io::Result<T>,
        close: fn(T) -> io::Result<()>,
    ) -> io::Result<()> {
        // Leaves last, and so closes the old one if nobody else is inside.
        let Some(pass) = self.enter() else {
            return Ok(());
        };
        let fresh = make(&pass)?;
        let mut state = lock(&self.shared.state);
        if let Some(current) = &mut state.current {
            let resource = std::mem::replace(current, Arc::new(fresh));
            state.replaced.push(Replaced { resource, close });
        }
        Ok(())
    }
}

impl<T> Shared<T> {
    fn enter(self: &Arc<Self>) -> Option<ResourceGuard<T>> {
        let resource = lock(&self.state).current.clone()?;
        Some(ResourceGuard {
            resource: Some(resource),
            shared: self.clone(),
        })
    }
}

impl<T> Clone for ResourceGuard<T> {
    fn clone(&self) -> Self {
        ResourceGuard {
            resource: self.resource.clone(),
            shared: self.shared.clone(),
        }
    }
}

impl<T> Deref for ResourceGuard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.resource
            .as_ref()
            .expect("a guard holds its resource until it is dropped")
    }
}

impl<T> Drop for ResourceGuard<T> {
    fn drop(&mut self) {
        self.resource = None;
        let mut state = lock(&self.shared.state);
        state.close_replaced();
        if state.current.is_none() {
            self.shared.left.notify_all();
        }
    }
}

fn closed() -> io::Error {
    io::Error::other("the file is closed")
}

#[cfg(test)]
mod tests {
    use super::Closing;
    use std::{io, thread, time::Duration};

    #[test]
    fn close_waits_for_calls_in_progress_and_rejects_new_ones() {
        let closing = Closing::new(7);
        let guard = closing.enter().unwrap();
        thread::scope(|scope| {
            let closer = scope.spawn(|| closing.close().unwrap());
            while closing.enter().is_ok() {
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(5));
            assert!(!closer.is_finished());
            drop(guard);
            assert_eq!(closer.join().unwrap(), 7);
        });
        assert!(closing.close().is_err());
    }

    /// The one that was replaced is closed by the last call that uses it, and
    /// what came of that is not lost.
    #[test]
    fn calls_keep_what_was_replaced_until_they_leave() {
        let closing = Closing::new(7);
        let pass = closing.enter().unwrap();
        let close = |old| Err(io::Error::other(format!("closed {old}")));
        closing.weak().replace(|old| Ok(old + 1), close).unwrap();
        assert_eq!((*pass, *closing.enter().unwrap()), (7, 8));
        closing.replaced_outcome().expect("it is still open");
        drop(pass);
        let outcome = closing.replaced_outcome().unwrap_err();
        assert_eq!(outcome.to_string(), "closed 7");
        assert_eq!(closing.close().unwrap(), 8);
        closing
            .weak()
            .replace(|_| panic!("closed: nothing to replace"), close)
            .unwrap();
    }

    #[test]
    fn close_waits_for_those_who_use_what_was_replaced() {
        let closing = Closing::new(7);
        let pass = closing.enter().unwrap();
        closing
            .weak()
            .replace(|old| Ok(old + 1), |_| Ok(()))
            .unwrap();
        thread::scope(|scope| {
            let closer = scope.spawn(|| closing.close().unwrap());
            while closing.enter().is_ok() {
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(5));
            assert!(!closer.is_finished());
            drop(pass);
            assert_eq!(closer.join().unwrap(), 8);
        });
    }

    #[test]
    fn a_weak_reference_does_not_keep_it_open() {
        let closing = Closing::new(7);
        let weak = closing.weak();
        assert_eq!(*weak.enter().unwrap(), 7);
        closing.close().unwrap();
        assert!(weak.enter().is_none());
    }
}
