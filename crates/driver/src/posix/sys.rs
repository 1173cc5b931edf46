//! System calls: one safe function per call.
//!
//! This file may contain `unsafe`: libc calls. Calls that move data, change a
//! file or lock it are a single attempt, which callers continue and retry; the
//! others are retried here when interrupted.
#![allow(unsafe_code)]

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
pub(crate) fn counted(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| match result {
        -1 => io::Error::last_os_error(),
        _ => io::Error::other(format!(
            "the kernel returned {result} for a number of bytes"
        )),
    })
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

/// Requests a lease on the file, which is granted only if no other description of it
/// is open. Whoever opens the file then waits until the lease is released, but at most
/// for the seconds in `/proc/sys/fs/lease-break-time`.
pub(crate) fn take_lease(fd: BorrowedFd<'_>) -> io::Result<()> {
    let fd = fd.as_raw_fd();
    // The kernel notifies the holder by this signal when somebody waits. It is ignored
    // by default; the usual one would end the program. Releasing a lease resets it.
    // SAFETY: no memory is passed.
    checked(unsafe { libc::fcntl(fd, F_SETSIG, libc::SIGURG) })?;
    // SAFETY: no memory is passed.
    checked(unsafe { libc::fcntl(fd, libc::F_SETLEASE, libc::F_WRLCK) }).map(drop)
}

/// Missing in the crate `libc`.
const F_SETSIG: c_int = 10;

/// Whether the description has a lease for which nobody waits.
pub(crate) fn has_lease(fd: BorrowedFd<'_>) -> bool {
    // SAFETY: no memory is passed.
    let held = checked(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETLEASE) });
    held.is_ok_and(|held| held == libc::F_WRLCK)
}

/// Releases a lease. There is none any more if someone has waited too long for it.
pub(crate) fn release_lease(fd: BorrowedFd<'_>) {
    // SAFETY: no memory is passed.
    let _ = checked(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK) });
}

/// A kind of kernel lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KernelLock {
    None,
    Shared,
    Exclusive,
}

/// Sets the lock of the open file description on a range; false if another
/// description holds a conflicting one.
pub(crate) fn lock_try(
    fd: BorrowedFd<'_>,
    range: Range<u64>,
    kind: KernelLock,
) -> io::Result<bool> {
    match set_lock(fd, range, kind, libc::F_OFD_SETLK) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => {
            Ok(false)
        }
        result => result.map(|()| true),
    }
}

/// The range of another description's conflicting lock, if there is one.
pub(crate) fn lock_in_the_way(
    fd: BorrowedFd<'_>,
    range: Range<u64>,
    kind: KernelLock,
) -> io::Result<Option<Range<u64>>> {
    let Some(mut lock) = flock(range, kind) else {
        return Ok(None);
    };
    // SAFETY: the lock outlives the call, which writes to it.
    checked(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) })?;
    if lock.l_type == libc::F_UNLCK as libc::c_short {
        return Ok(None);
    }
    let start = u64::try_from(lock.l_start).unwrap_or(0);
    let end = match u64::try_from(lock.l_len) {
        Ok(len) if len > 0 => start.saturating_add(len),
        _ => u64::MAX,
    };
    Ok(Some(start..end))
}

fn set_lock(
    fd: BorrowedFd<'_>,
    range: Range<u64>,
    kind: KernelLock,
    command: c_int,
) -> io::Result<()> {
    match flock(range, kind) {
        // SAFETY: the lock outlives the call.
        Some(lock) => checked(unsafe { libc::fcntl(fd.as_raw_fd(), command, &lock) }).map(drop),
        None => Ok(()),
    }
}

/// A lock for `fcntl`. `None` beyond 63 bits, where no file has bytes and only
/// the lock table applies.
fn flock(range: Range<u64>, kind: KernelLock) -> Option<libc::flock64> {
    let start = i64::try_from(range.start).ok()?;
    // SAFETY: plain integers, for which zero is valid; OFD locks require a zero
    // pid.
    let mut lock: libc::flock64 = unsafe { std::mem::zeroed() };
    lock.l_type = match kind {
        KernelLock::None => libc::F_UNLCK,
        KernelLock::Shared => libc::F_RDLCK,
        KernelLock::Exclusive => libc::F_WRLCK,
    } as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = start;
    // Zero means up to the maximum offset.
    lock.l_len = i64::try_from(range.end).map_or(0, |end| end - start);
    Some(lock)
}

/// Magic number of the file system.
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

/// Fields of `statx` about a file system; zero where the kernel does not report
/// them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extended {
    /// Preferred transfer size in bytes.
    pub(crate) block_size: u64,
    /// Mount number in the mount table.
    pub(crate) mount: u64,
    /// Memory alignment for direct transfers.
    pub(crate) direct_memory: u32,
    /// Offset and length alignment for direct transfers.
    pub(crate) direct_offset: u32,
}

/// Calls `statx`; `sync` says whether a remote server has to be queried.
fn extended_status(fd: BorrowedFd<'_>, mask: u32, sync: c_int) -> io::Result<libc::statx> {
    let mut status = MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: the empty name is terminated, and the target is large enough.
    repeated(|| unsafe {
        libc::statx(
            fd.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | sync,
            mask,
            status.as_mut_ptr(),
        )
    })?;
    // SAFETY: plain integers, zeroed and then filled in.
    Ok(unsafe { status.assume_init() })
}

/// Queries what `statx` knows about a file system.
pub(crate) fn extended(fd: BorrowedFd<'_>) -> io::Result<Extended> {
    let mask = libc::STATX_MNT_ID | libc::STATX_DIOALIGN;
    let status = extended_status(fd, mask, libc::AT_STATX_SYNC_AS_STAT)?;
    let reported = |bit: u32, value| if status.stx_mask & bit != 0 { value } else { 0 };
    Ok(Extended {
        block_size: u64::from(status.stx_blksize),
        mount: if status.stx_mask & libc::STATX_MNT_ID != 0 {
            status.stx_mnt_id
        } else {
            0
        },
        direct_memory: reported(libc::STATX_DIOALIGN, status.stx_dio_mem_align),
        direct_offset: reported(libc::STATX_DIOALIGN, status.stx_dio_offset_align),
    })
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
