//! Files whose small pieces are written through mappings.

mod mapping;
mod transfer;

pub(crate) use transfer::Stores;

use std::{io, path::Path, sync::Arc};

use crate::{
    Capabilities, Driver, Handle, OpenHow,
    posix::{ListMethod, Posix},
};

/// POSIX files in which many small pieces close together are written by storing
/// them through a mapping of the file: no system call per piece, no
/// read-modify-write of the gaps, no lock. Everything else works as with
/// [`Posix`](crate::Posix). That includes file systems that share files between
/// nodes, where writing a page may overwrite more than the stored bytes, and
/// those that allocate storage only when a page is written back.
///
/// Storage is allocated before the stores, so that a full disk is an error.
/// However, if the file is truncated at that very moment by another program or
/// through another handle, this program is killed by a signal; libraries that
/// intercept file calls do not see the stores; and `tmpfs` does not update the
/// modification time. This driver is therefore only used on request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mapped;

impl Driver for Mapped {
    fn name(&self) -> &'static str {
        "mapped"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::OF_THE_KERNEL
    }

    fn open(&self, path: &Path, how: &OpenHow) -> io::Result<Arc<dyn Handle>> {
        Posix::new().with_lists(ListMethod::Mapping).open(path, how)
    }

    fn delete(&self, path: &Path) -> io::Result<()> {
        Posix::new().delete(path)
    }
}
