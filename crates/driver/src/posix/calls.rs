//! System calls: made, retried when interrupted, and subject to fault
//! injection.

use std::{fmt::Debug, io, os::fd::BorrowedFd, sync::Arc};

use super::sys;

/// The system calls that can be intercepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SystemCall {
    /// `pread`, `preadv`.
    Read,
    /// `pwrite`, `pwritev`.
    Write,
    /// `ftruncate`.
    Truncate,
    /// `fallocate`.
    Allocate,
    /// `fsync`.
    Sync,
    /// `fcntl` that takes a lock.
    Lock,
    /// `fcntl` that releases a lock.
    Unlock,
    /// `open` of a file that is open, for a description without locks.
    Reopen,
    /// `mmap`.
    Map,
    /// `preadv` that stores to a mapping.
    Store,
}

/// What to do with a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallAction {
    /// Make it.
    Proceed,
    /// Make it with at most this many bytes (at least one).
    Shorten(usize),
    /// Fail with this `errno` without making it.
    Fail(i32),
}

/// Injects behaviour that file systems are allowed to show. Tests use it, since
/// the loops that continue short and interrupted calls cannot be exercised
/// otherwise.
pub trait Interference: Send + Sync + Debug {
    /// Called before each system call with the number of bytes it would move.
    fn before(&self, call: SystemCall, bytes: usize) -> CallAction;
}

/// Makes system calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    interference: Option<Arc<dyn Interference>>,
    refreshes_sizes: bool,
}

impl Calls {
    pub(crate) fn interfered(interference: Arc<dyn Interference>) -> Self {
        Calls {
            interference: Some(interference),
            ..Calls::default()
        }
    }

    /// The same for a file whose client has to ask for the size before it reads beyond the one it knows.
    pub(super) fn refreshing_sizes(self) -> Self {
        Calls {
            refreshes_sizes: true,
            ..self
        }
    }

    /// Prepares a read up to `end`.
    #[inline]
    pub(super) fn before_read(&self, fd: BorrowedFd<'_>, end: u64) -> io::Result<()> {
        if self.refreshes_sizes && sys::known_size(fd)? < end {
            sys::fresh_size(fd)?;
        }
        Ok(())
    }

    /// Whether nothing intercepts calls, so that they need not be made one by
    /// one.
    pub(super) fn undisturbed(&self) -> bool {
        self.interference.is_none()
    }

    /// Makes a call of `bytes` bytes and retries while interrupted; `call` gets
    /// the number of bytes to move.
    #[inline]
    pub(crate) fn make<T>(
        &self,
        kind: SystemCall,
        bytes: usize,
        mut call: impl FnMut(usize) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            match self.make_once(kind, bytes, &mut call) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    /// The same without retrying.
    #[inline]
    pub(super) fn make_once<T>(
        &self,
        kind: SystemCall,
        bytes: usize,
        call: impl FnOnce(usize) -> io::Result<T>,
    ) -> io::Result<T> {
        let action = match &self.interference {
            None => CallAction::Proceed,
            Some(interference) => interference.before(kind, bytes),
        };
        match action {
            CallAction::Proceed => call(bytes),
            CallAction::Shorten(limit) => call(bytes.min(limit.max(1))),
            CallAction::Fail(errno) => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}
