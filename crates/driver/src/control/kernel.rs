//! The kernel's calls, and that of GPFS's library.
//!
//! This file may contain `unsafe`: libc calls.
#![allow(unsafe_code)]

use std::{
    ffi::CStr,
    io,
    os::fd::{AsRawFd, BorrowedFd},
};

use super::{FileControl, IoctlArgument};
use crate::{gpfs::library, posix::sys};

/// The calls of the kernel.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KernelControl;

impl FileControl for KernelControl {
    fn attribute(&self, file: BorrowedFd<'_>, name: &CStr, limit: usize) -> io::Result<Vec<u8>> {
        sys::attribute(file, name, limit)
    }

    fn set_attribute(&self, file: BorrowedFd<'_>, name: &CStr, value: &[u8]) -> io::Result<()> {
        sys::set_attribute(file, name, value)
    }

    fn ioctl(
        &self,
        file: BorrowedFd<'_>,
        request: u64,
        argument: IoctlArgument<'_>,
    ) -> io::Result<()> {
        match argument {
            IoctlArgument::Value(value) => ioctl(file, request, value),
            IoctlArgument::Structure(structure) => {
                ioctl(file, request, structure.as_mut_ptr() as u64)
            }
            IoctlArgument::Named { name, rest } => {
                let address = (name.as_ptr() as u64).to_ne_bytes();
                let mut structure = [&address[..], rest].concat();
                ioctl(file, request, structure.as_mut_ptr() as u64)
            }
        }
    }

    fn gpfs_fcntl(&self, file: BorrowedFd<'_>, argument: &mut [u8]) -> io::Result<()> {
        library::fcntl(file, argument)
    }
}

fn ioctl(file: BorrowedFd<'_>, request: u64, argument: u64) -> io::Result<()> {
    // SAFETY: the argument is a number, or the address of memory that outlives
    // the call and is as long as the structure that the request reads or writes:
    // each request of this crate is next to the structure that it is used with.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), request as libc::Ioctl, argument) };
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
