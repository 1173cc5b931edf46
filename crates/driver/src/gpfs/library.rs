//! GPFS's library, which is loaded at its first use.
//!
//! This file may contain `unsafe`: it calls a function of a library that is loaded at
//! run time.
#![allow(unsafe_code)]

use std::{
    ffi::{CStr, c_int, c_void},
    io,
    os::fd::{AsRawFd, BorrowedFd},
    sync::OnceLock,
};

const NAME: &CStr = c"libgpfs.so";

type Fcntl = unsafe extern "C" fn(c_int, *mut c_void) -> c_int;

/// `gpfs_fcntl`; unsupported if there is no such library.
pub(crate) fn fcntl(file: BorrowedFd<'_>, argument: &mut [u8]) -> io::Result<()> {
    static FCNTL: OnceLock<Option<Fcntl>> = OnceLock::new();
    let Some(fcntl) = FCNTL.get_or_init(load) else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    // SAFETY: the argument starts with its length, which is not exceeded, and outlives
    // the call.
    match unsafe { fcntl(file.as_raw_fd(), argument.as_mut_ptr().cast()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn load() -> Option<Fcntl> {
    // SAFETY: the name is terminated; the library has no initialisers that depend on
    // this program, and is never unloaded.
    let library = unsafe { libc::dlopen(NAME.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        return None;
    }
    // SAFETY: the library is loaded and the name is terminated.
    let function = unsafe { libc::dlsym(library, c"gpfs_fcntl".as_ptr()) };
    // SAFETY: the function of that name has this type, and is not null.
    (!function.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, Fcntl>(function) })
}
