//! The end of the MPI: files that the program left open are closed, by each rank on its own.
//!
//! Some libraries, such as HDF5, close their files in callbacks of the MPI, which deletes the
//! attributes of `MPI_COMM_SELF` when it ends, in reverse order. So files must stay usable
//! until all callbacks have run. pario sets its own attribute right after `MPI_Init`, before
//! any other, so that its callback is the last. If pario was loaded later, it is not, and files
//! are closed at the end of `MPI_Finalize`; if that is not intercepted either, they are closed
//! in the callback.
#![allow(unsafe_code)] // a callback of the host's

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use pario_mpi::{Host, InsideCall, MpiTransport};

use crate::failure::Failure;
use crate::{conversion, files, requests};

/// Whether the program is inside pario's `MPI_Finalize`.
static FINALIZING: AtomicBool = AtomicBool::new(false);

/// Makes the host call back when the MPI ends. Programs that use only sessions have no
/// communicator for that: the kernel closes their files.
pub(crate) fn prepare(host: &'static Host) -> Result<(), Failure> {
    static PREPARED: AtomicBool = AtomicBool::new(false);
    if PREPARED.load(Ordering::Acquire) || !host.has_world() {
        return Ok(());
    }
    if PREPARED.swap(true, Ordering::AcqRel) {
        return Ok(());
    }
    let set = || {
        // SAFETY: the function takes any value.
        let key = unsafe { host.comm_create_keyval(None, at_end, std::ptr::null_mut()) }?;
        let own = host.predefined().comm_self;
        host.comm_set_attr(own, key, std::ptr::null_mut())?;
        // Done now, because later another thread might be in a collective call on that
        // communicator.
        host.prepare_progress()
    };
    set().map_err(|error| {
        PREPARED.store(false, Ordering::Release);
        error.into()
    })
}

/// Called when the program has called `MPI_Finalize`.
pub(crate) fn begin() {
    FINALIZING.store(true, Ordering::Release);
}

/// Called when `MPI_Finalize` returns: no callback will use a file any more, and the MPI must
/// not be called from here on.
pub(crate) fn end() {
    pario_mpi::end();
    // Nothing may unwind into C; files that cannot be closed are left to the kernel.
    let _ = std::panic::catch_unwind(close_all);
}

/// Closes files that the program left open. Other ranks can still use theirs: a file that is to
/// be deleted only loses its name.
fn close_all() {
    for open in files::remove_all() {
        open.file.close_alone();
    }
}

unsafe extern "C" fn at_end(
    _comm: u64,
    _key: c_int,
    _value: *mut c_void,
    _extra: *mut c_void,
) -> c_int {
    let _ = std::panic::catch_unwind(|| {
        requests::finish_all_locally();
        if !FINALIZING.load(Ordering::Acquire) {
            close_all();
        }
        if let Ok(host) = Host::current() {
            let _inside = InsideCall::enter();
            conversion::free_all(host);
            host.end_own();
            MpiTransport::forget_all(host);
        }
    });
    0
}
