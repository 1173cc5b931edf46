//! The user that files are accessed as.
//!
//! This file may contain `unsafe`: it calls libcephfs.
#![allow(unsafe_code)]

use std::{ffi::c_int, io, ptr};

use libc::gid_t;

use super::functions::{Functions, RawUser, functions};

/// The user that files are accessed as.
pub(crate) struct User {
    pub(super) raw: *mut RawUser,
    functions: &'static Functions,
    /// The library refers to it.
    _groups: Box<[gid_t]>,
}

// SAFETY: the library only reads it.
unsafe impl Send for User {}
// SAFETY: as above.
unsafe impl Sync for User {}

impl User {
    /// The effective user and group of this process, and its further groups.
    pub(crate) fn of_process() -> io::Result<User> {
        let functions = functions()?;
        let mut groups = groups()?.into_boxed_slice();
        let count = c_int::try_from(groups.len()).map_err(io::Error::other)?;
        // SAFETY: the library refers to the groups, which live as long as the user.
        let raw = unsafe {
            let (user, group) = (libc::geteuid(), libc::getegid());
            (functions.new_user)(user, group, count, groups.as_mut_ptr())
        };
        if raw.is_null() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        Ok(User {
            raw,
            functions,
            _groups: groups,
        })
    }
}

/// The supplementary groups of this process.
fn groups() -> io::Result<Vec<gid_t>> {
    // SAFETY: without room for any, the call returns their number.
    let count = unsafe { libc::getgroups(0, ptr::null_mut()) };
    let mut groups = vec![0; usize::try_from(count).map_err(|_| io::Error::last_os_error())?];
    // SAFETY: there is room for as many.
    let count = unsafe { libc::getgroups(count, groups.as_mut_ptr()) };
    groups.truncate(usize::try_from(count).map_err(|_| io::Error::last_os_error())?);
    Ok(groups)
}

impl Drop for User {
    fn drop(&mut self) {
        // SAFETY: files that refer to it have been closed. It does not need the
        // library's threads.
        unsafe { (self.functions.destroy_user)(self.raw) }
    }
}
