//! A static that is reinitialised in a forked child.
//!
//! This file may contain `unsafe`: it returns `'static` references to leaked
//! values through an atomic pointer. A lock would not work: the thread that
//! holds it may not exist in the child.
#![allow(unsafe_code)]

use std::{
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

use pario_types::Process;

/// A value that belongs to one process. Threads and kernel queues do not
/// survive `fork`, so their owner is created again in the child, where the
/// parent's value stays leaked.
pub struct PerProcess<T: 'static> {
    slot: AtomicPtr<Owned<T>>,
}

struct Owned<T> {
    process: Process,
    value: T,
}

impl<T: Send + Sync + 'static> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send + Sync + 'static> PerProcess<T> {
    /// Without a value.
    pub const fn new() -> Self {
        PerProcess {
            slot: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// This process's value, created on first use. `make` may run on several
    /// threads at once; all but one result are then dropped.
    pub fn get_or_make(&self, make: impl Fn() -> T) -> &'static T {
        let process = Process::this();
        let mut current = self.slot.load(Ordering::Acquire);
        loop {
            // SAFETY: the pointer is null or comes from `Box::into_raw` below
            // and is never freed once published, neither in this process nor in
            // the parent, whose memory the child copies.
            if let Some(owned) = unsafe { current.as_ref() }
                && owned.process == process
            {
                return &owned.value;
            }
            let fresh = Box::into_raw(Box::new(Owned {
                process,
                value: make(),
            }));
            match self
                .slot
                .compare_exchange(current, fresh, Ordering::AcqRel, Ordering::Acquire)
            {
                // SAFETY: published just now, never freed.
                Ok(_) => return unsafe { &(*fresh).value },
                Err(other) => {
                    // SAFETY: `fresh` was not published, so nothing else refers
                    // to it.
                    drop(unsafe { Box::from_raw(fresh) });
                    current = other;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PerProcess;
    use std::sync::Mutex;

    #[test]
    fn one_value_for_all_threads() {
        static VALUE: PerProcess<Mutex<u32>> = PerProcess::new();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| *VALUE.get_or_make(|| Mutex::new(0)).lock().unwrap() += 1);
            }
        });
        assert_eq!(*VALUE.get_or_make(|| Mutex::new(0)).lock().unwrap(), 8);
    }
}
