//! One system call: made, repeated when interrupted, and open to interference.

use std::{fmt::Debug, io, sync::Arc};

/// The system calls that can be interfered with.
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
    /// `fcntl` with a lock to be taken.
    Lock,
    /// `fcntl` with a lock to be released.
    Unlock,
    /// `open` of a file that is open, for a description without locks.
    Reopen,
}

/// What happens to a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallAction {
    /// It is made.
    Proceed,
    /// It is made with no more than this many bytes (at least one).
    Shorten(usize),
    /// It fails with this `errno` and is not made.
    Fail(i32),
}

/// Something below the driver that does what file systems are allowed to do.
/// Tests use it: the loops that continue short and interrupted calls have no
/// other way to meet them on purpose.
pub trait Interference: Send + Sync + Debug {
    /// Asked before each system call with the bytes it would move.
    fn before(&self, call: SystemCall, bytes: usize) -> CallAction;
}

/// Makes system calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    interference: Option<Arc<dyn Interference>>,
}

impl Calls {
    pub(super) fn interfered(interference: Arc<dyn Interference>) -> Self {
        Calls {
            interference: Some(interference),
        }
    }

    /// Whether nothing interferes, so that calls need not be made one by one.
    pub(super) fn undisturbed(&self) -> bool {
        self.interference.is_none()
    }

    /// Makes a call of `bytes` bytes until it is not interrupted; `call` gets
    /// how many of them to move.
    pub(super) fn make<T>(
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

    /// The same without repeating it.
    pub(super) fn make_once<T>(
        &self,
        kind: SystemCall,
        bytes: usize,
        call: impl FnOnce(usize) -> io::Result<T>,
    ) -> io::Result<T> {
        let verdict = match &self.interference {
            None => CallAction::Proceed,
            Some(interference) => interference.before(kind, bytes),
        };
        match verdict {
            CallAction::Proceed => call(bytes),
            CallAction::Shorten(limit) => call(bytes.min(limit.max(1))),
            CallAction::Fail(errno) => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}
