//! NFS seen through several page caches: ranks on several nodes, or on several
//! mounts of one node.
//!
//! The Linux client caches pages and attributes, and does not keep them coherent
//! with other clients: a file that is open for writing is read from the cache
//! however old it is, a write of part of a cached page sends the whole page, and
//! sizes are old. Range locks around each access, as in ROMIO, avoid that at the
//! price of five to six RPCs per access.
//!
//! This driver transfers data by `O_DIRECT` instead, which on NFS has no
//! alignment: exactly the bytes of the call travel, in one RPC if they are few, and
//! nothing is left in the cache, neither dirty nor old. So a completed write is on
//! the server, for whichever rank reads it next from wherever, and nothing
//! has to be flushed or dropped when ranks synchronise. Sizes are queried from the
//! server. Range locks are taken where MPI requires them, in atomic
//! mode and for the shared pointer, and where many small pieces with gaps between
//! them are written by reading, modifying and writing back a range: every piece
//! would be an RPC otherwise. A [`WriterFlag`] keeps handles that do so apart
//! from handles that write without locks.

mod handle;
mod open;
mod uncached;

use std::{io, path::Path, sync::Arc};

use crate::{
    Capabilities, Driver, Handle, Interference, OpenHow,
    control::KernelControl,
    mapped::Copier,
    posix::{Calls, ListMethod, PosixHandle, Setup, sys},
};
use handle::NfsHandle;

/// NFS, without caching on the client. On another file system, which a user may
/// name by mistake, it is like [`Posix`](crate::Posix).
#[derive(Clone, Debug, Default)]
pub struct Nfs {
    calls: Calls,
}

impl Nfs {
    /// The driver.
    pub fn new() -> Self {
        Nfs::default()
    }

    /// Lets `interference` shorten, interrupt and fail system calls, for tests.
    #[must_use]
    pub fn with_interference(self, interference: Arc<dyn Interference>) -> Self {
        Nfs {
            calls: Calls::interfered(interference),
        }
    }

    fn setup(&self) -> Setup {
        Setup {
            calls: self.calls.clone(),
            lists: ListMethod::Mapping(Copier::Kernel),
            assumed: None,
            control: Arc::new(KernelControl),
        }
    }
}

impl Driver for Nfs {
    fn name(&self) -> &'static str {
        "nfs"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::OF_THE_KERNEL
    }

    fn open(&self, path: &Path, how: &OpenHow) -> io::Result<Arc<dyn Handle>> {
        let open = || PosixHandle::open(path, how, self.setup());
        let posix = open::with_fresh_directory(path, how.create, open)?;
        let handle = NfsHandle::new(posix, how, self.calls.clone())?;
        Ok(Arc::new(handle))
    }

    fn delete(&self, path: &Path) -> io::Result<()> {
        sys::unlink(path)
    }
}
