//! A ring: io_uring's queues, for one thread at a time.
//!
//! One of the files that may hold `unsafe`: what is pushed names memory and
//! descriptors that the kernel uses until the completion is taken.
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

/// How long to sleep between looks at a ring that cannot be waited for.
const POLL: Duration = Duration::from_millis(1);

/// Who runs the request first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// The submitting thread, as far as that goes without waiting.
    Inline,
    /// A thread of the kernel.
    Handover,
}

/// A completed request: what it was pushed with, and its result.
pub(super) struct Completed {
    pub(super) tag: u64,
    pub(super) result: i32,
}

/// The two queues. Requests that were pushed and not completed are the
/// owner's business: it must not let go of their memory.
pub(super) struct Ring {
    ring: IoUring,
}

impl Ring {
    pub(super) fn new(entries: u32) -> io::Result<Self> {
        // A child must not find its parent's queues in its memory.
        let ring = IoUring::builder().dontfork().build(entries)?;
        Ok(Ring { ring })
    }

    /// Adds a request to move a vector.
    ///
    /// # Safety
    /// The descriptor, the vector's parts and their memory stay valid until
    /// the request has completed or [`Ring::withdraw`] has counted it.
    pub(super) unsafe fn push(
        &mut self,
        fd: BorrowedFd<'_>,
        vector: &Vector<'_>,
        tag: u64,
        pace: Pace,
    ) {
        let flags = match pace {
            Pace::Inline => squeue::Flags::empty(),
            Pace::Handover => squeue::Flags::ASYNC,
        };
        let entry = entry(Fd(fd.as_raw_fd()), vector)
            .flags(flags)
            .user_data(tag);
        // SAFETY: promised by the caller.
        unsafe { self.push_entry(&entry) }
    }

    /// Adds a request that completes when the counter `fd` is raised.
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
    /// What the entry names stays valid until completion.
    unsafe fn push_entry(&mut self, entry: &squeue::Entry) {
        // SAFETY: promised by the caller.
        let pushed = unsafe { self.ring.submission().push(entry) };
        pushed.expect("the owner pushes no more requests than the ring has entries");
    }

    /// Submits what was pushed and waits for a completion. Failures that pass
    /// by themselves are no failures; after any other the ring is of no more
    /// use but for [`Ring::withdraw`].
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

    /// How many of the last pushed requests the kernel has not taken. They
    /// never run if the ring is not used again.
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

    /// Puts another file in the place of the ring's descriptor, as programs do
    /// that close descriptors which are not theirs.
    #[cfg(test)]
    pub(super) fn sabotage(&self, other: BorrowedFd<'_>) {
        // SAFETY: no memory is passed, and the descriptor stays owned.
        let replaced = unsafe { libc::dup2(other.as_raw_fd(), self.ring.as_raw_fd()) };
        assert_eq!(replaced, self.ring.as_raw_fd());
    }

    /// Waits for a completion without the kernel's help.
    pub(super) fn poll(&mut self) -> Completed {
        loop {
            match self.next() {
                Some(completed) => return completed,
                None => thread::sleep(POLL),
            }
        }
    }
}

/// Whether a failure passes by itself.
pub(super) fn is_transient(errno: i32) -> bool {
    matches!(errno, libc::EINTR | libc::EAGAIN | libc::EBUSY)
}

fn entry(fd: Fd, vector: &Vector<'_>) -> squeue::Entry {
    let parts = vector.parts();
    let offset = vector.offset();
    // Neither is more than the limits of one call, which fit.
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

/// What came of the last attempt to make a ring: nothing yet, a ring, or an
/// `errno`.
static ANSWER: PerProcess<AtomicI32> = PerProcess::new();
const UNKNOWN: i32 = -1;
const AVAILABLE: i32 = 0;

fn answer() -> &'static AtomicI32 {
    ANSWER.get_or_make(|| AtomicI32::new(UNKNOWN))
}

/// The `errno` with which a ring cannot be had, if so; asked once.
fn errno() -> i32 {
    let known = answer().load(Ordering::Relaxed);
    if known != UNKNOWN {
        return known;
    }
    let found = match IoUring::new(1) {
        Ok(_) => AVAILABLE,
        Err(error) => error.raw_os_error().unwrap_or(libc::ENOSYS),
    };
    answer().store(found, Ordering::Relaxed);
    found
}

/// Whether this process may use io_uring.
pub(crate) fn is_available() -> bool {
    errno() == AVAILABLE
}

/// Makes the next question an attempt, if the last one failed; whether a ring
/// may be had.
pub(super) fn forget_failure() -> bool {
    let known = answer().load(Ordering::Relaxed);
    // A kernel without io_uring, or one that forbids it, will not change.
    let forbidden = matches!(known, libc::ENOSYS | libc::EPERM | libc::EACCES);
    if known != AVAILABLE && !forbidden {
        answer().store(UNKNOWN, Ordering::Relaxed);
    }
    !forbidden
}

/// An error unless this process may use io_uring.
pub fn require() -> io::Result<()> {
    match errno() {
        AVAILABLE => Ok(()),
        errno => {
            let cause = io::Error::from_raw_os_error(errno);
            let message = format!("io_uring is not available here ({cause}); threads are");
            Err(io::Error::new(io::ErrorKind::Unsupported, message))
        }
    }
}
