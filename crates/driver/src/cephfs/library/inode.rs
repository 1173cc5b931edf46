//! Files and directories that are not open.
//!
//! This file may contain `unsafe`: it calls libcephfs.
#![allow(unsafe_code)]

use std::{
    ffi::{CStr, c_int},
    io, ptr,
    sync::Arc,
};

use super::{
    client::Client,
    file::OpenFile,
    functions::{
        RawInode, SETATTR_ATIME, SETATTR_SIZE, STATX_ATIME, STATX_BTIME, STATX_INO, STATX_SIZE,
        Statx,
    },
    user::User,
};

/// A reference to a file or directory.
pub(crate) struct Inode {
    pub(super) raw: *mut RawInode,
    pub(super) client: Arc<Client>,
    number: u64,
    is_directory: bool,
}

// SAFETY: the library protects its state by locks of its own.
unsafe impl Send for Inode {}
// SAFETY: as above.
unsafe impl Sync for Inode {}

/// What the metadata server knows about a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attributes {
    pub(crate) size: u64,
    /// In seconds.
    pub(crate) accessed: i64,
    /// In nanoseconds.
    pub(crate) born: i64,
}

impl Inode {
    pub(super) fn new(
        client: &Arc<Client>,
        raw: *mut RawInode,
        number: u64,
        is_directory: bool,
    ) -> Inode {
        Inode {
            raw,
            client: client.clone(),
            number,
            is_directory,
        }
    }

    pub(crate) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Its number.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn is_directory(&self) -> bool {
        self.is_directory
    }

    /// Opens the file.
    pub(crate) fn open(self, flags: c_int, user: Arc<User>) -> io::Result<OpenFile> {
        let raw = self.client.enter()?;
        let mut file = ptr::null_mut();
        // SAFETY: the mount, the inode and the user exist, and the address outlives
        // the call.
        let opened =
            unsafe { (self.client.functions.open)(raw, self.raw, flags, &mut file, user.raw) };
        self.client.checked(opened.into())?;
        Ok(OpenFile {
            raw: file,
            inode: self,
            user,
        })
    }

    /// Creates and opens a file in this directory.
    pub(crate) fn create(
        &self,
        name: &CStr,
        flags: c_int,
        permissions: u32,
        user: Arc<User>,
    ) -> io::Result<OpenFile> {
        let raw = self.client.enter()?;
        let (mut inode, mut file) = (ptr::null_mut(), ptr::null_mut());
        let mut found = Statx::zeroed();
        // SAFETY: as above; the name is terminated.
        let created = unsafe {
            (self.client.functions.create_file)(
                raw,
                self.raw,
                name.as_ptr(),
                permissions,
                flags,
                &mut inode,
                &mut file,
                &mut found,
                STATX_INO,
                0,
                user.raw,
            )
        };
        self.client.checked(created.into())?;
        Ok(OpenFile {
            raw: file,
            inode: Inode::new(&self.client, inode, found.ino, false),
            user,
        })
    }

    /// Removes a name from this directory.
    pub(crate) fn unlink(&self, name: &CStr, user: &User) -> io::Result<()> {
        let raw = self.client.enter()?;
        // SAFETY: as above.
        let removed =
            unsafe { (self.client.functions.unlink)(raw, self.raw, name.as_ptr(), user.raw) };
        self.client.checked(removed.into()).map(drop)
    }

    /// Its attributes, no older than this call.
    pub(crate) fn attributes(&self, user: &User) -> io::Result<Attributes> {
        let raw = self.client.enter()?;
        let mut found = Statx::zeroed();
        let want = STATX_SIZE | STATX_ATIME | STATX_BTIME;
        // SAFETY: as above.
        let got = unsafe {
            (self.client.functions.get_attributes)(raw, self.raw, &mut found, want, 0, user.raw)
        };
        self.client.checked(got.into())?;
        Ok(Attributes {
            size: found.size,
            accessed: found.accessed.tv_sec,
            born: found.born.tv_sec.wrapping_mul(1_000_000_000) + found.born.tv_nsec,
        })
    }

    pub(crate) fn set_size(&self, bytes: u64, user: &User) -> io::Result<()> {
        let mut new = Statx::zeroed();
        new.size = bytes;
        self.set(new, SETATTR_SIZE, user)
    }

    pub(crate) fn set_access_time(&self, seconds: i64, user: &User) -> io::Result<()> {
        let mut new = Statx::zeroed();
        new.accessed.tv_sec = seconds;
        self.set(new, SETATTR_ATIME, user)
    }

    fn set(&self, mut new: Statx, which: c_int, user: &User) -> io::Result<()> {
        let raw = self.client.enter()?;
        // SAFETY: as above.
        let set = unsafe {
            (self.client.functions.set_attributes)(raw, self.raw, &mut new, which, user.raw)
        };
        self.client.checked(set.into()).map(drop)
    }

    /// The value of an extended attribute, up to a length that all of this driver
    /// fit in.
    pub(crate) fn attribute(&self, name: &CStr, user: &User) -> io::Result<Vec<u8>> {
        let raw = self.client.enter()?;
        let mut value = vec![0; 1 << 10];
        // SAFETY: as above; the value is as long as stated.
        let got = unsafe {
            (self.client.functions.get_attribute)(
                raw,
                self.raw,
                name.as_ptr(),
                value.as_mut_ptr().cast(),
                value.len(),
                user.raw,
            )
        };
        value.truncate(self.client.checked(got.into())? as usize);
        Ok(value)
    }

    pub(crate) fn set_attribute(&self, name: &CStr, value: &[u8], user: &User) -> io::Result<()> {
        let raw = self.client.enter()?;
        // SAFETY: as above.
        let set = unsafe {
            (self.client.functions.set_attribute)(
                raw,
                self.raw,
                name.as_ptr(),
                value.as_ptr().cast(),
                value.len(),
                0,
                user.raw,
            )
        };
        self.client.checked(set.into()).map(drop)
    }
}

impl Drop for Inode {
    fn drop(&mut self) {
        if let Ok(raw) = self.client.enter() {
            // SAFETY: the reference is not used again.
            unsafe { (self.client.functions.put)(raw, self.raw) };
        }
    }
}
