//! What is kept with a communicator between two files: an attribute of it.
#![allow(unsafe_code)] // an attribute of the host's holds the transport

use std::ffi::{c_int, c_void};
use std::sync::{Arc, OnceLock};

use pario_transport::Result;

use super::MpiTransport;
use super::mpi_point_to_point::host_error;
use crate::{Comm, Host};

/// The key of the attribute.
static KEY: OnceLock<c_int> = OnceLock::new();

/// What the attribute's value points to. Empty until the ranks have met.
type Value = OnceLock<Arc<MpiTransport>>;

/// The attribute of a communicator, which the host keeps until the communicator
/// is freed.
#[derive(Debug)]
pub(super) struct Attachment {
    value: Arc<Value>,
}

impl Attachment {
    /// What an earlier meeting left with the communicator.
    pub(super) fn find(host: &'static Host, comm: Comm) -> Result<Option<Arc<MpiTransport>>> {
        let Some(key) = KEY.get() else {
            return Ok(None);
        };
        let found = host.comm_get_attr(comm, *key).map_err(host_error)?;
        let Some(found) = found else {
            return Ok(None);
        };
        let value: *const Value = found.cast_const().cast();
        // SAFETY: the attribute holds a reference that `into_raw` gave away, and
        // the program does not free the communicator while it opens a file on it.
        Ok(unsafe { &*value }.get().cloned())
    }

    /// An attribute without a value: what may fail is done before the ranks
    /// agree to rely on it.
    pub(super) fn attach(host: &'static Host, comm: Comm) -> Result<Attachment> {
        let key = key(host)?;
        let value = Arc::new(Value::new());
        let given = Arc::into_raw(Arc::clone(&value));
        let set = host.comm_set_attr(comm, key, given.cast_mut().cast());
        if let Err(error) = set {
            // SAFETY: given away just above, and the host did not take it.
            drop(unsafe { Arc::from_raw(given) });
            return Err(host_error(error));
        }
        Ok(Attachment { value })
    }

    /// Keeps a transport for the next meeting.
    pub(super) fn keep(self, transport: Arc<MpiTransport>) {
        // It was made for this meeting, so it is empty.
        let _ = self.value.set(transport);
    }

    /// Takes the attribute off again.
    pub(super) fn remove(self, host: &'static Host, comm: Comm) -> Result<()> {
        let key = key(host)?;
        host.comm_delete_attr(comm, key).map_err(host_error)
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
/// ends.
unsafe extern "C" fn delete(
    _comm: u64,
    _key: c_int,
    value: *mut c_void,
    _extra: *mut c_void,
) -> c_int {
    // SAFETY: the reference that the attribute has held until now.
    drop(unsafe { Arc::from_raw(value.cast_const().cast::<Value>()) });
    0
}
