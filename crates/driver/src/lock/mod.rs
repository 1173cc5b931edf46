//! Byte-range locks.

mod table;
mod writer_flag;

pub(crate) use table::{RangeTable, Ticket, Unlock};
pub(crate) use writer_flag::below_end;
pub use writer_flag::{FlagState, WriterFlag};

use std::{fmt, io, ops::Range};

use crate::{Access, Direction};

/// What to do about a conflicting lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnConflict {
    Wait,
    Try,
}

/// Who may hold overlapping locks at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockMode {
    /// Others with shared locks.
    Shared,
    /// No one else.
    Exclusive,
}

impl LockMode {
    /// An error if a handle with this access cannot take such a lock. The
    /// kernel lets only writers exclude readers, so no driver does more.
    pub(crate) fn require(self, access: Access) -> io::Result<()> {
        if self == LockMode::Shared || access.allows(Direction::Write) {
            return Ok(());
        }
        let message = "the file was opened for reading only: exclusive locks need writing";
        Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
    }

    /// Whether locks of the two modes exclude each other.
    pub fn conflicts(self, other: LockMode) -> bool {
        self == LockMode::Exclusive || other == LockMode::Exclusive
    }
}

/// A lock that is held; dropping it releases it.
#[must_use = "the lock is released when this is dropped"]
pub struct RangeLock {
    range: Range<u64>,
    mode: LockMode,
    /// `None` only while dropping.
    release: Option<Box<dyn FnOnce() + Send>>,
}

impl RangeLock {
    /// A lock that `release` lets go. For drivers.
    pub fn new(range: Range<u64>, mode: LockMode, release: impl FnOnce() + Send + 'static) -> Self {
        RangeLock {
            range,
            mode,
            release: Some(Box::new(release)),
        }
    }

    /// The lock of an empty range.
    pub(crate) fn nothing(range: Range<u64>, mode: LockMode) -> Self {
        RangeLock {
            range,
            mode,
            release: None,
        }
    }

    /// The bytes it covers.
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// Its mode, as asked.
    pub fn mode(&self) -> LockMode {
        self.mode
    }
}

impl Drop for RangeLock {
    fn drop(&mut self) {
        if let Some(release) = self.release.take() {
            release();
        }
    }
}

impl fmt::Debug for RangeLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RangeLock")
            .field("range", &self.range)
            .field("mode", &self.mode)
            .finish()
    }
}
