//! System calls: one safe function per call.
//!
//! These files may contain `unsafe`: libc calls. Calls that move data, change a
//! file or lock it are a single attempt, which callers continue and retry; the
//! others are retried here when interrupted.
#![allow(unsafe_code)]

mod locks;
mod metadata;

pub(crate) use locks::{
    KernelLock, has_lease, lock_in_the_way, lock_try, release_lease, take_lease,
};
pub(crate) use metadata::{
    Extended, access_time, attribute, block_size, extended, extended_of_name, fresh_size,
    has_exception, identity, is_directory, known_size, magic, set_access_time, set_attribute, size,
};

use std::{
    ffi::{CStr, CString},
    io,
    mem::MaybeUninit,
    ops::Range,
    os::{
        fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
};

use libc::c_int;

use crate::{Access, Advice, Direction, OnePiece, vector::Vector};

/// The result of a call that returns -1 on failure.
fn checked(result: c_int) -> io::Result<c_int> {
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// As [`checked`], but retries when a signal interrupts the call: network file
/// systems allow that for any call.
fn repeated(mut call: impl FnMut() -> c_int) -> io::Result<c_int> {
    loop {
        match checked(call()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// The number of bytes that a call moved.
#[inline]
pub(crate) fn counted(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| failed_transfer(result))
}

#[cold]
fn failed_transfer(result: isize) -> io::Error {
    match result {
        -1 => io::Error::last_os_error(),
        _ => io::Error::other(format!(
            "the kernel returned {result} for a number of bytes"
        )),
    }
}

fn terminated(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| {
        let message = format!("the file name {path:?} contains a NUL byte");
        io::Error::new(io::ErrorKind::InvalidFilename, message)
    })
}

/// Opens a file with close-on-exec.
pub(crate) fn open(path: &Path, flags: c_int, permissions: u32) -> io::Result<OwnedFd> {
    let path = terminated(path)?;
    // SAFETY: the name is terminated and outlives the call.
    let fd =
        repeated(|| unsafe { libc::open64(path.as_ptr(), flags | libc::O_CLOEXEC, permissions) })?;
    // SAFETY: just opened, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Opens the file of a descriptor once more with other flags, as a new open file
/// description.
pub(crate) fn reopen(fd: BorrowedFd<'_>, flags: c_int) -> io::Result<OwnedFd> {
    open(
        Path::new(&format!("/proc/self/fd/{}", fd.as_raw_fd())),
        flags,
        0,
    )
}

/// Makes `target` a descriptor of the same description as `source`, in place of its own, which
/// is closed.
pub(crate) fn replace_description(
    target: BorrowedFd<'_>,
    source: BorrowedFd<'_>,
) -> io::Result<()> {
    let (target, source) = (target.as_raw_fd(), source.as_raw_fd());
    // SAFETY: both are open; whoever uses `target` finds a descriptor there all the time.
    repeated(|| unsafe { libc::dup3(source, target, libc::O_CLOEXEC) }).map(drop)
}

/// The accesses that a descriptor allows: `O_RDONLY`, `O_WRONLY` or `O_RDWR`.
pub(crate) fn access_mode(fd: BorrowedFd<'_>) -> io::Result<c_int> {
    // SAFETY: no memory is passed.
    let flags = repeated(|| unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) })?;
    Ok(flags & libc::O_ACCMODE)
}

/// A file in memory without a name in the file system.
pub(crate) fn memory_file(name: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: the name is terminated.
    let fd = repeated(|| unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) })?;
    // SAFETY: just created, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Closes. The descriptor is gone whatever the result; Linux frees it even when
/// interrupted, so `EINTR` is not a failure.
pub(crate) fn close(fd: OwnedFd) -> io::Result<()> {
    // SAFETY: the descriptor was owned and is not used again.
    match checked(unsafe { libc::close(fd.into_raw_fd()) }) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        result => result.map(drop),
    }
}

/// Fails unless this process may open the file in these directions.
pub(crate) fn check_access(path: &Path, access: Access) -> io::Result<()> {
    let path = terminated(path)?;
    let mode = match access {
        Access::Read => libc::R_OK,
        Access::Write => libc::W_OK,
        Access::ReadWrite => libc::R_OK | libc::W_OK,
    };
    // SAFETY: the name is terminated and outlives the call.
    let call = || unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), mode, libc::AT_EACCESS) };
    repeated(call).map(drop)
}

/// Removes a directory entry.
pub(crate) fn unlink(path: &Path) -> io::Result<()> {
    let path = terminated(path)?;
    // SAFETY: the name is terminated and outlives the call.
    repeated(|| unsafe { libc::unlink(path.as_ptr()) }).map(drop)
}

/// Moves some bytes of a vector, whose offsets fit in 63 bits.
pub(crate) fn transfer(fd: BorrowedFd<'_>, vector: &Vector<'_>) -> io::Result<usize> {
    let fd = fd.as_raw_fd();
    let offset = i64::try_from(vector.offset()).expect("offsets are checked before they get here");
    let parts = vector.parts();
    let count = c_int::try_from(parts.len()).expect("a vector has no more parts than IOV_MAX");
    // SAFETY: the parts of a vector are memory of a live batch, valid for the
    // direction and their lengths.
    counted(unsafe {
        match (vector.direction(), parts) {
            (Direction::Read, [only]) => libc::pread64(fd, only.iov_base, only.iov_len, offset),
            (Direction::Write, [only]) => libc::pwrite64(fd, only.iov_base, only.iov_len, offset),
            (Direction::Read, _) => libc::preadv64(fd, parts.as_ptr(), count, offset),
            (Direction::Write, _) => libc::pwritev64(fd, parts.as_ptr(), count, offset),
        }
    })
}

/// Moves some bytes of a range of a piece, whose offsets fit in 63 bits.
///
/// # Panics
/// If the range is not inside the piece.
#[inline]
pub(crate) fn transfer_one(
    fd: BorrowedFd<'_>,
    one: &OnePiece<'_>,
    range: Range<usize>,
) -> io::Result<usize> {
    let piece = one.piece();
    assert!(range.start <= range.end && range.end <= piece.len);
    let offset = i64::try_from(piece.offset + range.start as u64)
        .expect("offsets are checked before they get here");
    let memory = piece.memory.wrapping_add(range.start).cast();
    let (fd, len) = (fd.as_raw_fd(), range.len());
    // SAFETY: the memory of a piece is valid for the direction and its length, and the
    // range is inside it.
    counted(unsafe {
        match one.direction() {
            Direction::Read => libc::pread64(fd, memory, len, offset),
            Direction::Write => libc::pwrite64(fd, memory, len, offset),
        }
    })
}

/// Reads the part of a vector that is in the page cache, without waiting for
/// storage.
pub(crate) fn read_cached(fd: BorrowedFd<'_>, vector: &Vector<'_>) -> io::Result<usize> {
    if vector.direction() != Direction::Read {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let offset = i64::try_from(vector.offset()).expect("offsets are checked before they get here");
    let parts = vector.parts();
    let count = c_int::try_from(parts.len()).expect("a vector has no more parts than IOV_MAX");
    let (fd, flags) = (fd.as_raw_fd(), libc::RWF_NOWAIT);
    // SAFETY: the parts of a vector are memory of a live batch, valid for
    // writes.
    counted(unsafe { libc::preadv64v2(fd, parts.as_ptr(), count, offset, flags) })
}

/// Appends some bytes at the current end of the file.
pub(crate) fn append(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    let part = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: one part, borrowed for the call, which only reads it.
    counted(unsafe { libc::pwritev2(fd.as_raw_fd(), &part, 1, 0, libc::RWF_APPEND) })
}

/// Truncates or extends.
pub(crate) fn truncate(fd: BorrowedFd<'_>, bytes: i64) -> io::Result<()> {
    // SAFETY: no memory is passed.
    checked(unsafe { libc::ftruncate64(fd.as_raw_fd(), bytes) }).map(drop)
}

/// Reserves storage for the first bytes and extends a shorter file.
pub(crate) fn allocate(fd: BorrowedFd<'_>, bytes: i64) -> io::Result<()> {
    // SAFETY: no memory is passed.
    repeated(|| unsafe { libc::fallocate64(fd.as_raw_fd(), 0, 0, bytes) }).map(drop)
}

/// Makes data and size durable.
pub(crate) fn sync(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no memory is passed.
    checked(unsafe { libc::fsync(fd.as_raw_fd()) }).map(drop)
}

/// Tells the kernel how the file will be used. Failure is ignored.
pub(crate) fn advise(fd: BorrowedFd<'_>, advice: Advice) {
    let advice = match advice {
        Advice::Sequential => libc::POSIX_FADV_SEQUENTIAL,
        Advice::Random => libc::POSIX_FADV_RANDOM,
        Advice::NoReuse => libc::POSIX_FADV_NOREUSE,
        Advice::AccessRange { .. } | Advice::FreeRange { .. } => return,
    };
    // SAFETY: no memory is passed.
    unsafe { libc::posix_fadvise64(fd.as_raw_fd(), 0, 0, advice) };
}

/// An event counter (eventfd) that starts at zero.
pub(crate) fn counter() -> io::Result<OwnedFd> {
    // SAFETY: no memory is passed.
    let fd = checked(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) })?;
    // SAFETY: just created, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Increments an event counter.
pub(crate) fn raise(counter: BorrowedFd<'_>) -> io::Result<()> {
    let one = 1u64.to_ne_bytes();
    // SAFETY: the bytes outlive the call.
    counted(unsafe { libc::write(counter.as_raw_fd(), one.as_ptr().cast(), one.len()) }).map(drop)
}

/// The size beyond which this process may not extend files.
pub(crate) fn file_size_limit() -> io::Result<u64> {
    let mut limit = MaybeUninit::<libc::rlimit64>::uninit();
    // SAFETY: the target is large enough.
    checked(unsafe { libc::getrlimit64(libc::RLIMIT_FSIZE, limit.as_mut_ptr()) })?;
    // SAFETY: initialised by the successful call.
    Ok(unsafe { limit.assume_init() }.rlim_cur)
}

/// The page size in bytes.
pub(crate) fn page_size() -> u64 {
    // SAFETY: only returns a number.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).expect("the page size is positive")
}

/// Blocks signals for the current thread, and for threads that it starts, while
/// alive.
pub(crate) struct SignalsBlocked {
    before: libc::sigset_t,
}

impl SignalsBlocked {
    pub(crate) fn new() -> Self {
        let mut all = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: both sets are large enough; filling one and swapping the
        // thread's mask cannot fail with these arguments.
        let before = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            before.assume_init()
        };
        SignalsBlocked { before }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: the thread's previous mask.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}
