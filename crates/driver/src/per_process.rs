//! A static that is reinitialised in a forked child.
//!
//! This file may contain `unsafe`: it returns `'static` references to leaked
//! values through an atomic pointer. A lock would not work: the thread that
//! holds it may not exist in the child. It also maps a page that the kernel
//! clears in a child.
#![allow(unsafe_code)]

use std::{
    ptr,
    sync::atomic::{AtomicPtr, AtomicU32, Ordering},
};

/// A value that belongs to one process. Threads and kernel queues do not
/// survive `fork`, so their owner is created again in the child, where the
/// parent's value stays leaked.
pub struct PerProcess<T: 'static> {
    slot: AtomicPtr<Owned<T>>,
}

struct Owned<T> {
    process: u32,
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
        let process = process_id();
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

/// The number of this process. The kernel is asked once: the number is kept in a page that
/// is cleared in a forked child.
fn process_id() -> u32 {
    static KEPT: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());
    // SAFETY: null, or published below and never unmapped.
    let kept = match unsafe { KEPT.load(Ordering::Acquire).as_ref() } {
        Some(kept) => kept,
        None => {
            let Some(page) = page_cleared_by_fork() else {
                return std::process::id();
            };
            let publish =
                KEPT.compare_exchange(ptr::null_mut(), page, Ordering::AcqRel, Ordering::Acquire);
            // Another thread may have published its own; this page is then left unused.
            let published = publish.map_or_else(|theirs| theirs, |_| page);
            // SAFETY: as above; page-aligned, and zero is a valid number.
            unsafe { &*published }
        }
    };
    match kept.load(Ordering::Relaxed) {
        0 => {
            let process = std::process::id();
            kept.store(process, Ordering::Relaxed);
            process
        }
        known => known,
    }
}

/// A page of zeros, which is one again in every child. `None` before Linux 4.14.
fn page_cleared_by_fork() -> Option<*mut AtomicU32> {
    let (len, access) = (size_of::<AtomicU32>(), libc::PROT_READ | libc::PROT_WRITE);
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, which replaces nothing.
    let page = unsafe { libc::mmap(ptr::null_mut(), len, access, kind, -1, 0) };
    if page == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the page was just mapped; the advice changes nothing in this process.
    let is_cleared = unsafe { libc::madvise(page, len, libc::MADV_WIPEONFORK) } == 0;
    if !is_cleared {
        // SAFETY: nothing refers to the page.
        unsafe { libc::munmap(page, len) };
        return None;
    }
    Some(page.cast())
}

#[cfg(test)]
mod tests {
    use super::{PerProcess, process_id};
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

    /// Runs `check` in a child; returns whether it was true there.
    fn in_child(check: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child makes no calls that need locks of other threads.
        match unsafe { libc::fork() } {
            // SAFETY: ends the child at once.
            0 => unsafe { libc::_exit(i32::from(!check())) },
            child => {
                let mut status = 0;
                // SAFETY: waits for a child of this process.
                assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
                status == 0
            }
        }
    }

    #[test]
    fn children_have_numbers_of_their_own() {
        let is_own = || process_id() == std::process::id();
        assert!(is_own() && is_own());
        assert!(in_child(|| is_own() && is_own()));
        assert!(in_child(|| in_child(is_own)), "a child of a child");
        assert!(is_own());
    }

    #[test]
    fn a_child_makes_a_value_of_its_own() {
        static VALUE: PerProcess<u32> = PerProcess::new();
        let mine = *VALUE.get_or_make(std::process::id);
        assert!(in_child(|| *VALUE.get_or_make(std::process::id) != mine));
        assert_eq!(*VALUE.get_or_make(|| 0), mine);
    }
}
