//! A second process for checks between processes.
//!
//! This file may contain `unsafe`: `fork`.
#![allow(unsafe_code)]

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Exit code of a child that panicked.
const PANICKED: libc::c_int = 101;

/// A child that has not ended by then is killed, and has failed.
const SECONDS_MAX: u32 = 120;

/// A forked child process.
pub(super) struct Child {
    process: libc::pid_t,
}

impl Child {
    /// Runs `part` in a child process, which then exits.
    pub(super) fn run(part: impl FnOnce()) -> Child {
        // SAFETY: only this thread exists in the child. It uses the allocator,
        // which libc keeps usable across fork, and a driver, whose locks
        // another thread can have held only if it used the same handle.
        match unsafe { libc::fork() } {
            -1 => panic!("cannot fork: {}", io::Error::last_os_error()),
            0 => {
                // SAFETY: the signal ends a child that would wait forever.
                unsafe { libc::alarm(SECONDS_MAX) };
                let code = match catch_unwind(AssertUnwindSafe(part)) {
                    Ok(()) => 0,
                    Err(_) => PANICKED,
                };
                // SAFETY: exits without running the parent's exit handlers.
                unsafe { libc::_exit(code) }
            }
            process => Child { process },
        }
    }

    /// Waits for the child to exit.
    ///
    /// # Panics
    /// If it failed.
    pub(super) fn join(self) {
        let mut status = 0;
        // SAFETY: the status outlives the call.
        let waited = unsafe { libc::waitpid(self.process, &mut status, 0) };
        assert_eq!(waited, self.process, "{}", io::Error::last_os_error());
        assert_eq!(status, 0, "the child process failed");
    }
}
