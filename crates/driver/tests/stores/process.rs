//! Child processes.

use std::io;

/// A child that has not ended by then is killed.
const SECONDS_MAX: u32 = 120;

/// A forked child process.
pub(crate) struct Child(libc::pid_t);

impl Child {
    /// Runs `part` in a child process, whose exit code it returns.
    #[allow(unsafe_code)]
    pub(crate) fn run(part: impl FnOnce() -> i32) -> Child {
        // SAFETY: the child has only this thread; it uses the allocator, which
        // libc keeps usable across fork, and drivers.
        match unsafe { libc::fork() } {
            -1 => panic!("cannot fork: {}", io::Error::last_os_error()),
            0 => {
                // SAFETY: the signal ends a child that waits for something that never happens,
                // as its exit code shows.
                unsafe { libc::alarm(SECONDS_MAX) };
                let part = std::panic::AssertUnwindSafe(part);
                let code = std::panic::catch_unwind(part).unwrap_or(101);
                // SAFETY: exits without running the parent's exit handlers.
                unsafe { libc::_exit(code) }
            }
            process => Child(process),
        }
    }

    /// Its exit code.
    ///
    /// # Panics
    /// If a signal has killed it.
    #[allow(unsafe_code)]
    pub(crate) fn exit_code(self) -> i32 {
        let mut status = 0;
        // SAFETY: the status outlives the call.
        let waited = unsafe { libc::waitpid(self.0, &mut status, 0) };
        assert_eq!(waited, self.0, "{}", io::Error::last_os_error());
        assert!(libc::WIFEXITED(status), "killed: {status:#x}");
        libc::WEXITSTATUS(status)
    }
}
