//! Split collective calls.
#![allow(unsafe_code)] // C functions

use std::ffi::{c_int, c_void};
use std::sync::PoisonError;

use engine::{ErrorKind, File, Owned, Split};

use super::data::{Data, finish};
use super::{Offset, Raw, StatusPointer, file_functions};
use crate::call::Outcome;
use crate::files::OpenFile;
use crate::forward;
use crate::memory::Buffer;
use crate::requests::ActiveSplit;

/// Begins a call of the given kind.
unsafe fn begin(
    open: &OpenFile,
    kind: &'static str,
    data: Data,
    access: impl FnOnce(&File, u64, Owned<u8>) -> engine::Result<Split<u8>>,
) -> Outcome {
    // SAFETY: promised by the program.
    let owned = unsafe { data.buffer.kept(data.items()) };
    let split = access(&open.file, data.offset(), owned)?;
    let mut active = open.split.lock().unwrap_or_else(PoisonError::into_inner);
    *active = Some(ActiveSplit {
        kind,
        buffer: data.buffer.address as usize,
        split,
        registration: open.transport.progress_in_background(),
    });
    Ok(())
}

/// Ends the active call, which must be of this kind and with this buffer.
unsafe fn end(
    open: &OpenFile,
    kind: &'static str,
    buffer: *const c_void,
    status: StatusPointer,
) -> Outcome {
    let active = matching(open, kind, buffer as usize)?;
    active.wait(&open.transport);
    let result = active.split.end().map(|(status, _)| status);
    // SAFETY: promised by the program.
    unsafe { finish(result, status) }
}

/// Takes the active call, which must be of this kind and with this buffer.
fn matching(open: &OpenFile, kind: &str, buffer: usize) -> engine::Result<ActiveSplit> {
    let mut place = open.split.lock().unwrap_or_else(PoisonError::into_inner);
    let matches = |active: &mut ActiveSplit| active.kind == kind && active.buffer == buffer;
    let taken = place.take_if(matches);
    taken.ok_or_else(|| {
        let message = match &*place {
            None => format!("no {kind}_begin is active on the file"),
            Some(active) if active.kind != kind => {
                format!(
                    "{}_begin is active on the file, not {kind}_begin",
                    active.kind
                )
            }
            Some(_) => format!("the buffer is not the one passed to {kind}_begin"),
        };
        engine::Error::new(ErrorKind::Argument, message)
    })
}

/// Defines the functions that begin a call, with both kinds of count, and the
/// one that ends it.
macro_rules! split_functions {
    ($(
        $kind:literal $begin:literal $begin_c:literal $end:literal $begin_mod:ident $begin_c_mod:ident $end_mod:ident
        ($($arg:ident : $type:ty)?) |$file:ident, $at:tt, $memory:ident| $access:expr;
    )*) => {
        file_functions! {$(
            $begin fn $begin_mod(fh $(, $arg: $type)?, address: *const c_void, count: c_int, datatype: Raw) |open| {
                let offset = 0 $(+ $arg)?;
                let buffer = Buffer { address, count: i64::from(count) };
                // SAFETY: the program's promises are those of the standard.
                unsafe { begin(open, $kind, Data { buffer, datatype, offset }, |$file, $at, $memory| $access) }
            }
            $begin_c fn $begin_c_mod(fh $(, $arg: $type)?, address: *const c_void, count: i64, datatype: Raw) |open| {
                let offset = 0 $(+ $arg)?;
                let buffer = Buffer { address, count };
                // SAFETY: the program's promises are those of the standard.
                unsafe { begin(open, $kind, Data { buffer, datatype, offset }, |$file, $at, $memory| $access) }
            } or_else {
                match forward::int_count(count) {
                    // SAFETY: the same function with the other count.
                    Some(count) => unsafe { super::$begin_mod::work(fh $(, $arg)?, address, count, datatype) },
                    None => forward::refuse(NAME, fh),
                }
            }
            $end fn $end_mod(fh, buffer: *const c_void, status: StatusPointer) |open| {
                // SAFETY: the program's promises are those of the standard.
                unsafe { end(open, $kind, buffer, status) }
            }
        )*}
    };
}

split_functions! {
    "read_at_all" "File_read_at_all_begin" "File_read_at_all_begin_c" "File_read_at_all_end"
        read_at_all_begin read_at_all_begin_c read_at_all_end
        (offset: Offset) |file, at, target| file.read_at_all_begin(at, target);
    "write_at_all" "File_write_at_all_begin" "File_write_at_all_begin_c" "File_write_at_all_end"
        write_at_all_begin write_at_all_begin_c write_at_all_end
        (offset: Offset) |file, at, source| file.write_at_all_begin(at, source);
    "read_all" "File_read_all_begin" "File_read_all_begin_c" "File_read_all_end"
        read_all_begin read_all_begin_c read_all_end
        () |file, _, target| file.read_all_begin(target);
    "write_all" "File_write_all_begin" "File_write_all_begin_c" "File_write_all_end"
        write_all_begin write_all_begin_c write_all_end
        () |file, _, source| file.write_all_begin(source);
    "read_ordered" "File_read_ordered_begin" "File_read_ordered_begin_c" "File_read_ordered_end"
        read_ordered_begin read_ordered_begin_c read_ordered_end
        () |file, _, target| file.read_ordered_begin(target);
    "write_ordered" "File_write_ordered_begin" "File_write_ordered_begin_c" "File_write_ordered_end"
        write_ordered_begin write_ordered_begin_c write_ordered_end
        () |file, _, source| file.write_ordered_begin(source);
}
