//! The end of the MPI: files that the program left open are closed, on each
//! rank alone, before the MPI is gone.
#![allow(unsafe_code)] // a callback of the host's

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use pario_mpi::Host;

use crate::failure::Failure;
use crate::{conversion, files, requests};

/// Sees to it that the host calls when the MPI ends: it deletes the attributes
/// of `MPI_COMM_SELF` first. Programs that only have sessions have no such
/// communicator: their files are closed by the kernel.
pub(crate) fn prepare(host: &'static Host) -> Result<(), Failure> {
    static PREPARED: AtomicBool = AtomicBool::new(false);
    if !host.has_world() || PREPARED.swap(true, Ordering::AcqRel) {
        return Ok(());
    }
    // SAFETY: the function takes any value.
    let key = unsafe { host.comm_create_keyval(None, close_all, std::ptr::null_mut()) }?;
    let own = host.predefined().comm_self;
    host.comm_set_attr(own, key, std::ptr::null_mut())?;
    Ok(())
}

unsafe extern "C" fn close_all(
    _comm: u64,
    _key: c_int,
    _value: *mut c_void,
    _extra: *mut c_void,
) -> c_int {
    // Nothing may unwind into C; what cannot be closed is left to the kernel.
    let _ = std::panic::catch_unwind(|| {
        requests::finish_all_locally();
        drop(files::remove_all());
        if let Ok(host) = Host::current() {
            conversion::free_all(host);
        }
    });
    0
}
