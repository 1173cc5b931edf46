//! Where the bytes of a file are, as reported by the clients of striped file
//! systems.

use std::os::fd::BorrowedFd;

use crate::{FileSystem, Placement, beegfs, cephfs::attribute, control::Control, lustre, orangefs};

/// The placement of an open file, if the file system reports any.
pub(crate) fn find(
    file: BorrowedFd<'_>,
    file_system: &FileSystem,
    control: &Control,
) -> Option<Placement> {
    match file_system {
        FileSystem::Lustre => lustre::placement(control, file),
        FileSystem::BeeGfs => beegfs::placement(control, file),
        FileSystem::OrangeFs => orangefs::placement(control, file),
        kind if kind.is_ceph() => attribute::placement(control, file),
        _ => None,
    }
}
