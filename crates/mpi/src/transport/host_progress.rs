//! Keeps messages of the program itself moving while a rank waits for a file.

use pario_transport::{Process, Result};

use super::mpi_point_to_point::host_error;
use super::permission::Callers;
use crate::{Host, Threads};

/// How often to look: long messages move on by one piece per look in some MPIs.
const LOOKS: usize = 8;

/// How the MPI's progress is made without a communicator of one's own.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostProgress {
    host: &'static Host,
    callers: Callers,
    /// The process whose MPI it is: a child that it forks has none.
    process: Process,
}

impl HostProgress {
    pub(super) fn new(host: &'static Host) -> Result<HostProgress> {
        let callers = match host.threads().map_err(host_error)? {
            Threads::Multiple => Callers::All,
            _ => Callers::Inside,
        };
        Ok(HostProgress {
            host,
            callers,
            process: Process::this(),
        })
    }

    /// Which threads may call the MPI.
    pub(super) fn callers(&self) -> Callers {
        self.callers
    }

    /// Has the MPI make progress, if the calling thread may call it.
    pub(super) fn make(&self) {
        if !self.callers.include_me() || !self.process.is_this() {
            return;
        }
        for _ in 0..LOOKS {
            // The answer does not matter, nor does an error: messages of the
            // program are the program's.
            let _ = self.host.make_progress();
        }
    }
}
