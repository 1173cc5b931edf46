//! Mappings of memory: the one place that maps and unmaps.
#![allow(unsafe_code)] // mmap and munmap

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};

/// A readable and writable mapping, unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    address: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping is plain memory that belongs to the process, not to a
// thread; `Mapping` itself gives out nothing but its address.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Zeroed memory without a name, shared with the children forked later.
    pub(crate) fn anonymous(bytes: usize) -> io::Result<Self> {
        // Pages are taken when they are touched: worlds of many ranks reserve
        // far more address space than they use.
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        Self::map(bytes, flags, -1)
    }

    /// Zeroed memory of this process alone, in huge pages where there are some:
    /// touching it costs a fault per huge page, not one per page. Children that
    /// are forked later do not have it, so that they neither copy it nor share
    /// it with a transfer that is under way.
    pub(crate) fn private(bytes: usize) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let mapping = Self::map(bytes, flags, -1)?;
        for advice in [libc::MADV_HUGEPAGE, libc::MADV_DONTFORK] {
            // SAFETY: the range is the mapping's own; both are advice that
            // changes no byte, and a kernel that does not know one ignores it.
            unsafe { libc::madvise(mapping.address.as_ptr().cast(), bytes, advice) };
        }
        Ok(mapping)
    }

    /// The first `bytes` of a file, which must have that length.
    pub(crate) fn of_file(file: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        Self::map(bytes, libc::MAP_SHARED, file.as_raw_fd())
    }

    fn map(bytes: usize, flags: libc::c_int, fd: libc::c_int) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel picks touches no
        // memory that exists.
        let address = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, fd, 0) };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let address = NonNull::new(address.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { address, bytes })
    }

    pub(crate) fn address(&self) -> NonNull<u8> {
        self.address
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is the one that was mapped, and whoever borrows
        // from it holds this `Mapping`.
        unsafe { libc::munmap(self.address.as_ptr().cast(), self.bytes) };
    }
}
