//! The MPI that this process is a rank of.

use std::sync::Arc;

use pario_mpi::{InsideCall, MpiTransport, Runtime, Threads};
use pario_transport::{Rank, Transport};

use crate::failure::Failure;

/// An initialised MPI.
#[derive(Debug)]
pub(crate) struct Mpi {
    pub(crate) comm: Arc<dyn Transport>,
    /// What it is, and how its ranks communicate.
    pub(crate) about: String,
    /// This thread is the only one that calls the MPI, unless the MPI supports several.
    _inside: InsideCall,
    /// Dropped last: finalizes the MPI.
    _runtime: Runtime,
}

impl Mpi {
    /// Initialises the MPI. Collective.
    pub(crate) fn start() -> Result<Mpi, Failure> {
        let runtime = Runtime::start(Threads::Multiple).map_err(|error| failed(&error))?;
        let inside = InsideCall::enter();
        let host = runtime.host();
        let transport = MpiTransport::new(host, runtime.world()).map_err(|error| failed(&error))?;
        let version = host.version().lines().next().unwrap_or_default().trim();
        Ok(Mpi {
            about: format!("{version}; {}", transport.describe()),
            comm: transport,
            _inside: inside,
            _runtime: runtime,
        })
    }

    /// The node of each rank.
    pub(crate) fn nodes(&self) -> Vec<u32> {
        let ranks = 0..self.comm.size();
        ranks.map(|rank| self.comm.node_of(Rank(rank)).0).collect()
    }
}

/// A failure of the MPI.
pub(crate) fn failed(error: &dyn std::error::Error) -> Failure {
    Failure::Method {
        method: "MPI".to_owned(),
        reason: error.to_string(),
    }
}
