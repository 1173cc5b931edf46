//! Statuses.

#![allow(unsafe_code)] // Writes to statuses of C callers.

use std::ffi::{c_int, c_void};

use super::abi::{CountFields, STATUS_BYTES_MAX};
use super::{Host, call};
use crate::error::MpiError;

const STATUS_INTS: usize = STATUS_BYTES_MAX / size_of::<c_int>();

/// A status of any host. Some hold 64-bit counts.
#[repr(C, align(8))]
#[derive(Debug)]
pub(super) struct Status([c_int; STATUS_INTS]);

impl Status {
    pub(super) fn new() -> Self {
        Self([0; STATUS_INTS])
    }

    pub(super) fn pointer(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }

    /// The integer at an offset in bytes.
    pub(super) fn field(&self, offset: usize) -> c_int {
        self.0[offset / size_of::<c_int>()]
    }
}

/// The largest count that is written without the host. Beyond it, hosts split counts.
const COUNT_MAX: u64 = c_int::MAX as u64;

impl CountFields {
    /// Sets the count of a status that was not cancelled.
    ///
    /// # Safety
    /// `status` must be a writable status that has these fields.
    unsafe fn write(self, status: *mut c_void, bytes: u64) {
        // SAFETY: the caller vouches for the status. It may be aligned like a C integer.
        unsafe {
            if let Some(cancelled) = self.cancelled {
                status.byte_add(cancelled).cast::<c_int>().write(0);
            }
            let count = status.byte_add(self.bytes).cast::<u64>();
            count.write_unaligned(bytes);
        }
    }
}

impl Host {
    /// Whether a pointer stands for no status.
    pub fn is_status_ignored(&self, status: *const c_void) -> bool {
        status.is_null() || status == self.status_ignore().cast_const()
    }

    /// Records that `bytes` were transferred, not cancelled, from no particular source. The
    /// field `MPI_ERROR` is kept: only calls that complete several requests may set it. Does
    /// nothing if the pointer stands for no status.
    ///
    /// # Safety
    /// `status` must be a writable status of the host, or stand for none.
    pub unsafe fn write_status(&self, status: *mut c_void, bytes: u64) -> Result<(), MpiError> {
        if self.is_status_ignored(status) {
            return Ok(());
        }
        let (fields, undefined) = (self.flavour().status(), self.constants().undefined);
        // SAFETY: the fields lie in the status, which the caller vouches for.
        unsafe {
            status
                .byte_add(fields.source)
                .cast::<c_int>()
                .write(undefined);
            status.byte_add(fields.tag).cast::<c_int>().write(undefined);
        }
        match self.known_count_fields() {
            Some(count) if bytes <= COUNT_MAX => {
                // SAFETY: as above.
                unsafe { count.write(status, bytes) };
                Ok(())
            }
            // SAFETY: promised by the caller.
            _ => unsafe { self.set_count(status, bytes) },
        }
    }

    /// Sets the count by the host's functions.
    ///
    /// # Safety
    /// `status` must be a writable status of the host.
    unsafe fn set_count(&self, status: *mut c_void, bytes: u64) -> Result<(), MpiError> {
        let (byte, bytes) = (self.predefined().byte, bytes.cast_signed());
        // Some hosts keep the cancellation flag in a bit of the count: clear it first.
        call!(self, status_set_cancelled(status, 0))?;
        call!(self, status_set_elements_x(status, byte.0, bytes))
    }

    /// Where statuses keep their count, if this host does it as its flavour is known to. The
    /// host's functions take as long as the rest of a short call.
    fn known_count_fields(&self) -> Option<CountFields> {
        *self.count_fields.get_or_init(|| {
            let fields = self.flavour().status().count?;
            let counts = [0, 1, 0x1234_5678, COUNT_MAX];
            let agree = counts.into_iter().all(|bytes| {
                [0, -1].into_iter().all(|before| {
                    let (mut theirs, mut ours) =
                        (Status([before; STATUS_INTS]), Status([before; STATUS_INTS]));
                    // SAFETY: both are as large as the largest status.
                    let set = unsafe {
                        fields.write(ours.pointer(), bytes);
                        self.set_count(theirs.pointer(), bytes)
                    };
                    set.is_ok() && theirs.0 == ours.0
                })
            });
            agree.then_some(fields)
        })
    }

    /// Sets the field `MPI_ERROR`; does nothing if the pointer stands for no status.
    ///
    /// # Safety
    /// `status` must be a writable status of the host, or stand for none.
    pub unsafe fn write_status_error(&self, status: *mut c_void, code: c_int) {
        if self.is_status_ignored(status) {
            return;
        }
        let offset = self.flavour().status().error;
        // SAFETY: the field lies in the status, which the caller vouches for.
        unsafe { status.byte_add(offset).cast::<c_int>().write(code) };
    }

    /// Element `index` of an array of statuses; a pointer that stands for none is returned
    /// unchanged.
    ///
    /// # Safety
    /// `statuses` must point to more than `index` statuses of the host, or stand for none.
    pub unsafe fn status_at(&self, statuses: *mut c_void, index: usize) -> *mut c_void {
        if statuses.is_null() || statuses == self.statuses_ignore() {
            return self.status_ignore();
        }
        // SAFETY: the caller vouches for the array.
        unsafe { statuses.byte_add(index * self.flavour().status().size) }
    }
}
