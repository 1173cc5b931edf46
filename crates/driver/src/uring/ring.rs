//! io_uring's submission and completion queues, used by one thread at a time.
//!
//! This file may contain `unsafe`: requests refer to memory and descriptors
//! that the kernel uses until the completion is taken.
#![allow(unsafe_code)]

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd},
    sync::atomic::{AtomicI32, Ordering},
    thread,
    time::Duration,
};

use io_uring::{IoUring, opcode, squeue, types::Fd};

use crate::{Direction, per_process::PerProcess, vector::Vector};

/// Polling interval for a ring that cannot be waited for.
const POLL: Duration = Duration::from_millis(1);

/// Who executes a request first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Execution {
    /// The submitting thread, as far as possible without blocking.
    Inline,
    /// A kernel thread.
    Async,
}

/// A completed request: its tag and its result.
pub(super) struct Completed {
    pub(super) tag: u64,
    pub(super) result: i32,
}

/// The two queues. The owner must keep the memory of requests alive until they
/// complete.
pub(super) struct Ring {
    ring: IoUring,
}

impl Ring {
    pub(super) fn new(entries: u32) -> io::Result<Self> {
        // A forked child must not inherit its parent's queues.
        let ring = IoUring::builder().dontfork().build(entries)?;
        Ok(Ring { ring })
    }

    /// Adds a request that moves a vector.
    ///
    /// # Safety
    /// The descriptor, the vector's parts and their memory stay valid until the
    /// request has completed or [`Ring::withdraw`] has counted it.
    pub(super) unsafe fn push(
        &mut self,
        fd: BorrowedFd<'_>,
        vector: &Vector<'_>,
        tag: u64,
        execution: Execution,
    ) {
        let flags = match execution {
            Execution::Inline => squeue::Flags::empty(),
            Execution::Async => squeue::Flags::ASYNC,
        };
        let entry = entry(Fd(fd.as_raw_fd()), vector)
            .flags(flags)
            .user_data(tag);
        // SAFETY: promised by the caller.
        unsafe { self.push_entry(&entry) }
    }

    /// Adds a request that completes when the counter `fd` is incremented.
    ///
    /// # Safety
    /// As for [`Ring::push`], with the counter's target.
    pub(super) unsafe fn push_counter(&mut self, fd: BorrowedFd<'_>, target: *mut u64, tag: u64) {
        let len = size_of::<u64>() as u32;
        let entry = opcode::Read::new(Fd(fd.as_raw_fd()), target.cast(), len).build();
        // SAFETY: promised by the caller.
        unsafe { self.push_entry(&entry.user_data(tag)) }
    }

    /// # Safety
    /// What the entry refers to stays valid until completion.
    unsafe fn push_entry(&mut self, entry: &squeue::Entry) {
        // SAFETY: promised by the caller.
        let pushed = unsafe { self.ring.submission().push(entry) };
        pushed.expect("the owner never pushes more requests than the ring has entries");
    }

    /// Submits what was pushed and waits for a completion. Transient failures
    /// are retried; after any other failure, the ring is only good for
    /// [`Ring::withdraw`].
    pub(super) fn submit_and_wait(&mut self) -> io::Result<()> {
        match self.ring.submit_and_wait(1) {
            Ok(_) => Ok(()),
            Err(error) if error.raw_os_error().is_some_and(is_transient) => {
                thread::yield_now();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Number of most recently pushed requests that the kernel has not taken.
    /// They never run if the ring is not used again.
    pub(super) fn withdraw(&mut self) -> usize {
        self.ring.submission().len()
    }

    /// Takes a completion, if there is one.
    pub(super) fn next(&mut self) -> Option<Completed> {
        let completed = self.ring.completion().next()?;
        Some(Completed {
            tag: completed.user_data(),
            result: completed.result(),
        })
    }

    /// Replaces the ring's descriptor by another file, as programs do that
    /// close descriptors they do not own.
    #[cfg(test)]
    pub(super) fn replace_descriptor(&self, other: BorrowedFd<'_>) {
        // SAFETY: no memory is passed, and the descriptor stays owned.
        let replaced = unsafe { libc::dup2(other.as_raw_fd(), self.ring.as_raw_fd()) };
        assert_eq!(replaced, self.ring.as_raw_fd());
    }

    /// Waits for a completion by polling.
    pub(super) fn poll(&mut self) -> Completed {
        loop {
            match self.next() {
                Some(completed) => return completed,
                None => thread::sleep(POLL),
            }
        }
    }
}

/// Whether an error is transient.
pub(super) fn is_transient(errno: i32) -> bool {
    matches!(errno, libc::EINTR | libc::EAGAIN | libc::EBUSY)
}

fn entry(fd: Fd, vector: &Vector<'_>) -> squeue::Entry {
    let parts = vector.parts();
    let offset = vector.offset();
    // Both are within the limits of one call, so they fit.
    let (count, bytes) = (parts.len() as u32, vector.bytes() as u32);
    match (vector.direction(), parts) {
        (Direction::Read, [only]) => opcode::Read::new(fd, only.iov_base.cast(), bytes)
            .offset(offset)
            .build(),
        (Direction::Write, [only]) => opcode::Write::new(fd, only.iov_base.cast(), bytes)
            .offset(offset)
            .build(),
        (Direction::Read, _) => opcode::Readv::new(fd, parts.as_ptr(), count)
            .offset(offset)
            .build(),
        (Direction::Write, _) => opcode::Writev::new(fd, parts.as_ptr(), count)
            .offset(offset)
            .build(),
    }
}

/// Result of the last attempt to create a ring: unknown, available, or an
/// `errno`.
static RING_STATUS: PerProcess<AtomicI32> = PerProcess::new();
const UNKNOWN: i32 = -1;
const AVAILABLE: i32 = 0;

fn ring_status() -> &'static AtomicI32 {
    RING_STATUS.get_or_make(|| AtomicI32::new(UNKNOWN))
}

/// The `errno` if a ring cannot be created, else zero; cached.
fn errno() -> i32 {
    let known = ring_status().load(Ordering::Relaxed);
    if known != UNKNOWN {
        return known;
    }
    let found = match IoUring::new(1) {
        Ok(_) => AVAILABLE,
        Err(error) => error.raw_os_error().unwrap_or(libc::ENOSYS),
    };
    ring_status().store(found, Ordering::Relaxed);
    found
}

/// Whether this process may use io_uring.
pub(crate) fn is_available() -> bool {
    errno() == AVAILABLE
}

/// Forgets a failure, so that the next query tries again. Returns whether a
/// ring may be available.
pub(super) fn forget_failure() -> bool {
    let known = ring_status().load(Ordering::Relaxed);
    // A kernel that lacks or forbids io_uring will not change.
    let forbidden = matches!(known, libc::ENOSYS | libc::EPERM | libc::EACCES);
    if known != AVAILABLE && !forbidden {
        ring_status().store(UNKNOWN, Ordering::Relaxed);
    }
    !forbidden
}

/// Returns an error unless this process may use io_uring.
pub fn require() -> io::Result<()> {
    match errno() {
        AVAILABLE => Ok(()),
        errno => {
            let cause = io::Error::from_raw_os_error(errno);
            let message = format!("io_uring is not available ({cause}); use threads instead");
            Err(io::Error::new(io::ErrorKind::Unsupported, message))
        }
    }
}
