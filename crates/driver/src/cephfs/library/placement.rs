//! Where the bytes of a file are.
//!
//! This file may contain `unsafe`: it calls libcephfs.
#![allow(unsafe_code)]

use std::{
    ffi::{CStr, c_int},
    io,
};

use super::{
    super::layout::Layout,
    functions::{RawLayout, STATX_INO, Statx},
    inode::Inode,
};

/// More replicas than any pool has.
const OSDS_PER_OBJECT_MAX: usize = 32;

impl Inode {
    /// How the file is divided into objects.
    pub(crate) fn layout(&self) -> io::Result<Layout> {
        let raw_layout = self.raw_layout()?;
        Ok(Layout {
            stripe_unit: raw_layout.stripe_unit,
            stripe_count: raw_layout.stripe_count,
            object_size: raw_layout.object_size,
        })
    }

    fn raw_layout(&self) -> io::Result<RawLayout> {
        let raw = self.client.enter()?;
        let mut layout = RawLayout::default();
        // SAFETY: the mount and the inode exist, and the address outlives the call.
        let got = unsafe { (self.client.functions.layout)(raw, self.raw, &mut layout) };
        // The result is unsigned in the header, and an error code nevertheless.
        self.client.checked(i64::from(got as i32))?;
        Ok(layout)
    }

    /// Whether this client knows the OSDs of the file's pool. It gets the map of the
    /// cluster some time after it has mounted.
    pub(crate) fn knows_osds(&self) -> io::Result<bool> {
        let raw = self.client.enter()?;
        let pool = self.raw_layout()?.pool as c_int;
        // SAFETY: the mount exists.
        Ok(unsafe { (self.client.functions.replicas)(raw, pool) } >= 0)
    }

    /// The first OSD of each of these offsets, as far as they have one now. The client
    /// must [know](Inode::knows_osds) them: the library ends the process otherwise. It
    /// offers this for files that are open by their path only; for inodes, it has a
    /// function that always ends the process (in version 16).
    pub(crate) fn osds_at(
        &self,
        path: &CStr,
        flags: c_int,
        offsets: impl Iterator<Item = u64>,
    ) -> io::Result<Vec<Option<u32>>> {
        let client = &self.client;
        let raw = client.enter()?;
        // SAFETY: the mount exists, and the path is terminated.
        let opened = unsafe { (client.functions.open_path)(raw, path.as_ptr(), flags, 0) };
        let file = client.checked(opened.into())? as c_int;
        let mut found = Statx::zeroed();
        // SAFETY: the file is open, and the address outlives the call.
        let got = unsafe { (client.functions.status)(raw, file, &mut found, STATX_INO, 0) };
        let is_same = got >= 0 && found.ino == self.number();
        let osds = offsets.map(|offset| {
            let offset = i64::try_from(offset).ok().filter(|_| is_same)?;
            let (mut len, mut osds) = (0, [-1; OSDS_PER_OBJECT_MAX]);
            let room = osds.len() as c_int;
            // SAFETY: as above; there is room for as many as stated.
            let count = unsafe {
                (client.functions.osds_at)(raw, file, offset, &mut len, osds.as_mut_ptr(), room)
            };
            u32::try_from(osds[0]).ok().filter(|_| count > 0)
        });
        let osds = osds.collect();
        // SAFETY: the file is open and not used again. It was only looked at, so
        // that nothing is lost if this fails.
        unsafe { (client.functions.close_path)(raw, file) };
        Ok(osds)
    }
}
