//! Preallocation of storage.

use std::{io, os::fd::BorrowedFd};

use super::{
    calls::{Calls, SystemCall},
    sys,
};
use crate::batch::beyond_files;

/// Number of zeros per call if the file system cannot reserve storage.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// Reserves storage for the first `bytes` bytes and extends a shorter file.
pub(super) fn run(calls: &Calls, fd: BorrowedFd<'_>, bytes: u64) -> io::Result<()> {
    let end = i64::try_from(bytes).map_err(|_| beyond_files(0, bytes))?;
    if end == 0 {
        return Ok(());
    }
    match calls.make(SystemCall::Allocate, 0, |_| sys::allocate(fd, end)) {
        Err(error) if unsupported(&error) => append_zeros(calls, fd, bytes),
        result => result,
    }
}

/// Appends zeros until the file has `bytes` bytes. Existing data is safe even
/// if the file is extended concurrently, because each call appends at the
/// current end; such a race can only leave the file longer, by at most one
/// call's zeros.
fn append_zeros(calls: &Calls, fd: BorrowedFd<'_>, bytes: u64) -> io::Result<()> {
    loop {
        let missing = bytes.saturating_sub(sys::size(fd)?);
        if missing == 0 {
            return Ok(());
        }
        let len = usize::try_from(missing).map_or(ZEROS.len(), |missing| missing.min(ZEROS.len()));
        calls.make(SystemCall::Write, len, |limit| {
            sys::append(fd, &ZEROS[..limit])
        })?;
    }
}

fn unsupported(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS))
}
