//! Sizes, times, attributes and other metadata of files, and what the kernel reports about their
//! file systems.
//!
//! This file may contain `unsafe`: libc calls.
#![allow(unsafe_code)]

use std::{
    ffi::CStr,
    io,
    mem::MaybeUninit,
    os::fd::{AsRawFd, BorrowedFd},
    path::Path,
};

use libc::c_int;

use super::{checked, counted, repeated, terminated};

fn status(fd: BorrowedFd<'_>) -> io::Result<libc::stat64> {
    let mut status = MaybeUninit::uninit();
    // SAFETY: the target is large enough.
    repeated(|| unsafe { libc::fstat64(fd.as_raw_fd(), status.as_mut_ptr()) })?;
    // SAFETY: initialised by the successful call.
    Ok(unsafe { status.assume_init() })
}

/// Size in bytes.
pub(crate) fn size(fd: BorrowedFd<'_>) -> io::Result<u64> {
    Ok(u64::try_from(status(fd)?.st_size).unwrap_or(0))
}

/// Size in bytes, as this node knows it.
pub(crate) fn known_size(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let found = extended_status(fd, libc::STATX_SIZE, libc::AT_STATX_DONT_SYNC)?;
    Ok(found.stx_size)
}

/// Size in bytes, as the server knows it.
pub(crate) fn fresh_size(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let found = extended_status(fd, libc::STATX_SIZE, libc::AT_STATX_FORCE_SYNC)?;
    Ok(found.stx_size)
}

/// Preferred transfer size in bytes.
pub(crate) fn block_size(fd: BorrowedFd<'_>) -> io::Result<u64> {
    Ok(u64::try_from(status(fd)?.st_blksize).unwrap_or(0))
}

/// Whether the file is a directory.
pub(crate) fn is_directory(fd: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(status(fd)?.st_mode & libc::S_IFMT == libc::S_IFDIR)
}

/// Magic number of the file system, for which many file systems ask a server.
pub(crate) fn magic(fd: BorrowedFd<'_>) -> io::Result<u32> {
    let mut status = MaybeUninit::<libc::statfs64>::uninit();
    // SAFETY: the target is large enough.
    repeated(|| unsafe { libc::fstatfs64(fd.as_raw_fd(), status.as_mut_ptr()) })?;
    // SAFETY: initialised by the successful call.
    let status = unsafe { status.assume_init() };
    // Magic numbers have 32 bits, in a field whose width and sign depend on the
    // architecture.
    Ok(status.f_type as u32)
}

/// Whether the kernel has an exceptional event to report. It does so once.
pub(crate) fn has_exception(fd: BorrowedFd<'_>) -> io::Result<bool> {
    let mut polled = libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLPRI,
        revents: 0,
    };
    // SAFETY: one entry, which the call fills in.
    repeated(|| unsafe { libc::poll(&raw mut polled, 1, 0) })?;
    Ok(polled.revents != 0)
}

/// Fields of `statx` about a file system; zero where the kernel does not report
/// them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extended {
    /// Preferred transfer size in bytes.
    pub(crate) block_size: u64,
    /// Mount number in the mount table.
    pub(crate) mount: u64,
    /// Device number of the file system, as in `stat`.
    pub(crate) device: u64,
    /// Memory alignment for direct transfers.
    pub(crate) direct_memory: u32,
    /// Offset and length alignment for direct transfers.
    pub(crate) direct_offset: u32,
}

/// Calls `statx` for an open file; `sync` says whether a remote server has to be queried.
fn extended_status(fd: BorrowedFd<'_>, mask: u32, sync: c_int) -> io::Result<libc::statx> {
    status_at(fd.as_raw_fd(), c"", libc::AT_EMPTY_PATH | sync, mask)
}

fn status_at(directory: c_int, name: &CStr, flags: c_int, mask: u32) -> io::Result<libc::statx> {
    let mut status = MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: the name is terminated, and the target is large enough.
    repeated(|| unsafe {
        libc::statx(directory, name.as_ptr(), flags, mask, status.as_mut_ptr())
    })?;
    // SAFETY: plain integers, zeroed and then filled in.
    Ok(unsafe { status.assume_init() })
}

const FILE_SYSTEM_FIELDS: u32 = libc::STATX_MNT_ID | libc::STATX_DIOALIGN;

impl From<libc::statx> for Extended {
    fn from(status: libc::statx) -> Extended {
        let reported = |bit: u32, value| if status.stx_mask & bit != 0 { value } else { 0 };
        Extended {
            block_size: u64::from(status.stx_blksize),
            mount: if status.stx_mask & libc::STATX_MNT_ID != 0 {
                status.stx_mnt_id
            } else {
                0
            },
            device: libc::makedev(status.stx_dev_major, status.stx_dev_minor),
            direct_memory: reported(libc::STATX_DIOALIGN, status.stx_dio_mem_align),
            direct_offset: reported(libc::STATX_DIOALIGN, status.stx_dio_offset_align),
        }
    }
}

/// Queries what `statx` knows about a file system, without asking a server. An old preferred size
/// does no harm.
pub(crate) fn extended(fd: BorrowedFd<'_>) -> io::Result<Extended> {
    extended_status(fd, FILE_SYSTEM_FIELDS, libc::AT_STATX_DONT_SYNC).map(Extended::from)
}

/// As [`extended`], for a name; `flags` are those of `statx`.
pub(crate) fn extended_of_name(name: &Path, flags: c_int) -> io::Result<Extended> {
    let (name, flags) = (terminated(name)?, flags | libc::AT_STATX_DONT_SYNC);
    status_at(libc::AT_FDCWD, &name, flags, FILE_SYSTEM_FIELDS).map(Extended::from)
}

/// What identifies a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    /// Device number of the file system, as in `stat`.
    pub(crate) device: u64,
    pub(crate) inode: u64,
    /// Creation time in nanoseconds; 0 if the file system does not report it.
    pub(crate) born: i64,
}

/// Queries what identifies a file.
pub(crate) fn identity(fd: BorrowedFd<'_>) -> io::Result<Identity> {
    let mask = libc::STATX_INO | libc::STATX_BTIME;
    let found = match extended_status(fd, mask, libc::AT_STATX_SYNC_AS_STAT) {
        Ok(found) if found.stx_mask & libc::STATX_INO != 0 => found,
        // Kernels before 4.11, and libraries that keep descriptors of their own.
        _ => {
            let status = status(fd)?;
            return Ok(Identity {
                device: status.st_dev,
                inode: status.st_ino,
                born: 0,
            });
        }
    };
    let nanoseconds = |time: libc::statx_timestamp| {
        time.tv_sec
            .wrapping_mul(1_000_000_000)
            .wrapping_add(i64::from(time.tv_nsec))
    };
    Ok(Identity {
        device: libc::makedev(found.stx_dev_major, found.stx_dev_minor),
        inode: found.stx_ino,
        born: match found.stx_mask & libc::STATX_BTIME {
            0 => 0,
            _ => nanoseconds(found.stx_btime),
        },
    })
}

/// Last access time in seconds, as the server knows it.
pub(crate) fn access_time(fd: BorrowedFd<'_>) -> io::Result<i64> {
    let found = extended_status(fd, libc::STATX_ATIME, libc::AT_STATX_FORCE_SYNC)?;
    Ok(found.stx_atime.tv_sec)
}

/// Sets the last access time; the modification time is unchanged.
pub(crate) fn set_access_time(fd: BorrowedFd<'_>, seconds: i64) -> io::Result<()> {
    let access = libc::timespec {
        tv_sec: seconds,
        tv_nsec: 0,
    };
    let unchanged = libc::timespec {
        tv_sec: 0,
        tv_nsec: libc::UTIME_OMIT,
    };
    let times = [access, unchanged];
    // SAFETY: an array of two times, as the call requires.
    checked(unsafe { libc::futimens(fd.as_raw_fd(), times.as_ptr()) }).map(drop)
}

/// The value of an extended attribute, up to `limit` bytes.
pub(crate) fn attribute(fd: BorrowedFd<'_>, name: &CStr, limit: usize) -> io::Result<Vec<u8>> {
    let mut value = vec![0u8; limit];
    // SAFETY: the name is terminated, and the buffer has the given length.
    let bytes = counted(unsafe {
        libc::fgetxattr(
            fd.as_raw_fd(),
            name.as_ptr(),
            value.as_mut_ptr().cast(),
            value.len(),
        )
    })?;
    value.truncate(bytes);
    Ok(value)
}

/// Sets an extended attribute.
pub(crate) fn set_attribute(fd: BorrowedFd<'_>, name: &CStr, value: &[u8]) -> io::Result<()> {
    // SAFETY: the name is terminated, and the value has the given length.
    let result = unsafe {
        libc::fsetxattr(
            fd.as_raw_fd(),
            name.as_ptr(),
            value.as_ptr().cast(),
            value.len(),
            0,
        )
    };
    checked(result).map(drop)
}
