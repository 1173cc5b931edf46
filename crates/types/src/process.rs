//! Which process this is, without a system call.
//!
//! One of the files that may hold `unsafe`: a number is kept in a page that the kernel clears in forked
//! children. libc would call a function in them (`pthread_atfork`), but not in those of a bare `clone`.
#![allow(unsafe_code)]

use std::{
    ptr,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering},
};

/// A process, as opposed to its ancestors and children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// The forks from the first process to this one, or more; the process ID if they cannot be noticed.
    number: u32,
}

impl Process {
    /// The calling process.
    #[must_use]
    #[inline]
    pub fn this() -> Process {
        // SAFETY: null, or published by `number` and never unmapped.
        let kept = unsafe { KEPT.load(Ordering::Acquire).as_ref() };
        let number = match kept.map(|kept| kept.load(Ordering::Relaxed)) {
            None | Some(0) => number(),
            Some(number) => number,
        };
        Process { number }
    }

    /// Whether this is still that process.
    #[must_use]
    #[inline]
    pub fn is_this(self) -> bool {
        self == Process::this()
    }
}

/// Where the number of this process is kept: null until it is first needed. The page reads as zero in a new
/// child.
static KEPT: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

/// The number of a process that has none yet.
#[cold]
fn number() -> u32 {
    /// The last number. Children inherit it.
    static LAST: AtomicU32 = AtomicU32::new(0);
    static CANNOT_KEEP: AtomicBool = AtomicBool::new(false);
    if CANNOT_KEEP.load(Ordering::Relaxed) {
        return std::process::id();
    }
    let mut kept = KEPT.load(Ordering::Acquire);
    if kept.is_null() {
        let Some(page) = page_cleared_by_fork() else {
            CANNOT_KEEP.store(true, Ordering::Relaxed);
            return std::process::id();
        };
        let none = ptr::null_mut();
        kept = match KEPT.compare_exchange(none, page, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => page,
            // Another thread was faster. This page remains unused.
            Err(theirs) => theirs,
        };
    }
    // SAFETY: published above or by another thread, and never unmapped.
    let kept = unsafe { &*kept };
    let next = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    match kept.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => next,
        Err(theirs) => theirs,
    }
}

/// A page that reads as zeros again in every child. `None` before Linux 4.14, and under emulators
/// that accept any advice.
fn page_cleared_by_fork() -> Option<*mut AtomicU32> {
    const NO_ADVICE: libc::c_int = -1;
    let (len, access) = (size_of::<AtomicU32>(), libc::PROT_READ | libc::PROT_WRITE);
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, which replaces nothing.
    let page = unsafe { libc::mmap(ptr::null_mut(), len, access, kind, -1, 0) };
    if page == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the page was just mapped, and neither call changes it in this process.
    let advise = |advice| unsafe { libc::madvise(page, len, advice) } == 0;
    if advise(NO_ADVICE) || !advise(libc::MADV_WIPEONFORK) {
        // SAFETY: nothing refers to the page.
        unsafe { libc::munmap(page, len) };
        return None;
    }
    Some(page.cast())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `check` in a child, which may not allocate; returns whether it was true there.
    fn in_child(check: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child calls only `check` and ends.
        match unsafe { libc::fork() } {
            // SAFETY: ends the child without running anything of the parent's.
            0 => unsafe { libc::_exit(i32::from(!check())) },
            child => {
                assert!(child > 0, "fork");
                let mut status = -1;
                // SAFETY: the child is ours, and the status outlives the call.
                assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
                status == 0
            }
        }
    }

    #[test]
    fn a_child_is_another_process() {
        let process = Process::this();
        assert!(process.is_this());
        let is_another = || !process.is_this() && Process::this().is_this();
        assert!(in_child(|| is_another() && is_another()));
        assert!(in_child(|| in_child(is_another)), "a child of a child");
        assert!(process.is_this());
    }

    #[test]
    fn all_threads_are_of_one_process() {
        let process = Process::this();
        let is_this = |process: Process| std::thread::spawn(move || process.is_this());
        assert!(
            (0..8)
                .map(|_| is_this(process))
                .all(|it| it.join().unwrap())
        );
        assert!(
            !KEPT.load(Ordering::Relaxed).is_null(),
            "Linux has cleared pages since 4.14"
        );
    }
}
