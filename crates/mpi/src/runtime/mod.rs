//! Loads and starts an MPI, for programs that are not linked with one.

mod launcher;

use std::error::Error;
use std::fmt;

use launcher::Launcher;
pub use launcher::is_launched;

use crate::error::{HostError, MpiError};
use crate::handles::Comm;
use crate::host::loader::{Library, Visibility};
use crate::host::{Host, Threads};
use crate::transport::{InsideCall, MpiTransport};

/// Selects the MPI library to load.
pub const LIBRARY_VARIABLE: &str = "PARIO_MPI_LIBRARY";

/// Why no MPI could be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuntimeError {
    /// None of the libraries that were tried can be loaded.
    NotFound {
        /// The libraries that were tried, each with the linker's error.
        tried: Vec<(String, String)>,
    },
    /// A library was loaded but cannot be used.
    Host(HostError),
    /// The MPI did not start.
    Mpi(MpiError),
    /// MPI was started and ended in this process before, and cannot start again.
    Finalized,
    /// The launcher started more processes than the MPI reports: it belongs to another MPI.
    WrongLauncher {
        /// The library that was loaded.
        library: String,
        /// The number of processes that the launcher started.
        launched: usize,
        /// The number of processes that the MPI reports.
        known: usize,
    },
}

impl fmt::Display for RuntimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { tried } => {
                f.write_str("no MPI library could be loaded")?;
                for (_, reason) in tried {
                    write!(f, "; {reason}")?;
                }
                write!(f, "; {LIBRARY_VARIABLE} can name one")
            }
            Self::Host(error) => error.fmt(f),
            Self::Mpi(error) => error.fmt(f),
            Self::Finalized => f.write_str("MPI has ended in this process and cannot start again"),
            Self::WrongLauncher {
                library,
                launched,
                known,
            } => write!(
                f,
                "the launcher started {launched} processes, but the MPI in {library} knows of \
                 {known}: the launcher belongs to another MPI, whose library {LIBRARY_VARIABLE} \
                 can name"
            ),
        }
    }
}

impl Error for RuntimeError {}

impl From<HostError> for RuntimeError {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

impl From<MpiError> for RuntimeError {
    fn from(error: MpiError) -> Self {
        Self::Mpi(error)
    }
}

/// What [`Runtime`] does with MPI when it is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AtEnd {
    Finalize,
    /// The program started MPI itself, so it is left running.
    Leave,
}

/// A running MPI; dropping it ends MPI.
#[derive(Debug)]
pub struct Runtime {
    host: &'static Host,
    at_end: AtEnd,
}

impl Runtime {
    /// Starts MPI with the requested level of thread support, or a lower one if the MPI
    /// provides no more: see [`Host::threads`].
    ///
    /// Uses the MPI of this process if there is one. Otherwise loads the library that the
    /// environment variable `PARIO_MPI_LIBRARY` names, or that of the launcher that started this
    /// process, or the first of those that the dynamic linker finds.
    pub fn start(wanted: Threads) -> Result<Runtime, RuntimeError> {
        let launcher = Launcher::detect();
        let host = match Host::current() {
            Err(HostError::NoMpi) => {
                load(&launcher)?;
                Host::current()?
            }
            found => found?,
        };
        if host.is_finalized() {
            return Err(RuntimeError::Finalized);
        }
        if host.is_initialized() {
            let at_end = AtEnd::Leave;
            return Ok(Runtime { host, at_end });
        }
        host.init_thread(wanted)?;
        let at_end = AtEnd::Finalize;
        let runtime = Runtime { host, at_end };
        let known = host.comm_size(runtime.world())?;
        match launcher.processes() {
            Some(launched) if launched > known && known == 1 => Err(RuntimeError::WrongLauncher {
                library: host.path().to_owned(),
                launched,
                known,
            }),
            _ => Ok(runtime),
        }
    }

    /// The MPI.
    pub fn host(&self) -> &'static Host {
        self.host
    }

    /// The communicator of all processes that were started together.
    pub fn world(&self) -> Comm {
        self.host.predefined().comm_world
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if self.at_end == AtEnd::Finalize && !self.host.is_finalized() {
            let _inside = InsideCall::enter();
            MpiTransport::forget_all(self.host);
            // There is nowhere to report an error.
            let _ = self.host.finalize();
        }
    }
}

/// Loads the first library that can be loaded.
fn load(launcher: &Launcher) -> Result<(), RuntimeError> {
    let named = std::env::var(LIBRARY_VARIABLE).ok();
    let candidates = match named {
        Some(named) => vec![named],
        None => launcher.candidates(),
    };
    let mut tried = Vec::new();
    for name in candidates {
        // The MPI's own plugins expect to see its symbols.
        match Library::load(&name, Visibility::Global) {
            Ok(_) => return Ok(()),
            Err(reason) => tried.push((name, reason)),
        }
    }
    Err(RuntimeError::NotFound { tried })
}
