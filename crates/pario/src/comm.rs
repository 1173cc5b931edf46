//! The ranks that open files together.

use std::{fmt, sync::Arc};

use pario_transport::Transport;

use crate::Result;

/// The ranks that open files together, as one of them sees them: MPI's communicator.
///
/// [`threads::run`](crate::threads::run) and [`processes::run`](crate::processes::run) make
/// communicators; the crate `pario-mpi` has transports for those of an MPI, which convert to a
/// `Comm`.
#[derive(Clone)]
pub struct Comm(Arc<dyn Transport>);

impl Comm {
    /// The number of the caller among the ranks, from 0.
    pub fn rank(&self) -> u32 {
        self.0.rank().0
    }

    /// The number of ranks.
    pub fn size(&self) -> u32 {
        self.0.size()
    }

    /// Returns when all ranks have called it. *Collective*.
    pub fn barrier(&self) -> Result<()> {
        Ok(self.0.barrier()?)
    }

    pub(crate) fn transport(&self) -> &Arc<dyn Transport> {
        &self.0
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Comm")
            .field("transport", &self.0.name())
            .field("rank", &self.rank())
            .field("size", &self.size())
            .finish()
    }
}

impl From<Arc<dyn Transport>> for Comm {
    fn from(transport: Arc<dyn Transport>) -> Comm {
        Comm(transport)
    }
}

impl From<&Arc<dyn Transport>> for Comm {
    fn from(transport: &Arc<dyn Transport>) -> Comm {
        Comm(transport.clone())
    }
}

impl<T: Transport + 'static> From<Arc<T>> for Comm {
    fn from(transport: Arc<T>) -> Comm {
        Comm(transport)
    }
}

impl From<&Comm> for Comm {
    fn from(comm: &Comm) -> Comm {
        comm.clone()
    }
}
