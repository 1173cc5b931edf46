//! Examines an MPI library in a separate process: two MPIs cannot share one, and a library that
//! cannot be loaded must not terminate this one.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use pario_mpi::host::loader::{Library, Visibility};
use pario_mpi::{Flavour, Host};
use serde::{Deserialize, Serialize};

use crate::child::Running;
use crate::failure::Failure;
use crate::output;

/// A library that takes longer to load is considered hung.
const TIME_MAX: Duration = Duration::from_secs(20);

/// The description of an MPI library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Probed {
    /// Its binary interface in words.
    pub(super) flavour: String,
    /// The version of the standard that it reports.
    pub(super) standard: String,
    /// How background operations between nodes progress while the program computes.
    pub(super) progress: String,
    /// Its version string, one line.
    pub(super) version: String,
}

/// In the child: loads the library and prints what it is.
pub(super) fn report(library: &str, out: &mut impl Write) -> Result<(), Failure> {
    let failed = |reason: String| Failure::Method {
        method: library.to_owned(),
        reason,
    };
    Library::load(library, Visibility::Global).map_err(failed)?;
    let host = Host::current().map_err(|error| failed(error.to_string()))?;
    let (major, minor) = host
        .standard_version()
        .map_err(|error| failed(error.to_string()))?;
    // Later lines describe its configuration.
    let version = host.version().lines().next().unwrap_or_default();
    let probed = Probed {
        flavour: host.flavour().name().to_owned(),
        standard: format!("{major}.{minor}"),
        progress: progress(host).to_owned(),
        version: version.split_whitespace().collect::<Vec<_>>().join(" "),
    };
    output::json(&probed, out).map_err(Failure::Output)
}

fn progress(host: &Host) -> &'static str {
    match host.flavour() {
        Flavour::OpenMpi if host.symbol("opal_progress_register").is_some() => {
            "in all of the MPI's functions (Open MPI's progress hook)"
        }
        Flavour::Mpich if host.symbol("MPIX_Async_start").is_some() => {
            "in all of the MPI's functions (MPIX_Async_start)"
        }
        _ => {
            "in file functions and completion calls; everywhere with MPI_THREAD_MULTIPLE, which \
              PARIO_THREADS=multiple requests"
        }
    }
}

/// Examines a library, or returns why it cannot be used.
pub(super) fn probe(library: &Path) -> Result<Probed, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(["doctor", "--probe"]).arg(library);
    let mut text = String::new();
    Running::start(&mut command)?.finish(TIME_MAX, &mut |line| text += line)?;
    serde_json::from_str(&text).map_err(|_| "it was loaded, but did not identify itself".to_owned())
}
