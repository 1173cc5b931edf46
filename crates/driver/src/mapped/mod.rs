//! Files whose small pieces are stored through mappings.

mod mapping;
mod transfer;

pub(crate) use transfer::Stores;

use std::{io, path::Path, sync::Arc};

use crate::{
    Capabilities, Driver, Handle, OpenHow,
    posix::{ListMethod, Posix},
};

/// POSIX files of which many small pieces close together are written by
/// storing them in a mapping of the file: no system call for each, no reading
/// and writing back of what lies between them, no lock. Everything else goes
/// as with [`Posix`](crate::Posix), and so do file systems that share files
/// with other nodes, where a page is more than what is written of it, and
/// those that find a place for a page only when they write it.
///
/// Space and storage are asked for before the stores, so that a full disk is
/// an error. But a file that is shortened at that very moment by another
/// program, or through another handle, kills this program by a signal,
/// libraries that intercept file calls see nothing of the stores, and `tmpfs`
/// does not date them. So this driver is never chosen unasked.
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
