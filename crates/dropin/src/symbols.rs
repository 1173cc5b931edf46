//! Symbols of the running program.
#![allow(unsafe_code)] // dlsym

use std::ffi::{CStr, c_void};

/// Whether any library of the program defines a symbol.
pub(crate) fn is_loaded(name: &CStr) -> bool {
    // SAFETY: the name is a C string; nothing is called.
    !unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }.is_null()
}

/// A symbol of the libraries that come after this one.
pub(crate) fn next(name: &CStr) -> Option<*const c_void> {
    // SAFETY: as above.
    let address = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    (!address.is_null()).then_some(address.cast_const())
}
