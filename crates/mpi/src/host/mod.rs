//! The MPI library of this process.

pub mod abi;
pub mod classes;
pub mod constants;
pub mod functions;
pub mod loader;
pub mod named_types;
pub mod symbols;

mod attributes;
mod collective;
pub mod combiner;
mod comm;
mod environment;
mod errors;
mod find;
mod fortran;
mod info;
mod message;
mod own;
mod request;
mod status;
mod types;

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

use abi::{CountFields, Flavour, Slot};
use constants::{Constants, Predefined};
use functions::Functions;
use loader::Library;
use own::Own;

use crate::datatype::Decoded;
use crate::error::{HostError, MpiError};
use crate::handles::Errhandler;

pub use attributes::{Attribute, CopyAttribute, DeleteAttribute};
pub use comm::Comparison;
pub use environment::Threads;
pub use message::{Matched, Probed};
pub use request::{GeneralizedCallbacks, Waited};
pub(crate) use types::SimpleContents;
pub use types::{Contents, Envelope};

/// Calls a function of the table and turns its code into a result.
macro_rules! call {
    ($host:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: the arguments are handles, numbers and memory that is valid for the call as
        // the function's signature in the standard requires.
        let code = unsafe { ($host.functions.$function)($($argument),*) };
        $host.check($crate::host::functions::name::$function, code)
    }};
}
pub(crate) use call;

/// The MPI library of this process, its constants and its functions.
///
/// Methods check nothing that the host checks itself: an invalid handle leads to the host's error,
/// or to whatever the host does without checks. Before a method returns an error, the host calls
/// the error handler of the communicator: see [`comm_return_errors`] for private ones.
///
/// [`comm_return_errors`]: Host::comm_return_errors
#[derive(Debug)]
pub struct Host {
    library: Library,
    flavour: Flavour,
    version: String,
    predefined: Predefined,
    errors_abort: Option<Errhandler>,
    errors_throw: Option<Errhandler>,
    /// The functions themselves, for calls that no method wraps.
    pub functions: Functions,
    decoded: Decoded,
    own: Own,
    /// Where statuses keep their count; `None` if only the host's functions set it.
    count_fields: OnceLock<Option<CountFields>>,
}

static CURRENT: OnceLock<Host> = OnceLock::new();

impl Host {
    /// The MPI that this process has loaded.
    #[inline]
    pub fn current() -> Result<&'static Host, HostError> {
        CURRENT.get().map_or_else(Self::look_for, Ok)
    }

    /// The MPI, if it has been looked for and found.
    #[inline]
    pub fn found() -> Option<&'static Host> {
        CURRENT.get()
    }

    /// Looks for the MPI, for the first time. A failure is not kept: an MPI may be loaded later.
    #[cold]
    fn look_for() -> Result<&'static Host, HostError> {
        let host = Self::of(find::find()?)?;
        Ok(CURRENT.get_or_init(|| host))
    }

    fn of(library: Library) -> Result<Host, HostError> {
        let missing = |names| HostError::Missing {
            path: library.path().to_owned(),
            names,
        };
        let flavour = find::classify(&library)?;
        let functions = Functions::of(&library).map_err(missing)?;
        let predefined = Predefined::of(flavour, &library).map_err(missing)?;
        Ok(Host {
            flavour,
            version: find::version(&library),
            predefined,
            errors_abort: constants::errors_abort(flavour, &library),
            errors_throw: constants::errors_throw(flavour, &library),
            functions,
            library,
            decoded: Decoded::default(),
            own: Own::default(),
            count_fields: OnceLock::new(),
        })
    }

    /// Its binary interface.
    pub fn flavour(&self) -> Flavour {
        self.flavour
    }

    /// The file it was loaded from.
    pub fn path(&self) -> &str {
        self.library.path()
    }

    /// Its version text, often several lines.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Its numeric constants.
    pub fn constants(&self) -> &'static Constants {
        Constants::of(self.flavour)
    }

    /// Its predefined handles.
    pub fn predefined(&self) -> &Predefined {
        &self.predefined
    }

    /// `MPI_ERRORS_ABORT`, if the host has it.
    pub fn errors_abort(&self) -> Option<Errhandler> {
        self.errors_abort
    }

    /// `MPI::ERRORS_THROW_EXCEPTIONS`, if the host may have C++ bindings.
    pub fn errors_throw(&self) -> Option<Errhandler> {
        self.errors_throw
    }

    /// The address of any MPI function of the host, by its name without `MPI_`:
    /// `"File_open"` for instance.
    pub fn function(&self, name: &str) -> Option<*mut c_void> {
        self.library.function(name)
    }

    /// The address of any symbol of the host or of the libraries it depends on.
    pub fn symbol(&self, name: &str) -> Option<*mut c_void> {
        self.library.symbol(name)
    }

    /// The pointer that stands for no status.
    pub fn status_ignore(&self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.constants().status_ignore.cast_unsigned())
    }

    /// As [`status_ignore`](Self::status_ignore) for arrays of statuses.
    pub fn statuses_ignore(&self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.constants().statuses_ignore.cast_unsigned())
    }

    pub(crate) fn decoded(&self) -> &Decoded {
        &self.decoded
    }

    pub(crate) fn own(&self) -> &Own {
        &self.own
    }

    /// Memory for a handle that a function writes.
    fn slot(&self) -> Slot {
        Slot::new(self.flavour, 0)
    }

    /// The result of a call that returned `code`.
    pub fn check(&self, function: &'static str, code: c_int) -> Result<(), MpiError> {
        if code == 0 {
            return Ok(());
        }
        Err(MpiError {
            function,
            code,
            class: self.class_of(code),
            text: self.error_string(code),
        })
    }
}
