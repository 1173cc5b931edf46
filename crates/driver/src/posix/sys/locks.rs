//! Leases and locks.
//!
//! This file may contain `unsafe`: `fcntl`.
#![allow(unsafe_code)]

use std::{
    io,
    ops::Range,
    os::fd::{AsRawFd, BorrowedFd},
};

use libc::c_int;

use super::checked;

/// Requests a lease on the file, which is granted only if no other description of it
/// is open. Whoever opens the file then waits until the lease is released, but at most
/// for the seconds in `/proc/sys/fs/lease-break-time`.
pub(crate) fn take_lease(fd: BorrowedFd<'_>) -> io::Result<()> {
    let fd = fd.as_raw_fd();
    // The kernel notifies the holder by this signal when somebody waits. It is ignored
    // by default; the usual one would end the program. Releasing a lease resets it.
    // SAFETY: no memory is passed.
    checked(unsafe { libc::fcntl(fd, F_SETSIG, libc::SIGURG) })?;
    // SAFETY: no memory is passed.
    checked(unsafe { libc::fcntl(fd, libc::F_SETLEASE, libc::F_WRLCK) }).map(drop)
}

/// Missing in the crate `libc`.
const F_SETSIG: c_int = 10;

/// Whether the description has a lease for which nobody waits.
pub(crate) fn has_lease(fd: BorrowedFd<'_>) -> bool {
    // SAFETY: no memory is passed.
    let held = checked(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETLEASE) });
    held.is_ok_and(|held| held == libc::F_WRLCK)
}

/// Releases a lease. There is none any more if someone has waited too long for it.
pub(crate) fn release_lease(fd: BorrowedFd<'_>) {
    // SAFETY: no memory is passed.
    let _ = checked(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK) });
}

/// A kind of kernel lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KernelLock {
    None,
    Shared,
    Exclusive,
}

/// Sets the lock of the open file description on a range; false if another
/// description holds a conflicting one.
pub(crate) fn lock_try(
    fd: BorrowedFd<'_>,
    range: Range<u64>,
    kind: KernelLock,
) -> io::Result<bool> {
    match set_lock(fd, range, kind, libc::F_OFD_SETLK) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => {
            Ok(false)
        }
        result => result.map(|()| true),
    }
}

/// The range of another description's conflicting lock, if there is one.
pub(crate) fn lock_in_the_way(
    fd: BorrowedFd<'_>,
    range: Range<u64>,
    kind: KernelLock,
) -> io::Result<Option<Range<u64>>> {
    let Some(mut lock) = flock(range, kind) else {
        return Ok(None);
    };
    // SAFETY: the lock outlives the call, which writes to it.
    checked(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) })?;
    if lock.l_type == libc::F_UNLCK as libc::c_short {
        return Ok(None);
    }
    let start = u64::try_from(lock.l_start).unwrap_or(0);
    let end = match u64::try_from(lock.l_len) {
        Ok(len) if len > 0 => start.saturating_add(len),
        _ => u64::MAX,
    };
    Ok(Some(start..end))
}

fn set_lock(
    fd: BorrowedFd<'_>,
    range: Range<u64>,
    kind: KernelLock,
    command: c_int,
) -> io::Result<()> {
    match flock(range, kind) {
        // SAFETY: the lock outlives the call.
        Some(lock) => checked(unsafe { libc::fcntl(fd.as_raw_fd(), command, &lock) }).map(drop),
        None => Ok(()),
    }
}

/// A lock for `fcntl`. `None` beyond 63 bits, where no file has bytes and only
/// the lock table applies.
fn flock(range: Range<u64>, kind: KernelLock) -> Option<libc::flock64> {
    let start = i64::try_from(range.start).ok()?;
    // SAFETY: plain integers, for which zero is valid; OFD locks require a zero
    // pid.
    let mut lock: libc::flock64 = unsafe { std::mem::zeroed() };
    lock.l_type = match kind {
        KernelLock::None => libc::F_UNLCK,
        KernelLock::Shared => libc::F_RDLCK,
        KernelLock::Exclusive => libc::F_WRLCK,
    } as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = start;
    // Zero means up to the maximum offset.
    lock.l_len = i64::try_from(range.end).map_or(0, |end| end - start);
    Some(lock)
}
