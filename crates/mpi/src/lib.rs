//! The MPI of the running program, found and called at run time.
//!
//! Nothing here is compiled against an MPI. [`Host::current`] finds the MPI library that is
//! loaded in this process, determines which of the three binary interfaces it has
//! ([`Flavour`]), and calls it through function pointers. Handles are 64-bit numbers in Rust
//! whatever their width in C.
//!
//! ```no_run
//! use pario_mpi::{Host, Runtime, Threads};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = Runtime::start(Threads::Multiple)?;
//! let host = runtime.host();
//! let world = runtime.world();
//! println!("rank {} of {}", host.comm_rank(world)?, host.comm_size(world)?);
//! # Ok(())
//! # }
//! ```
//!
//! `host` contains the library's constants, its functions and methods for them; `datatype` turns
//! the host's datatypes into layouts and back; `runtime` loads and starts an MPI for programs that
//! are not linked with one.

pub mod host;

mod datatype;
mod error;
mod handles;
mod runtime;
mod transport;

pub use datatype::{DataLayout, DecodeError, EncodeError, Encoded};
pub use error::{HostError, MpiError};
pub use handles::{Comm, Datatype, Errhandler, FileHandle, Group, Info, Message, Op, Request};
pub use host::abi::{Flavour, StatusFields};
pub use host::classes::ErrorClass;
pub use host::{Host, Matched, Threads};
pub use runtime::{LIBRARY_VARIABLE, Runtime, RuntimeError, is_launched};
pub use transport::{
    Callers, InsideCall, Met, Moved, MpiTransport, ProgressRegistration, SIMULATED_NODES, end,
    is_weak, progress_registered,
};
