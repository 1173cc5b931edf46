//! Symbols of the running program.
#![allow(unsafe_code)] // dlsym, dladdr, dl_iterate_phdr

use std::ffi::{CStr, CString, OsStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The address of a symbol of a library.
///
/// # Safety
/// `handle` must be open or a pseudo handle.
pub(super) unsafe fn find(handle: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the caller vouches for the handle; the name is a C string.
    let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

/// The address of a symbol as the program sees it.
pub(super) fn visible(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the pseudo handle is always valid.
    unsafe { find(libc::RTLD_DEFAULT, name) }
}

/// Whether any library of the program defines a symbol.
pub fn is_loaded(name: &CStr) -> bool {
    visible(name).is_some()
}

/// The number of libraries that the program has loaded so far, at its start and later.
pub fn libraries_loaded() -> u64 {
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

/// A symbol of the libraries that come after the one that contains this code, which is
/// `libpario.so` for the drop-in library.
pub fn next(name: &str) -> Option<*const c_void> {
    let name = CString::new(name).ok()?;
    // SAFETY: the pseudo handle is always valid.
    let address = unsafe { find(libc::RTLD_NEXT, &name) };
    address.map(|address| address.cast_const())
}

/// The name of the function at an address, if a library exports it.
pub fn name_of(function: *const c_void) -> Option<String> {
    let found = look_up(function)?;
    if found.dli_sname.is_null() || found.dli_saddr.cast_const() != function {
        return None;
    }
    // SAFETY: the linker's names are C strings.
    let name = unsafe { CStr::from_ptr(found.dli_sname) };
    Some(name.to_string_lossy().into_owned())
}

/// The file that this code was loaded from, whatever its name, as the kernel
/// names it in `/proc/PID/maps`.
pub fn own_file() -> Option<PathBuf> {
    let found = look_up(own_file as *const c_void)?;
    if found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the linker's names are C strings.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    std::fs::canonicalize(OsStr::from_bytes(name.to_bytes())).ok()
}

/// The linker's description of an address.
fn look_up(address: *const c_void) -> Option<libc::Dl_info> {
    // SAFETY: all fields may be zero.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be looked up.
    let known = unsafe { libc::dladdr(address, &mut found) } != 0;
    known.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_in_the_file_that_was_loaded() {
        assert_eq!(own_file(), std::env::current_exe().ok());
    }

    #[test]
    fn symbols_of_later_libraries_are_found_and_named() {
        let address = next("getpid").expect("the C library comes after the program");
        assert_eq!(visible(c"getpid").map(|it| it.cast_const()), Some(address));
        assert!(name_of(address).is_some_and(|name| name.contains("getpid")));
        assert!(is_loaded(c"getpid") && !is_loaded(c"no_such_function"));
        assert_eq!(next("no_such_function"), None);
        assert!(libraries_loaded() > 0);
    }
}
