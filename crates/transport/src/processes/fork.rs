//! The system calls behind forked ranks.
#![allow(unsafe_code)] // fork, waitpid, poll and related calls

use std::io;
use std::os::fd::RawFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

/// A forked child that has not been waited for.
#[derive(Debug)]
pub(super) struct Child {
    pid: libc::pid_t,
}

/// Forks; the child runs `life` and exits with the status it returns. It never
/// unwinds into the copy of the parent's stack: a panic out of `life` aborts.
pub(super) fn fork(setup: impl FnOnce() -> i32) -> io::Result<Child> {
    let parent = std::process::id();
    // SAFETY: the child goes on with a copy of this thread alone. The module's
    // documentation asks callers to be single-threaded, which makes that copy
    // complete; glibc keeps its own allocator usable in any case.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let bomb = AbortOnDrop;
            die_with(parent);
            let status = setup();
            std::mem::forget(bomb);
            // SAFETY: ends the process without running what the parent has
            // registered for its own exit.
            unsafe { libc::_exit(status) }
        }
        pid => Ok(Child { pid }),
    }
}

struct AbortOnDrop;

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        std::process::abort();
    }
}

/// Asks to be killed when the parent dies, and ends here if it has already.
fn die_with(parent: u32) {
    // SAFETY: these calls touch no memory.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        let present = libc::getppid().unsigned_abs();
        // The first process of a namespace sees no parent.
        if present != parent && present != 0 {
            libc::_exit(1);
        }
    }
}

impl Child {
    /// How the child ended, if it has. Not to be called again after that.
    pub(super) fn try_wait(&self) -> Option<ExitStatus> {
        let mut status = 0;
        loop {
            // SAFETY: `status` outlives the call.
            let pid = unsafe { libc::waitpid(self.pid, &raw mut status, libc::WNOHANG) };
            if pid == self.pid {
                return Some(ExitStatus::from_raw(status));
            }
            if pid == 0 {
                return None;
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                // Someone else has waited for it (a handler of SIGCHLD, or the
                // kernel because that is ignored): it has ended, and what it
                // reported must tell how.
                return Some(ExitStatus::from_raw(0));
            }
        }
    }
}

/// Waits until one of the descriptors can be read or is hung up, or until
/// `bound` has passed; says which can be read without waiting.
pub(super) fn poll(descriptors: &[RawFd], bound: Duration) -> Vec<bool> {
    let mut entries = descriptors
        .iter()
        .map(|fd| libc::pollfd {
            fd: *fd,
            events: libc::POLLIN,
            revents: 0,
        })
        .collect::<Vec<_>>();
    let bound = i32::try_from(bound.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: the entries outlive the call and their number is right. An
    // interrupted call leaves `revents` as it was: nothing to read.
    unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, bound) };
    entries.iter().map(|entry| entry.revents != 0).collect()
}
