//! Memory of the program: buffers, strings and addresses of results.
//!
//! `unsafe` is needed because C programs pass addresses, and the standard defines what they
//! point to.
#![allow(unsafe_code)]

use std::borrow::Cow;
use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use engine::{ErrorKind, Owned, Source, Target};
use pario_mpi::{ErrorClass, Host};

use crate::datatypes::Items;
use crate::entry::{HandlePointer, Raw, StatusPointer};
use crate::failure::Failure;

/// The buffer of a data access function. If it is invalid, it becomes failed memory instead of
/// an early return, because in a collective call the other ranks must learn of the error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer {
    pub(crate) address: *const c_void,
    pub(crate) count: i64,
}

impl Buffer {
    /// How many items of which datatype there are.
    #[inline]
    fn count_of(
        self,
        items: engine::Result<Items>,
    ) -> engine::Result<(u64, Cow<'static, pario_layout::Datatype>)> {
        let count = unsigned_or(self.count, "the count", ErrorKind::Count)?;
        let Items { datatype, factor } = items?;
        match count.checked_mul(factor) {
            Some(count) => Ok((count, datatype)),
            None => Err(too_many(count, factor)),
        }
    }

    /// The data of a write.
    ///
    /// # Safety
    /// The data is valid for reads during the call.
    #[inline]
    pub(crate) unsafe fn source<'a>(self, items: engine::Result<Items>) -> Source<'a> {
        let source = self.count_of(items).and_then(|(count, datatype)| {
            // SAFETY: promised by the caller.
            unsafe { Source::from_raw(self.address.cast(), count, datatype) }
        });
        source.unwrap_or_else(Source::failed)
    }

    /// The memory that a read fills.
    ///
    /// # Safety
    /// The memory is valid for writes during the call, and nothing else accesses it.
    #[inline]
    pub(crate) unsafe fn target<'a>(self, items: engine::Result<Items>) -> Target<'a> {
        let target = self.count_of(items).and_then(|(count, datatype)| {
            // SAFETY: promised by the caller.
            unsafe { Target::from_raw(self.address.cast_mut().cast(), count, datatype) }
        });
        target.unwrap_or_else(Target::failed)
    }

    /// The memory of an operation that continues after the call.
    ///
    /// # Safety
    /// As the standard requires, the program does not access the memory until it has waited for
    /// the operation.
    pub(crate) unsafe fn kept(self, items: engine::Result<Items>) -> Owned<u8> {
        let owned = self.count_of(items).and_then(|(count, datatype)| {
            // SAFETY: promised by the caller.
            unsafe { Owned::from_raw(self.address.cast_mut().cast(), count, &datatype) }
        });
        owned.unwrap_or_else(Owned::failed)
    }
}

/// A number from the program that must not be negative; `what` names it.
#[inline]
pub(crate) fn unsigned(number: i64, what: &str) -> engine::Result<u64> {
    unsigned_or(number, what, ErrorKind::Argument)
}

#[inline]
fn unsigned_or(number: i64, what: &str, kind: ErrorKind) -> engine::Result<u64> {
    u64::try_from(number).map_err(|_| negative(number, what, kind))
}

#[cold]
fn too_many(count: u64, bytes: u64) -> engine::Error {
    let message = format!("{count} items of {bytes} bytes are more than 2^63 - 1 bytes");
    engine::Error::new(ErrorKind::Argument, message)
}

#[cold]
fn negative(number: i64, what: &str, kind: ErrorKind) -> engine::Error {
    let message = format!("{what} is {number}: it must not be negative");
    engine::Error::new(kind, message)
}

/// The path that a C string names.
///
/// # Safety
/// The string is NUL-terminated and lives as long as the path is used.
pub(crate) unsafe fn path<'a>(name: *const c_char) -> Result<&'a Path, Failure> {
    if name.is_null() {
        return Err(Failure::new(ErrorClass::BadFile, "the file has no name"));
    }
    // SAFETY: promised by the caller.
    let name = unsafe { CStr::from_ptr(name) };
    match name.to_bytes() {
        [] => Err(Failure::new(
            ErrorClass::BadFile,
            "the file's name is empty",
        )),
        bytes => Ok(Path::new(OsStr::from_bytes(bytes))),
    }
}

/// The text of a C string; `what` names it in errors.
///
/// # Safety
/// As for [`path`].
pub(crate) unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str, Failure> {
    let wrong = |why: &str| Failure::new(ErrorClass::Arg, format!("{what} {why}"));
    if text.is_null() {
        return Err(wrong("is missing"));
    }
    // SAFETY: promised by the caller.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| wrong("is not UTF-8 text"))
}

/// Writes a result to the program.
///
/// # Safety
/// `place` is null or valid for the value.
pub(crate) unsafe fn put<T>(place: *mut T, value: T, what: &str) -> Result<(), Failure> {
    if place.is_null() {
        let message = format!("the address for {what} is null");
        return Err(Failure::new(ErrorClass::Arg, message));
    }
    // SAFETY: promised by the caller.
    unsafe { place.write(value) };
    Ok(())
}

/// Writes a handle of the host to the program.
///
/// # Safety
/// As for [`put`].
pub(crate) unsafe fn put_handle(
    host: &Host,
    place: HandlePointer,
    handle: Raw,
    what: &str,
) -> Result<(), Failure> {
    if place.is_null() {
        let message = format!("the address for {what} is null");
        return Err(Failure::new(ErrorClass::Arg, message));
    }
    // SAFETY: promised by the caller.
    unsafe { host.flavour().write_handle(place, 0, handle) };
    Ok(())
}

/// Writes the amount transferred to a status.
///
/// # Safety
/// `status` is a status of the host, or its `MPI_STATUS_IGNORE`.
#[inline]
pub(crate) unsafe fn put_status(
    host: &Host,
    status: StatusPointer,
    bytes: u64,
) -> Result<(), Failure> {
    // SAFETY: promised by the caller.
    unsafe { host.write_status(status, bytes) }?;
    Ok(())
}

/// Copies text and a final NUL to a buffer of the program.
///
/// # Safety
/// The buffer has `capacity` bytes.
pub(crate) unsafe fn put_text(place: *mut c_char, capacity: usize, text: &str) {
    let bytes = &text.as_bytes()[..text.len().min(capacity.saturating_sub(1))];
    // SAFETY: promised by the caller; the NUL fits too.
    unsafe {
        place.cast::<u8>().copy_from(bytes.as_ptr(), bytes.len());
        place.add(bytes.len()).write(0);
    }
}
