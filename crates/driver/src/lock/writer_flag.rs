//! How the handles of a file tell each other whether they write without locks.

use std::{
    io,
    ops::Range,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use crate::posix::sys::{self, KernelLock};

/// Range locks end here. The kernel compares lock ranges of whole programs, and
/// other programs use single bytes beyond any data as flags.
const LOCKS_END: u64 = 1 << 60;

/// The flag is a lock on this byte, beyond those that range locks cover.
const FLAG: Range<u64> = LOCKS_END..LOCKS_END + 1;

/// A file's flag, as seen by one handle. Handles whose writes take no locks hold
/// it together; a handle that reads, modifies and writes back holds it alone. It
/// is released when it is dropped, and with its process.
///
/// Nothing ever waits for it.
#[derive(Debug)]
pub struct WriterFlag {
    /// A description of its own: other locks of the handle do not touch it.
    fd: OwnedFd,
}

/// Who holds a flag that could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagState {
    /// This handle.
    Held,
    /// Another handle of pario, in a way that excludes this one.
    Refused,
    /// A program that locks the whole file, as `flock(1)` does.
    Foreign,
}

impl WriterFlag {
    /// Fails if the file of the descriptor cannot be opened for reading and writing,
    /// which both kinds of locks together need.
    pub fn of(file: BorrowedFd<'_>) -> io::Result<WriterFlag> {
        let fd = sys::reopen(file, libc::O_RDWR)?;
        Ok(WriterFlag { fd })
    }

    /// Holds the flag together with others whose writes take no locks, also if it was
    /// held alone before.
    pub fn share(&self) -> io::Result<FlagState> {
        self.set(KernelLock::Shared)
    }

    /// Holds the flag alone. Otherwise, it remains shared if it was.
    pub fn claim(&self) -> io::Result<FlagState> {
        self.set(KernelLock::Exclusive)
    }

    fn set(&self, kind: KernelLock) -> io::Result<FlagState> {
        let fd = self.fd.as_fd();
        if sys::lock_try(fd, FLAG, kind)? {
            return Ok(FlagState::Held);
        }
        let holder = sys::lock_in_the_way(fd, FLAG, kind)?;
        Ok(match holder {
            Some(range) if range != FLAG => FlagState::Foreign,
            // It may have been released in the meantime.
            _ => FlagState::Refused,
        })
    }
}

/// The part of a range below the last byte that is locked, which keeps ranges of
/// any size apart: offsets beyond it all conflict.
pub(crate) fn below_end(range: &Range<u64>) -> Range<u64> {
    let last = LOCKS_END - 1;
    match range.is_empty() {
        true => range.clone(),
        false => range.start.min(last)..range.end.min(LOCKS_END),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn flag(file: &File) -> WriterFlag {
        WriterFlag::of(file.as_fd()).unwrap()
    }

    #[test]
    fn handles_without_locks_and_one_that_rewrites_exclude_each_other() {
        let file = tempfile::tempfile().unwrap();
        let [first, second, third] = [(); 3].map(|()| flag(&file));
        assert_eq!(first.share().unwrap(), FlagState::Held);
        assert_eq!(second.share().unwrap(), FlagState::Held);
        assert_eq!(first.claim().unwrap(), FlagState::Refused);
        drop(second);
        assert_eq!(first.claim().unwrap(), FlagState::Held);
        assert_eq!(third.share().unwrap(), FlagState::Refused);
        assert_eq!(third.claim().unwrap(), FlagState::Refused);
        assert_eq!(first.share().unwrap(), FlagState::Held);
        assert_eq!(third.share().unwrap(), FlagState::Held);
    }

    #[test]
    fn ranges_end_below_the_bytes_that_are_flags() {
        assert_eq!(below_end(&(5..9)), 5..9);
        assert_eq!(below_end(&(0..u64::MAX)), 0..LOCKS_END);
        assert_eq!(
            below_end(&(u64::MAX - 1..u64::MAX)),
            LOCKS_END - 1..LOCKS_END
        );
        assert!(below_end(&(7..7)).is_empty());
    }

    #[test]
    fn a_lock_on_the_whole_file_is_not_a_flag() {
        let file = tempfile::tempfile().unwrap();
        let other = sys::reopen(file.as_fd(), libc::O_RDWR).unwrap();
        assert!(sys::lock_try(other.as_fd(), 0..1 << 62, KernelLock::Exclusive).unwrap());
        assert_eq!(flag(&file).share().unwrap(), FlagState::Foreign);
    }
}
