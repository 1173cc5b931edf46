//! Memory of the program: buffers, strings and places for results.
//!
//! `unsafe` lives here because C programs give addresses and the standard says
//! what is there.
#![allow(unsafe_code)]

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use engine::{ErrorKind, Owned, Source, Target};
use pario_mpi::{ErrorClass, Host};

use crate::entry::{HandlePointer, Raw, StatusPointer};
use crate::failure::Failure;

/// A buffer as a data access function gets it. What is wrong with it becomes
/// refused memory, not an early return: in a collective call the other ranks
/// have to hear of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer {
    pub(crate) address: *const c_void,
    pub(crate) count: i64,
}

impl Buffer {
    fn count(self) -> engine::Result<u64> {
        unsigned_or(self.count, "the count", ErrorKind::Count)
    }

    /// What is to be written.
    ///
    /// # Safety
    /// The program has the data there for the time of the call.
    pub(crate) unsafe fn source<'a>(
        self,
        datatype: engine::Result<pario_layout::Datatype>,
    ) -> Source<'a> {
        let source = self.count().and_then(|count| {
            // SAFETY: promised by the caller.
            unsafe { Source::from_raw(self.address.cast(), count, &datatype?) }
        });
        source.unwrap_or_else(Source::failed)
    }

    /// Where data is to be read to.
    ///
    /// # Safety
    /// The program has room there, which nobody else uses for the time of the
    /// call.
    pub(crate) unsafe fn target<'a>(
        self,
        datatype: engine::Result<pario_layout::Datatype>,
    ) -> Target<'a> {
        let target = self.count().and_then(|count| {
            // SAFETY: promised by the caller.
            unsafe { Target::from_raw(self.address.cast_mut().cast(), count, &datatype?) }
        });
        target.unwrap_or_else(Target::failed)
    }

    /// Memory of an operation that goes on after the call.
    ///
    /// # Safety
    /// As the standard has it, the program leaves the memory alone until it has
    /// waited for the operation.
    pub(crate) unsafe fn kept(self, datatype: engine::Result<pario_layout::Datatype>) -> Owned<u8> {
        let owned = self.count().and_then(|count| {
            // SAFETY: promised by the caller.
            unsafe { Owned::from_raw(self.address.cast_mut().cast(), count, &datatype?) }
        });
        owned.unwrap_or_else(Owned::failed)
    }
}

/// A number of the program's that must not be negative; `what` names it.
pub(crate) fn unsigned(number: i64, what: &str) -> engine::Result<u64> {
    unsigned_or(number, what, ErrorKind::Argument)
}

fn unsigned_or(number: i64, what: &str, kind: ErrorKind) -> engine::Result<u64> {
    u64::try_from(number).map_err(|_| {
        let message = format!("{what} is {number}: it must not be negative");
        engine::Error::new(kind, message)
    })
}

/// The path that a C string names.
///
/// # Safety
/// The string ends with a zero, and lives as long as the path is used.
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
/// `place` is null or points to room for the value.
pub(crate) unsafe fn put<T>(place: *mut T, value: T, what: &str) -> Result<(), Failure> {
    if place.is_null() {
        let message = format!("there is no place for {what}: the address is null");
        return Err(Failure::new(ErrorClass::Arg, message));
    }
    // SAFETY: promised by the caller.
    unsafe { place.write(value) };
    Ok(())
}

/// Writes a handle of the host's to the program.
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
        let message = format!("there is no place for {what}: the address is null");
        return Err(Failure::new(ErrorClass::Arg, message));
    }
    // SAFETY: promised by the caller.
    unsafe { host.flavour().write_handle(place, 0, handle) };
    Ok(())
}

/// Writes how much was transferred.
///
/// # Safety
/// `status` is a status of the host's or one of its `MPI_STATUS_IGNORE`.
pub(crate) unsafe fn put_status(
    host: &Host,
    status: StatusPointer,
    bytes: u64,
) -> Result<(), Failure> {
    // SAFETY: promised by the caller.
    unsafe { host.write_status(status, bytes) }?;
    Ok(())
}

/// Copies text and a final zero to a buffer of the program's.
///
/// # Safety
/// There is room for `room` bytes.
pub(crate) unsafe fn put_text(place: *mut c_char, room: usize, text: &str) {
    let bytes = &text.as_bytes()[..text.len().min(room.saturating_sub(1))];
    // SAFETY: promised by the caller; the zero has room too.
    unsafe {
        place.cast::<u8>().copy_from(bytes.as_ptr(), bytes.len());
        place.add(bytes.len()).write(0);
    }
}
