//! `libgpfs.so`, loaded on first use: nothing of it is needed to build.
//!
//! This file may contain `unsafe`: dlopen, and calls of what it finds.
#![allow(unsafe_code)]

use std::{
    ffi::{c_int, c_void},
    io,
    os::fd::{AsRawFd, BorrowedFd},
    sync::OnceLock,
};

/// `int gpfs_fcntl(gpfs_file_t, void *)`: returns 0, or -1 with `errno` set.
type Fcntl = unsafe extern "C" fn(c_int, *mut c_void) -> c_int;

/// Calls `gpfs_fcntl`. Fails with `Unsupported` where the library is not
/// installed.
pub(crate) fn fcntl(file: BorrowedFd<'_>, argument: &mut [u8]) -> io::Result<()> {
    static FCNTL: OnceLock<Option<Fcntl>> = OnceLock::new();
    let Some(fcntl) = FCNTL.get_or_init(load) else {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "libgpfs.so cannot be loaded",
        ));
    };
    // SAFETY: the argument starts with its own length, which the function
    // respects, and outlives the call.
    match unsafe { fcntl(file.as_raw_fd(), argument.as_mut_ptr().cast()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn load() -> Option<Fcntl> {
    // SAFETY: both names are terminated. The library stays loaded.
    let symbol = unsafe {
        let library = libc::dlopen(c"libgpfs.so".as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if library.is_null() {
            return None;
        }
        libc::dlsym(library, c"gpfs_fcntl".as_ptr())
    };
    // SAFETY: a function of this name has this type in every version of the
    // library, and a null pointer becomes `None`.
    unsafe { std::mem::transmute::<*mut c_void, Option<Fcntl>>(symbol) }
}
