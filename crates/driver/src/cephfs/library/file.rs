//! Open files: transfers and locks.
//!
//! This file may contain `unsafe`: it calls libcephfs.
#![allow(unsafe_code)]

use std::{ffi::c_int, io, ops::Range, ptr, sync::Arc};

use libc::flock;

use super::{client::evicted, functions::RawFile, inode::Inode, user::User};
use crate::{Direction, vector::Vector};

/// An open file; closed when dropped.
pub(crate) struct OpenFile {
    /// Null once closed.
    pub(super) raw: *mut RawFile,
    pub(super) inode: Inode,
    pub(super) user: Arc<User>,
}

// SAFETY: the library protects its state by locks of its own.
unsafe impl Send for OpenFile {}
// SAFETY: as above.
unsafe impl Sync for OpenFile {}

/// The lock of a byte range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileLock {
    None,
    Shared,
    Exclusive,
}

impl OpenFile {
    pub(crate) fn inode(&self) -> &Inode {
        &self.inode
    }

    /// As whom it was opened.
    pub(crate) fn user(&self) -> &User {
        &self.user
    }

    /// Moves some bytes of a vector, whose offsets fit in 63 bits.
    pub(crate) fn transfer(&self, vector: &Vector<'_>) -> io::Result<usize> {
        let client = &self.inode.client;
        let raw = client.enter()?;
        let call = match vector.direction() {
            Direction::Read => client.functions.read,
            Direction::Write => client.functions.write,
        };
        let offset =
            i64::try_from(vector.offset()).expect("offsets are checked before they get here");
        let parts = vector.parts();
        let count = c_int::try_from(parts.len()).expect("a vector has no more parts than IOV_MAX");
        // SAFETY: the parts of a vector are memory of a live batch, valid for the
        // direction and their lengths; the mount and the file exist.
        let moved = unsafe { call(raw, self.raw, parts.as_ptr(), count, offset) };
        Ok(client.checked(moved)? as usize)
    }

    /// Puts written data on the servers.
    pub(crate) fn sync(&self) -> io::Result<()> {
        const DATA_AND_SIZE: c_int = 0;
        let client = &self.inode.client;
        let raw = client.enter()?;
        // SAFETY: as above.
        let synced = unsafe { (client.functions.sync)(raw, self.raw, DATA_AND_SIZE) };
        client.checked(synced.into())?;
        // The library drops what an evicted client has not written, and may have
        // reported that to someone else.
        match client.is_evicted() {
            true => Err(evicted()),
            false => Ok(()),
        }
    }

    /// Takes, converts or releases a lock for `owner`; false if another owner's is
    /// in the way.
    pub(crate) fn try_lock(
        &self,
        range: &Range<u64>,
        kind: FileLock,
        owner: u64,
    ) -> io::Result<bool> {
        const WITHOUT_WAITING: c_int = 0;
        let client = &self.inode.client;
        let raw = client.enter()?;
        let mut wanted = raw_lock(range, kind);
        // SAFETY: as above.
        let set = unsafe {
            (client.functions.set_lock)(raw, self.raw, &mut wanted, owner, WITHOUT_WAITING)
        };
        match client.checked(set.into()) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The range of a lock that is in the way.
    pub(crate) fn lock_in_the_way(
        &self,
        range: &Range<u64>,
        kind: FileLock,
        owner: u64,
    ) -> io::Result<Option<Range<u64>>> {
        let client = &self.inode.client;
        let raw = client.enter()?;
        let mut found = raw_lock(range, kind);
        // SAFETY: as above.
        let got = unsafe { (client.functions.get_lock)(raw, self.raw, &mut found, owner) };
        client.checked(got.into())?;
        if c_int::from(found.l_type) == libc::F_UNLCK {
            return Ok(None);
        }
        let start = u64::try_from(found.l_start).unwrap_or(0);
        let end = match found.l_len {
            0 => u64::MAX,
            len => start.saturating_add(u64::try_from(len).unwrap_or(0)),
        };
        Ok(Some(start..end))
    }

    /// Closes the file, which releases its locks.
    pub(crate) fn close(mut self) -> io::Result<()> {
        self.close_once()
    }

    fn close_once(&mut self) -> io::Result<()> {
        let file = std::mem::replace(&mut self.raw, ptr::null_mut());
        let client = &self.inode.client;
        if file.is_null() {
            return Ok(());
        }
        let raw = client.enter()?;
        // SAFETY: the file is open and not used again, whatever the result.
        let closed = unsafe { (client.functions.close)(raw, file) };
        client.checked(closed.into()).map(drop)
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        // A file that was not closed by its owner has nowhere to report an error.
        let _ = self.close_once();
    }
}

/// A range that ends past the largest file is one without an end.
fn raw_lock(range: &Range<u64>, kind: FileLock) -> flock {
    let start = i64::try_from(range.start).unwrap_or(i64::MAX);
    let len = match i64::try_from(range.end) {
        Ok(i64::MAX) | Err(_) => 0,
        Ok(end) => end - start,
    };
    // SAFETY: consists of numbers.
    let mut lock: flock = unsafe { std::mem::zeroed() };
    lock.l_type = match kind {
        FileLock::None => libc::F_UNLCK,
        FileLock::Shared => libc::F_RDLCK,
        FileLock::Exclusive => libc::F_WRLCK,
    } as _;
    lock.l_whence = libc::SEEK_SET as _;
    (lock.l_start, lock.l_len) = (start, len);
    lock
}
