//! The transport of a communicator, kept with it: finding each other takes
//! long, opening a file should not.
#![allow(unsafe_code)] // an attribute of the host's holds the transport

use std::ffi::{c_int, c_void};
use std::sync::{Arc, OnceLock};

use pario_transport::Result;

use super::MpiTransport;
use super::mpi_wire::host_error;
use crate::{Comm, Host};

/// The key of the attribute.
static KEY: OnceLock<c_int> = OnceLock::new();

impl MpiTransport {
    /// The transport of an intracommunicator, made when it is first asked for.
    /// Collective.
    pub fn of(host: &'static Host, comm: Comm) -> Result<Arc<MpiTransport>> {
        let key = key(host)?;
        if let Some(found) = host.comm_get_attr(comm, key).map_err(host_error)? {
            let kept: *const MpiTransport = found.cast_const().cast();
            // SAFETY: the attribute holds a reference that `into_raw` gave
            // away, and keeps it; this takes another one.
            return Ok(unsafe {
                Arc::increment_strong_count(kept);
                Arc::from_raw(kept)
            });
        }
        let transport = Arc::new(MpiTransport::new(host, comm)?);
        let kept = Arc::into_raw(Arc::clone(&transport));
        let set = host.comm_set_attr(comm, key, kept.cast_mut().cast());
        if let Err(error) = set {
            // SAFETY: given away just above, and no one else has it.
            drop(unsafe { Arc::from_raw(kept) });
            return Err(host_error(error));
        }
        Ok(transport)
    }
}

fn key(host: &'static Host) -> Result<c_int> {
    if let Some(key) = KEY.get() {
        return Ok(*key);
    }
    // SAFETY: the function drops what the attribute holds, once.
    let key = unsafe { host.comm_create_keyval(None, delete, std::ptr::null_mut()) };
    let key = key.map_err(host_error)?;
    // Another thread may have been first; its key counts.
    Ok(*KEY.get_or_init(|| key))
}

/// Called by the host when a communicator is freed, at the latest when the MPI
/// ends. The private duplicate goes with the last file that uses it.
unsafe extern "C" fn delete(
    _comm: u64,
    _key: c_int,
    kept: *mut c_void,
    _extra: *mut c_void,
) -> c_int {
    // SAFETY: the reference that the attribute has held until now.
    drop(unsafe { Arc::from_raw(kept.cast_const().cast::<MpiTransport>()) });
    0
}
