//! A resource that closes once no call uses it any more, and can be replaced
//! while calls do.

use std::{
    fmt, io,
    ops::Deref,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        TryLockError,
    },
};

/// Locks a mutex whose data is valid after every critical section, so that a
/// panic elsewhere is not propagated.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A resource that can be closed. Calls [`visit`](Closing::visit) or
/// [`enter`](Closing::enter) it; `close` rejects further calls, waits for those
/// in progress and returns the resource.
pub(crate) struct Closing<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    /// What calls get; `None` once closed. Visits hold it shared.
    current: RwLock<Option<Arc<T>>>,
    old: Mutex<Old<T>>,
    left: Condvar,
}

/// What calls got before.
struct Old<T> {
    /// Until the last of them has left.
    replaced: Vec<Replaced<T>>,
    /// How closing those went.
    outcome: io::Result<()>,
    /// Whether `close` waits for calls to leave.
    is_closing: bool,
}

struct Replaced<T> {
    resource: Arc<T>,
    close: fn(T) -> io::Result<()>,
}

impl<T> Old<T> {
    /// Closes what was replaced and is not used any more.
    fn close_replaced(&mut self) {
        if self.replaced.is_empty() {
            return;
        }
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
        let old = Old {
            replaced: Vec::new(),
            outcome: Ok(()),
            is_closing: false,
        };
        let shared = Shared {
            current: RwLock::new(Some(Arc::new(resource))),
            old: Mutex::new(old),
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

    /// As [`enter`](Self::enter), for a call that ends soon and is on one thread:
    /// replacing and closing the resource wait for it. It must not visit or enter
    /// again while the visit lives.
    #[inline]
    pub(crate) fn visit(&self) -> io::Result<Visit<'_, T>> {
        let current = self.shared.current();
        match current.is_some() {
            true => Ok(Visit(current)),
            false => Err(closed()),
        }
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
        let mut resource = self.shared.current_mut().take().ok_or_else(closed)?;
        let mut old = lock(&self.shared.old);
        old.is_closing = true;
        loop {
            old.close_replaced();
            match (Arc::try_unwrap(resource), old.replaced.is_empty()) {
                (Ok(resource), true) => return Ok(resource),
                (Ok(unused), false) => resource = Arc::new(unused),
                (Err(shared), _) => resource = shared,
            }
            // A guard releases the resource before it locks the mutex to
            // notify, so the notification cannot be lost between check and
            // wait.
            old = self
                .shared
                .left
                .wait(old)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes the resource out; calls wait until it is put back. `None` if it is in use or
    /// closed.
    pub(crate) fn suspend(&self) -> Option<(T, Vacancy<'_, T>)> {
        let mut current = match self.shared.current.try_write() {
            Ok(current) => current,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        if !lock(&self.shared.old).replaced.is_empty() {
            return None;
        }
        match Arc::try_unwrap(current.take()?) {
            Ok(resource) => Some((resource, Vacancy(current))),
            Err(in_use) => {
                *current = Some(in_use);
                None
            }
        }
    }

    /// How closing what was replaced went; an error is returned once.
    pub(crate) fn replaced_outcome(&self) -> io::Result<()> {
        std::mem::replace(&mut lock(&self.shared.old).outcome, Ok(()))
    }
}

/// The place of a resource that was taken out. If it is dropped, the resource counts as
/// closed.
pub(crate) struct Vacancy<'a, T>(RwLockWriteGuard<'a, Option<Arc<T>>>);

impl<T> Vacancy<'_, T> {
    pub(crate) fn put_back(mut self, resource: T) {
        *self.0 = Some(Arc::new(resource));
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

    /// Makes later calls fail, as closing does, without waiting for those inside.
    pub(crate) fn abandon(&self) {
        *self.shared.current_mut() = None;
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
        if let Some(current) = &mut *self.shared.current_mut() {
            let resource = std::mem::replace(current, Arc::new(fresh));
            // Before `close` can look for it.
            let replaced = Replaced { resource, close };
            lock(&self.shared.old).replaced.push(replaced);
        }
        Ok(())
    }
}

impl<T> Shared<T> {
    fn current(&self) -> RwLockReadGuard<'_, Option<Arc<T>>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn current_mut(&self) -> RwLockWriteGuard<'_, Option<Arc<T>>> {
        self.current.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(self: &Arc<Self>) -> Option<ResourceGuard<T>> {
        let resource = self.current().clone()?;
        Some(ResourceGuard {
            resource: Some(resource),
            shared: self.clone(),
        })
    }
}

impl<T> fmt::Debug for WeakAccess<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakAccess").finish_non_exhaustive()
    }
}

impl<T: fmt::Debug> fmt::Debug for ResourceGuard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ResourceGuard").field(&**self).finish()
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
        let mut old = lock(&self.shared.old);
        old.close_replaced();
        if old.is_closing {
            self.shared.left.notify_all();
        }
    }
}

/// Held by a short call while it uses the resource. It takes a quarter of the
/// atomic operations that a [`ResourceGuard`] does.
pub(crate) struct Visit<'a, T>(RwLockReadGuard<'a, Option<Arc<T>>>);

impl<T> Deref for Visit<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("nothing that is closed is visited")
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

    #[test]
    fn close_and_replace_wait_for_visits() {
        let closing = Closing::new(7);
        let visit = closing.visit().unwrap();
        thread::scope(|scope| {
            let replacer = scope.spawn(|| closing.weak().replace(|old| Ok(old + 1), |_| Ok(())));
            thread::sleep(Duration::from_millis(5));
            assert!(!replacer.is_finished());
            assert_eq!(*visit, 7);
            drop(visit);
            replacer.join().unwrap().unwrap();
            let visit = closing.visit().unwrap();
            assert_eq!(*visit, 8);
            let closer = scope.spawn(|| closing.close().unwrap());
            thread::sleep(Duration::from_millis(5));
            assert!(!closer.is_finished());
            drop(visit);
            assert_eq!(closer.join().unwrap(), 8);
        });
        assert!(closing.visit().is_err());
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
    fn only_an_unused_resource_can_be_taken_out() {
        let closing = Closing::new(7);
        let pass = closing.enter().unwrap();
        assert!(closing.suspend().is_none());
        drop(pass);
        let visit = closing.visit().unwrap();
        assert!(closing.suspend().is_none());
        drop(visit);
        let (taken, vacancy) = closing.suspend().unwrap();
        thread::scope(|scope| {
            let caller = scope.spawn(|| *closing.enter().unwrap());
            thread::sleep(Duration::from_millis(5));
            assert!(!caller.is_finished(), "calls wait for it");
            vacancy.put_back(taken + 1);
            assert_eq!(caller.join().unwrap(), 8);
        });
        drop(closing.suspend().unwrap());
        assert!(closing.enter().is_err());
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
