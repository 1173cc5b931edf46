//! The host's own MPI-IO, for files that pario leaves to it.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

use pario_mpi::host::symbols;
use pario_mpi::{ErrorClass, Host};

use crate::failure::Failure;
use crate::files::FileId;
use crate::{call, policy};

/// A function of the host, looked up when it is first needed.
#[derive(Debug)]
pub(crate) struct HostFunction {
    name: &'static str,
    address: OnceLock<Option<usize>>,
}

impl HostFunction {
    /// The host's function of a name that begins with `MPI_`.
    pub(crate) const fn new(name: &'static str) -> HostFunction {
        HostFunction {
            name,
            address: OnceLock::new(),
        }
    }

    /// Its address, if there is a host and it has such a function. If pario does not know the
    /// MPI, the dynamic linker is asked.
    pub(crate) fn get(&self) -> Option<*const c_void> {
        let look_up = || {
            let address = match Host::current() {
                Ok(host) => host.function(self.name.strip_prefix("MPI_")?)?.cast_const(),
                Err(_) => symbols::next(self.name)?,
            };
            Some(address as usize)
        };
        let address = self.address.get_or_init(look_up);
        address.map(|address| address as *const c_void)
    }
}

/// Whether a handle is `MPI_FILE_NULL`, for which pario has a handler. What hosts do with it
/// differs; some end the program.
pub(crate) fn is_null(id: FileId) -> bool {
    policy::host_for_pario().is_some_and(|host| id.0 == host.predefined().file_null.0)
}

/// The result if the host lacks a function that its file would need.
pub(crate) fn refuse(name: &'static str, id: FileId) -> c_int {
    call::on_no_file(name, || {
        let host = call::host()?;
        if id.0 == host.predefined().file_null.0 {
            let message = "the file handle is MPI_FILE_NULL";
            return Err(Failure::new(ErrorClass::File, message));
        }
        let message = format!("the MPI in {} has no such function", host.path());
        Err(Failure::new(ErrorClass::UnsupportedOperation, message))
    })
}

/// The count of a large-count function for the host's function with `int`, if it fits.
pub(crate) fn int_count(count: i64) -> Option<c_int> {
    c_int::try_from(count).ok()
}
