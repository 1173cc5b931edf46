//! Reading and writing with explicit offsets, individual and shared pointers: blocking,
//! collective, ordered and nonblocking.
#![allow(unsafe_code)] // C functions

use std::ffi::{c_int, c_void};

use engine::{File, Owned, Request, Source, Status, Target};

use super::{HandlePointer, Offset, Raw, StatusPointer, file_functions};
use crate::call::{self, Outcome};
use crate::datatypes::{self, Items};
use crate::failure::Failure;
use crate::files::OpenFile;
use crate::memory::{self, Buffer};
use crate::{forward, requests};

/// The arguments of a data access function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Data {
    pub(super) buffer: Buffer,
    pub(super) datatype: Raw,
    /// In etypes; zero if the function has no offset.
    pub(super) offset: Offset,
}

impl Data {
    /// The items, or the error in the arguments.
    #[inline]
    pub(super) fn items(&self) -> engine::Result<Items> {
        memory::unsigned(self.offset, "the offset")?;
        datatypes::decode_data(self.datatype)
    }

    pub(super) fn offset(&self) -> u64 {
        // A negative offset comes with failed memory.
        u64::try_from(self.offset).unwrap_or(0)
    }
}

/// Writes the status of a completed call, whatever its result.
#[inline]
pub(super) unsafe fn finish(result: engine::Result<Status>, status: StatusPointer) -> Outcome {
    let host = call::host()?;
    let bytes = match &result {
        Ok(status) => status.bytes(),
        Err(error) => error.transferred(),
    };
    // SAFETY: promised by the program.
    unsafe { memory::put_status(host, status, bytes) }?;
    match result {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::from(error)),
    }
}

#[inline]
unsafe fn read(
    open: &OpenFile,
    data: Data,
    status: StatusPointer,
    access: impl FnOnce(&File, u64, Target<'_>) -> engine::Result<Status>,
) -> Outcome {
    // SAFETY: promised by the program.
    unsafe {
        let target = data.buffer.target(data.items());
        finish(access(&open.file, data.offset(), target), status)
    }
}

#[inline]
unsafe fn write(
    open: &OpenFile,
    data: Data,
    status: StatusPointer,
    access: impl FnOnce(&File, u64, Source<'_>) -> engine::Result<Status>,
) -> Outcome {
    // SAFETY: promised by the program.
    unsafe {
        let source = data.buffer.source(data.items());
        finish(access(&open.file, data.offset(), source), status)
    }
}

unsafe fn start(
    open: &OpenFile,
    data: Data,
    request: HandlePointer,
    access: impl FnOnce(&File, u64, Owned<u8>) -> engine::Result<Request<u8>>,
) -> Outcome {
    let host = call::host()?;
    // SAFETY: promised by the program.
    let owned = unsafe { data.buffer.kept(data.items()) };
    let started = access(&open.file, data.offset(), owned)?;
    let handle = requests::enter(host, open, started)?;
    // SAFETY: promised by the program.
    unsafe { memory::put_handle(host, request, handle.0, "the request") }
}

/// Defines data access functions with `int` and with large counts. `last` is the status or the
/// request.
macro_rules! data_functions {
    ($(
        $name:literal $large:literal $small_mod:ident $large_mod:ident $how:ident
        ($($arg:ident : $type:ty)?) |$file:ident, $at:tt, $memory:ident| $access:expr;
    )*) => {
        file_functions! {$(
            $name fn $small_mod(fh $(, $arg: $type)?, address: *const c_void, count: c_int, datatype: Raw, last: *mut c_void) |open| {
                let offset = 0 $(+ $arg)?;
                let buffer = Buffer { address, count: i64::from(count) };
                let data = Data { buffer, datatype, offset };
                // SAFETY: the program's promises are those of the standard.
                unsafe { $how(open, data, last, |$file, $at, $memory| $access) }
            }
            $large fn $large_mod(fh $(, $arg: $type)?, address: *const c_void, count: i64, datatype: Raw, last: *mut c_void) |open| {
                let offset = 0 $(+ $arg)?;
                let data = Data { buffer: Buffer { address, count }, datatype, offset };
                // SAFETY: the program's promises are those of the standard.
                unsafe { $how(open, data, last, |$file, $at, $memory| $access) }
            } or_else {
                match forward::int_count(count) {
                    // SAFETY: the same function with the other count.
                    Some(count) => unsafe { super::$small_mod::work(fh $(, $arg)?, address, count, datatype, last) },
                    None => forward::refuse(NAME, fh),
                }
            }
        )*}
    };
}

data_functions! {
    "File_read_at" "File_read_at_c" read_at read_at_c read
        (offset: Offset) |file, at, target| file.read_at(at, target);
    "File_write_at" "File_write_at_c" write_at write_at_c write
        (offset: Offset) |file, at, source| file.write_at(at, source);
    "File_read_at_all" "File_read_at_all_c" read_at_all read_at_all_c read
        (offset: Offset) |file, at, target| file.read_at_all(at, target);
    "File_write_at_all" "File_write_at_all_c" write_at_all write_at_all_c write
        (offset: Offset) |file, at, source| file.write_at_all(at, source);
    "File_iread_at" "File_iread_at_c" iread_at iread_at_c start
        (offset: Offset) |file, at, target| file.iread_at(at, target);
    "File_iwrite_at" "File_iwrite_at_c" iwrite_at iwrite_at_c start
        (offset: Offset) |file, at, source| file.iwrite_at(at, source);
    "File_iread_at_all" "File_iread_at_all_c" iread_at_all iread_at_all_c start
        (offset: Offset) |file, at, target| file.iread_at_all(at, target);
    "File_iwrite_at_all" "File_iwrite_at_all_c" iwrite_at_all iwrite_at_all_c start
        (offset: Offset) |file, at, source| file.iwrite_at_all(at, source);

    "File_read" "File_read_c" read_ read_c read
        () |file, _, target| file.read(target);
    "File_write" "File_write_c" write_ write_c write
        () |file, _, source| file.write(source);
    "File_read_all" "File_read_all_c" read_all read_all_c read
        () |file, _, target| file.read_all(target);
    "File_write_all" "File_write_all_c" write_all write_all_c write
        () |file, _, source| file.write_all(source);
    "File_iread" "File_iread_c" iread iread_c start
        () |file, _, target| file.iread(target);
    "File_iwrite" "File_iwrite_c" iwrite iwrite_c start
        () |file, _, source| file.iwrite(source);
    "File_iread_all" "File_iread_all_c" iread_all iread_all_c start
        () |file, _, target| file.iread_all(target);
    "File_iwrite_all" "File_iwrite_all_c" iwrite_all iwrite_all_c start
        () |file, _, source| file.iwrite_all(source);

    "File_read_shared" "File_read_shared_c" read_shared read_shared_c read
        () |file, _, target| file.read_shared(target);
    "File_write_shared" "File_write_shared_c" write_shared write_shared_c write
        () |file, _, source| file.write_shared(source);
    "File_iread_shared" "File_iread_shared_c" iread_shared iread_shared_c start
        () |file, _, target| file.iread_shared(target);
    "File_iwrite_shared" "File_iwrite_shared_c" iwrite_shared iwrite_shared_c start
        () |file, _, source| file.iwrite_shared(source);
    "File_read_ordered" "File_read_ordered_c" read_ordered read_ordered_c read
        () |file, _, target| file.read_ordered(target);
    "File_write_ordered" "File_write_ordered_c" write_ordered write_ordered_c write
        () |file, _, source| file.write_ordered(source);
}
