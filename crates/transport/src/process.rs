//! Which process this is, without a system call.
//!
//! One of the files that may hold `unsafe`: libc is asked to tell of forks.
#![allow(unsafe_code)]

use std::sync::{
    Once,
    atomic::{AtomicU32, Ordering},
};

/// How many forks led from the process that loaded the library to this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

extern "C" fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// The process in which this was made, as opposed to its children.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    forks: u32,
    /// Where libc cannot tell of forks, the kernel is asked.
    asked: Option<u32>,
}

impl Process {
    /// The calling process.
    #[must_use]
    pub fn this() -> Process {
        static TELL: Once = Once::new();
        static UNTOLD: AtomicU32 = AtomicU32::new(0);
        TELL.call_once(|| {
            // SAFETY: the function only counts, which a child may do, and it
            // lives as long as the library: libc forgets it on unloading.
            let failed = unsafe { libc::pthread_atfork(None, None, Some(forked)) };
            UNTOLD.store(u32::from(failed != 0), Ordering::Relaxed);
        });
        Process {
            forks: FORKS.load(Ordering::Relaxed),
            asked: (UNTOLD.load(Ordering::Relaxed) != 0).then(std::process::id),
        }
    }

    /// Whether this is still that process.
    #[must_use]
    pub fn is_this(self) -> bool {
        self.forks == FORKS.load(Ordering::Relaxed)
            && self.asked.is_none_or(|id| id == std::process::id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_another_process() {
        let process = Process::this();
        assert!(process.is_this());
        // SAFETY: the child only compares two numbers and exits.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "fork");
        if child == 0 {
            let status = i32::from(process.is_this());
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(status) };
        }
        let mut status = -1;
        // SAFETY: the child is ours and the status outlives the call.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "the child takes itself for its parent");
        assert!(process.is_this());
    }
}
