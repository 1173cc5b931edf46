//! The individual and the shared file pointer.
#![allow(unsafe_code)] // C functions

use std::ffi::c_int;

use engine::{ErrorKind, Seek};
use pario_mpi::Host;

use super::{Offset, file_functions};
use crate::{call, memory};

fn whence(host: &Host, whence: c_int) -> engine::Result<Seek> {
    let constants = host.constants();
    match whence {
        it if it == constants.seek_set => Ok(Seek::Set),
        it if it == constants.seek_cur => Ok(Seek::Current),
        it if it == constants.seek_end => Ok(Seek::End),
        other => {
            let message =
                format!("whence is {other}: it must be MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END");
            Err(engine::Error::new(ErrorKind::Argument, message))
        }
    }
}

/// An offset as a C integer.
fn signed(offset: u64) -> Offset {
    Offset::try_from(offset).unwrap_or(Offset::MAX)
}

file_functions! {
    "File_seek" fn seek(fh, offset: Offset, from: c_int) |open| {
        Ok(open.file.seek(offset, whence(call::host()?, from)?)?)
    }

    "File_get_position" fn get_position(fh, offset: *mut Offset) |open| {
        let position = signed(open.file.position()?);
        // SAFETY: the program's pointer is null or valid for an offset.
        unsafe { memory::put(offset, position, "the position") }
    }

    "File_get_byte_offset" fn get_byte_offset(fh, offset: Offset, byte: *mut Offset) |open| {
        let offset = memory::unsigned(offset, "the offset")?;
        let found = signed(open.file.byte_offset(offset)?);
        // SAFETY: the program's pointer is null or valid for an offset.
        unsafe { memory::put(byte, found, "the byte offset") }
    }

    "File_seek_shared" fn seek_shared(fh, offset: Offset, from: c_int) |open| {
        match whence(call::host()?, from) {
            Ok(from) => Ok(open.file.seek_shared(offset, from)?),
            Err(error) => Err(open.file.fail_collectively("seek_shared", error).into()),
        }
    }

    "File_get_position_shared" fn get_position_shared(fh, offset: *mut Offset) |open| {
        let position = signed(open.file.position_shared()?);
        // SAFETY: the program's pointer is null or valid for an offset.
        unsafe { memory::put(offset, position, "the position") }
    }
}
