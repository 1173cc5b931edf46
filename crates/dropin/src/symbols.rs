//! Symbols of the running program.
#![allow(unsafe_code)] // dlsym, dl_iterate_phdr

use std::ffi::{CStr, c_int, c_void};

/// Whether any library of the program defines a symbol.
pub(crate) fn is_loaded(name: &CStr) -> bool {
    // SAFETY: the name is a C string; nothing is called.
    !unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }.is_null()
}

/// The number of libraries that the program has loaded so far, at its start and later.
pub(crate) fn libraries_loaded() -> u64 {
    unsafe extern "C" fn note(
        info: *mut libc::dl_phdr_info,
        _bytes: usize,
        loaded: *mut c_void,
    ) -> c_int {
        // SAFETY: the linker passes one library, and the pointer that was given to it below.
        unsafe { loaded.cast::<u64>().write((*info).dlpi_adds) };
        // One call is enough: the number is the same for all libraries.
        1
    }
    let mut loaded = 0u64;
    // SAFETY: the function gets a pointer to a number that outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut loaded).cast()) };
    loaded
}

/// A symbol of the libraries that come after this one.
pub(crate) fn next(name: &CStr) -> Option<*const c_void> {
    // SAFETY: as above.
    let address = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    (!address.is_null()).then_some(address.cast_const())
}

/// The name of the function at an address, if a library exports it.
pub(crate) fn name_of(function: *const c_void) -> Option<String> {
    // SAFETY: all fields may be zero.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be looked up.
    let known = unsafe { libc::dladdr(function, &mut found) } != 0;
    if !known || found.dli_sname.is_null() || found.dli_saddr.cast_const() != function {
        return None;
    }
    // SAFETY: the linker's names are C strings.
    let name = unsafe { CStr::from_ptr(found.dli_sname) };
    Some(name.to_string_lossy().into_owned())
}
