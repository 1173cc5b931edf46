//! Errors of the host.

use std::error::Error;
use std::ffi::c_int;
use std::fmt;

use crate::host::classes::ErrorClass;

/// A call of the host that returned an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MpiError {
    /// The function, `"MPI_Comm_dup"` for instance.
    pub function: &'static str,
    /// The code that it returned.
    pub code: c_int,
    /// The class of the code, if it is known.
    pub class: Option<ErrorClass>,
    /// The host's error string.
    pub text: String,
}

impl fmt::Display for MpiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed with code {}", self.function, self.code)?;
        if let Some(class) = self.class {
            write!(f, " ({})", class.name())?;
        }
        write!(f, ": {}", self.text)
    }
}

impl Error for MpiError {}

/// The maximum number of missing names in a message.
const NAMES_MAX: usize = 8;

/// Why the MPI of this process cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostError {
    /// No library that is loaded defines MPI's functions.
    NoMpi,
    /// The library is of an MPI whose binary interface is unknown.
    UnknownAbi {
        /// The library's file.
        path: String,
        /// Its version string.
        version: String,
    },
    /// The library lacks functions or constants that are needed.
    Missing {
        /// The library's file.
        path: String,
        /// The names it lacks.
        names: Vec<String>,
    },
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMpi => f.write_str(
                "no MPI is loaded in this process: none of its libraries defines PMPI_Comm_dup",
            ),
            Self::UnknownAbi { path, version } => write!(
                f,
                "the MPI in {path} has neither the ABI of MPICH, nor that of Open MPI, nor the \
                 standard one; it calls itself {version:?}"
            ),
            Self::Missing { path, names } => {
                let (shown, rest) = names.split_at(names.len().min(NAMES_MAX));
                write!(f, "the MPI in {path} lacks {}", shown.join(", "))?;
                match rest.len() {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
        }
    }
}

impl Error for HostError {}
