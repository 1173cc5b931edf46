//! Calls by which programs ask file systems for properties of their own:
//! extended attributes, `ioctl` and `gpfs_fcntl`. Tests replace them by doubles that answer
//! as a file system would that is not at hand.

mod kernel;

pub(crate) use kernel::KernelControl;

use std::{ffi::CStr, fmt::Debug, io, os::fd::BorrowedFd, sync::Arc};

/// The argument of an `ioctl`.
#[derive(Debug)]
pub enum IoctlArgument<'a> {
    /// A number.
    Value(u64),
    /// A structure that the call reads or writes.
    Structure(&'a mut [u8]),
    /// A structure that starts with a pointer to a name.
    Named {
        /// The name.
        name: &'a CStr,
        /// What follows the pointer.
        rest: &'a [u8],
    },
}

/// Calls that only some file systems understand, made by the kernel unless a
/// test passes a double.
pub trait FileControl: Send + Sync + Debug {
    /// The value of an extended attribute, up to `limit` bytes.
    fn attribute(&self, file: BorrowedFd<'_>, name: &CStr, limit: usize) -> io::Result<Vec<u8>>;

    /// Sets an extended attribute. Not every file system has any that can be set.
    fn set_attribute(&self, _file: BorrowedFd<'_>, _name: &CStr, _value: &[u8]) -> io::Result<()> {
        Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP))
    }

    /// `ioctl`.
    fn ioctl(
        &self,
        file: BorrowedFd<'_>,
        request: u64,
        argument: IoctlArgument<'_>,
    ) -> io::Result<()>;

    /// `gpfs_fcntl` of GPFS's library. By default there is none.
    fn gpfs_fcntl(&self, file: BorrowedFd<'_>, argument: &mut [u8]) -> io::Result<()> {
        let _ = (file, argument);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Who makes the calls.
pub(crate) type Control = Arc<dyn FileControl>;

/// The request number of an `ioctl` that passes a structure of `bytes` bytes to
/// the kernel (`_IOW`).
pub(crate) const fn write_request(group: u8, number: u8, bytes: u64) -> u64 {
    request(1, group, number, bytes)
}

/// The same for one that the kernel fills in (`_IOR`).
pub(crate) const fn read_request(group: u8, number: u8, bytes: u64) -> u64 {
    request(2, group, number, bytes)
}

const fn request(direction: u64, group: u8, number: u8, bytes: u64) -> u64 {
    direction << 30 | bytes << 16 | (group as u64) << 8 | number as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_numbers() {
        // Lustre's LL_IOC_LOV_SETSTRIPE and the kernel's FIGETBSZ-like reads.
        assert_eq!(write_request(b'f', 154, 8), 0x4008_669a);
        assert_eq!(read_request(b'f', 1, 8), 0x8008_6601);
    }
}
