//! A resource that is closed once no call uses it any more.

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
    open: Mutex<Option<Arc<T>>>,
    left: Condvar,
}

/// Held by a call while it uses the resource.
pub(crate) struct ResourceGuard<T> {
    /// `None` only while dropping.
    resource: Option<Arc<T>>,
    shared: Arc<Shared<T>>,
}

impl<T> Closing<T> {
    pub(crate) fn new(resource: T) -> Self {
        let shared = Shared {
            open: Mutex::new(Some(Arc::new(resource))),
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
        let mut open = lock(&self.shared.open);
        let mut resource = open.take().ok_or_else(closed)?;
        loop {
            match Arc::try_unwrap(resource) {
                Ok(resource) => return Ok(resource),
                Err(shared) => resource = shared,
            }
            // A guard releases the resource before it locks the mutex to
            // notify, so the notification cannot be lost between check and
            // wait.
            open = self
                .shared
                .left
                .wait(open)
                .unwrap_or_else(PoisonError::into_inner);
        }
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
}

impl<T> Shared<T> {
    fn enter(self: &Arc<Self>) -> Option<ResourceGuard<T>> {
        let resource = lock(&self.open).clone()?;
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
        if lock(&self.shared.open).is_none() {
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
    use std::{thread, time::Duration};

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
    fn a_weak_reference_does_not_keep_it_open() {
        let closing = Closing::new(7);
        let weak = closing.weak();
        assert_eq!(*weak.enter().unwrap(), 7);
        closing.close().unwrap();
        assert!(weak.enter().is_none());
    }
}
