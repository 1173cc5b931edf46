//! Files whose small pieces are written through mappings.

mod cluster;
mod mapping;
mod page_costs;
mod staging;
mod stores;

pub(crate) use mapping::Populate;
pub use page_costs::{PageCosts, page_costs, stored_pieces, time};
pub(crate) use stores::{Copier, Stores, Target};

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
/// `Posix` does this too, but there the kernel makes the stores, and a page that
/// cannot be had is an error. Here the program makes them, which is up to twice
/// as fast for the smallest pieces. Storage is allocated first, so that a full
/// disk is an error. However, if the file is truncated at that very moment by
/// another program or through another handle, this program is killed by a signal.
/// This driver is therefore only used on request.
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
        Posix::new()
            .with_lists(ListMethod::Mapping(Copier::Program))
            .open(path, how)
    }

    fn delete(&self, path: &Path) -> io::Result<()> {
        Posix::new().delete(path)
    }
}
