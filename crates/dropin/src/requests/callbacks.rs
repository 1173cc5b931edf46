//! The host's part of a request: a generalized request and its callbacks.
#![allow(unsafe_code)] // the host holds a reference as an address

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use pario_mpi::host::GeneralizedCallbacks;
use pario_mpi::{Host, Request};

use super::started::Started;
use super::table;
use crate::call::SUCCESS;
use crate::failure::Failure;

const CALLBACKS: GeneralizedCallbacks = GeneralizedCallbacks {
    query,
    free,
    cancel,
};

/// Starts a generalized request that holds a reference to an operation.
pub(super) fn start(host: &Host, started: &Arc<Started>) -> Result<Request, Failure> {
    let extra = Arc::into_raw(Arc::clone(started));
    // SAFETY: the callbacks take a reference to an operation, which is kept until `free` drops
    // it.
    let handle = unsafe { host.grequest_start(CALLBACKS, extra.cast_mut().cast()) };
    handle.map_err(|error| {
        // SAFETY: the host did not take the reference.
        drop(unsafe { Arc::from_raw(extra) });
        Failure::from(error)
    })
}

/// A generalized request that is complete. Its state is the number of bytes transferred, so
/// nothing else need be kept.
pub(super) fn start_complete(host: &Host, bytes: u64) -> Result<Request, Failure> {
    const CALLBACKS: GeneralizedCallbacks = GeneralizedCallbacks {
        query: query_bytes,
        free: free_nothing,
        cancel,
    };
    let extra = std::ptr::without_provenance_mut(usize::try_from(bytes).unwrap_or(usize::MAX));
    // SAFETY: the callbacks take a number.
    let handle = unsafe { host.grequest_start(CALLBACKS, extra) }?;
    host.grequest_complete(handle)?;
    Ok(handle)
}

/// Writes the status of an operation whose state is the number of bytes transferred.
unsafe extern "C" fn query_bytes(extra: *mut c_void, status: *mut c_void) -> c_int {
    if let Ok(host) = Host::current() {
        // SAFETY: as in `query`.
        let _ = unsafe { host.write_status(status, extra.addr() as u64) };
    }
    SUCCESS
}

unsafe extern "C" fn free_nothing(_extra: *mut c_void) -> c_int {
    SUCCESS
}

/// Writes the status of a completed operation. Never fails: the host would report the error to
/// the handler of a communicator.
unsafe extern "C" fn query(extra: *mut c_void, status: *mut c_void) -> c_int {
    // SAFETY: the host holds the reference until it calls `free`.
    let started = unsafe { &*extra.cast_const().cast::<Started>() };
    if let Ok(host) = Host::current() {
        // SAFETY: the host passes its own status. If it cannot be written, that cannot be
        // reported.
        let _ = unsafe { host.write_status(status, started.bytes()) };
    }
    SUCCESS
}

/// Called when the host frees a request. Another request may get its handle as soon as this
/// returns.
unsafe extern "C" fn free(extra: *mut c_void) -> c_int {
    // SAFETY: the reference that `start` gave away, dropped once.
    let started = unsafe { Arc::from_raw(extra.cast_const().cast::<Started>()) };
    if let Some(handle) = started.handle() {
        table::remove(handle, &started);
    }
    started.set_freed();
    SUCCESS
}

/// Operations cannot be cancelled, which is not an error.
unsafe extern "C" fn cancel(_extra: *mut c_void, _complete: c_int) -> c_int {
    SUCCESS
}
