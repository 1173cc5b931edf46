//! What the workers of `bench compare` and `bench latency` share: one rank of an MPI program.

use std::fmt::Display;
use std::path::PathBuf;

use pario_mpi::host::loader::{Library, Visibility};
use pario_mpi::{Comm, Host, Runtime, Threads};

use crate::failure::Failure;

/// The options of every worker.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The MPI's library [default: that of the launcher]
    #[arg(long, value_name = "FILE")]
    mpi_library: Option<PathBuf>,
    /// The library whose MPI-IO is used [default: the MPI's own]
    #[arg(long, value_name = "FILE")]
    pub(crate) library: Option<PathBuf>,
    /// The directory of the files
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
}

impl Options {
    /// Initialises the MPI and runs `work` in it. If it fails, all ranks are aborted: they would
    /// wait for this one.
    pub(crate) fn run(
        &self,
        work: impl FnOnce(&'static Host, Comm) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if let Some(library) = &self.mpi_library {
            let loaded = Library::load(&library.to_string_lossy(), Visibility::Global);
            loaded.map_err(|reason| failed("cannot load the MPI", reason))?;
        }
        let runtime = Runtime::start(Threads::Single)
            .map_err(|error| failed("cannot initialise the MPI", error))?;
        let (host, world) = (runtime.host(), runtime.world());
        let outcome = work(host, world);
        if let Err(failure) = &outcome {
            eprintln!("pario: {failure}");
            let _ = host.abort(world, 1);
        }
        outcome
    }
}

pub(crate) fn failed(what: &str, reason: impl Display) -> Failure {
    Failure::Method {
        method: what.to_owned(),
        reason: reason.to_string(),
    }
}

/// A failure of an MPI function, which the text names.
pub(crate) fn mpi(error: impl Display) -> Failure {
    failed("MPI", error)
}
