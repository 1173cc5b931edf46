//! The end of the MPI: files that the program left open are closed, on each
//! rank alone.
//!
//! Libraries close their files in callbacks of the MPI, which deletes the
//! attributes of `MPI_COMM_SELF` when it ends, the one set last first: HDF5 does.
//! So files stay usable until all of them have run. Pario's own attribute is set
//! right after `MPI_Init`, before any other, so its callback is the last. Where
//! pario was loaded later, it is not, and files are left to the end of
//! `MPI_Finalize`; where that is not seen either, they are closed at once.
#![allow(unsafe_code)] // a callback of the host's

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use pario_mpi::{Host, MpiTransport};

use crate::failure::Failure;
use crate::{conversion, files, requests};

/// Whether the program is inside `MPI_Finalize` as pario exports it.
static FINALIZING: AtomicBool = AtomicBool::new(false);

/// Sees to it that the host calls when the MPI ends. Programs that only have
/// sessions have no communicator for that: their files are closed by the kernel.
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
        // Later, another thread might be in a collective call on that communicator.
        host.prepare_progress()
    };
    set().map_err(|error| {
        PREPARED.store(false, Ordering::Release);
        error.into()
    })
}

/// The program has called `MPI_Finalize`.
pub(crate) fn begin() {
    FINALIZING.store(true, Ordering::Release);
}

/// `MPI_Finalize` returns: no callback of anyone's will use a file any more. The
/// MPI cannot be called from here on.
pub(crate) fn end() {
    pario_mpi::end();
    // Nothing may unwind into C; what cannot be closed is left to the kernel.
    let _ = std::panic::catch_unwind(close_all);
}

/// Closes what the program left open. Ranks that still use a file keep it: a
/// file that is to be deleted loses its name only.
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
            conversion::free_all(host);
            host.end_own();
            MpiTransport::forget_all(host);
        }
    });
    0
}
