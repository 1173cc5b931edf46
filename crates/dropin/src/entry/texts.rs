//! The strings of error codes: see [`codes`].
#![allow(unsafe_code)] // C functions

use std::ffi::{c_char, c_int};

use pario_mpi::Host;

use super::next::passing_functions;
use crate::call::SUCCESS;
use crate::codes;

/// Writes a string and its length to the program.
///
/// # Safety
/// The pointers are valid for the host's longest string, and for the length.
unsafe fn put(text: &str, string: *mut c_char, length: *mut c_int) -> Option<c_int> {
    let most = Host::current().ok()?.constants().max_error_string - 1;
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let bytes = &text.as_bytes()[..end];
    // SAFETY: promised by the caller.
    unsafe {
        string
            .cast::<u8>()
            .copy_from_nonoverlapping(bytes.as_ptr(), end);
        string.add(end).write(0);
        length.write(c_int::try_from(end).ok()?);
    }
    Some(SUCCESS)
}

passing_functions! {
    "Error_string" fn error_string(code: c_int, string: *mut c_char, length: *mut c_int)
    unless {
        codes::kept(code).and_then(|text| put(&text, string, length))
    }
}
