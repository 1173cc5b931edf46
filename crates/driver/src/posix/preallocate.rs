//! Preallocation of storage.

use std::{io, os::fd::BorrowedFd};

use super::{
    calls::{Calls, SystemCall},
    sys,
};
use crate::{Client, batch::beyond_files};

/// Number of zeros per call if the file system cannot reserve storage.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// How a file is extended if the file system cannot reserve storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filling {
    /// By appending zeros, which allocates storage.
    Zeros,
    /// Without writing: the end that a client of servers knows may be old, and
    /// zeros written there could overwrite what another client has appended.
    None,
}

impl Filling {
    /// The safe one for a file system with this client.
    pub(super) fn on(client: Client) -> Filling {
        match client {
            Client::Local => Filling::Zeros,
            Client::Kernel | Client::Library => Filling::None,
        }
    }
}

/// Reserves storage for the first `bytes` bytes and extends a shorter file.
pub(super) fn run(
    calls: &Calls,
    fd: BorrowedFd<'_>,
    bytes: u64,
    filling: Filling,
) -> io::Result<()> {
    let end = i64::try_from(bytes).map_err(|_| beyond_files(0, bytes))?;
    if end == 0 {
        return Ok(());
    }
    match calls.make(SystemCall::Allocate, 0, |_| sys::allocate(fd, end)) {
        Err(error) if unsupported(&error) => match filling {
            Filling::Zeros => append_zeros(calls, fd, bytes),
            Filling::None => extend(calls, fd, end),
        },
        result => result,
    }
}

/// Sets the size of a file that is shorter, according to its server.
fn extend(calls: &Calls, fd: BorrowedFd<'_>, end: i64) -> io::Result<()> {
    match sys::fresh_size(fd)? < end.unsigned_abs() {
        true => calls.make(SystemCall::Truncate, 0, |_| sys::truncate(fd, end)),
        false => Ok(()),
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
