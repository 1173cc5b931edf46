//! Memory in a file that never has a name.
//!
//! Others open it through the /proc entry of the process that made it. No name
//! means that nothing is left behind whatever happens, and the size limit of
//! /dev/shm (64 MiB in many containers) does not matter.
#![allow(unsafe_code)] // memfd_create has no wrapper in the standard library

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use super::named;

/// Where a file is: process and descriptor, and what tells it from any other
/// file: the process namespace in which that number counts, device and inode.
const LOCATOR_WORDS: usize = 5;

/// A new file of that many zeros, and where to find it.
pub(super) fn create(bytes: usize) -> io::Result<(File, Vec<u8>)> {
    // SAFETY: the name is a constant C string.
    let fd = unsafe { libc::memfd_create(c"pario-segment".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, so this is its only owner.
    let file = unsafe { File::from_raw_fd(fd) };
    named::allocate(&file, bytes)?;
    let metadata = file.metadata()?;
    let words: [u64; LOCATOR_WORDS] = [
        process_namespace()?,
        u64::from(std::process::id()),
        u64::from(file.as_raw_fd().unsigned_abs()),
        metadata.dev(),
        metadata.ino(),
    ];
    let locator = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    Ok((file, locator))
}

/// Opens the file that a locator describes. Nothing else is opened: opening a
/// device or a pipe can have effects.
pub(super) fn open(locator: &[u8]) -> io::Result<File> {
    let (words, []) = locator.as_chunks::<8>() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let words = words.collect::<Vec<_>>();
    let [namespace, process, fd, device, inode] = words[..] else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    if namespace != process_namespace()? {
        return Err(io::ErrorKind::NotFound.into());
    }
    let path = format!("/proc/{process}/fd/{fd}");
    let metadata = fs::metadata(&path)?;
    if (metadata.dev(), metadata.ino()) != (device, inode) {
        return Err(io::ErrorKind::NotFound.into());
    }
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_CLOEXEC)
        .open(path)
}

fn process_namespace() -> io::Result<u64> {
    fs::metadata("/proc/self/ns/pid").map(|metadata| metadata.ino())
}
