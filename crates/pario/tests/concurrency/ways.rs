//! How neighbours get at the bytes of a file.
#![allow(dead_code, reason = "no program uses all of it")]
#![allow(unsafe_code)] // locks of descriptions and mappings have no wrapper in the standard library

use std::{
    fs, io,
    os::{fd::AsRawFd, unix::fs::FileExt},
    path::Path,
    ptr,
};

use pario::File;

pub(crate) const HOLE: usize = 64;

/// What a hole holds.
pub(crate) type Hole = [u8; HOLE];

/// An open file. Its owner writes nothing but holes.
pub(crate) trait Way {
    fn read(&self, at: u64) -> Hole;
    fn write(&self, at: u64, hole: &Hole);
}

/// By calls, without a lock.
impl Way for fs::File {
    fn read(&self, at: u64) -> Hole {
        let mut hole = [0; HOLE];
        self.read_exact_at(&mut hole, at).unwrap();
        hole
    }

    fn write(&self, at: u64, hole: &Hole) {
        self.write_all_at(hole, at).unwrap();
    }
}

/// By calls, under a lock of what is written: of the description, as threads of a program need.
pub(crate) struct Locking(pub(crate) fs::File);

impl Locking {
    fn lock(&self, at: u64, kind: libc::c_int) {
        let range = libc::flock {
            l_type: kind as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: at as libc::off_t,
            l_len: HOLE as libc::off_t,
            l_pid: 0,
        };
        // SAFETY: the descriptor is open and the range outlives the call.
        let result = unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_OFD_SETLKW, &range) };
        assert_eq!(result, 0, "{}", io::Error::last_os_error());
    }
}

impl Way for Locking {
    fn read(&self, at: u64) -> Hole {
        self.0.read(at)
    }

    fn write(&self, at: u64, hole: &Hole) {
        self.lock(at, libc::F_WRLCK);
        self.0.write(at, hole);
        self.lock(at, libc::F_UNLCK);
    }
}

/// By this library, through a handle of its own.
impl Way for File {
    fn read(&self, at: u64) -> Hole {
        let mut hole = [0; HOLE];
        self.read_at(at, &mut hole).unwrap();
        hole
    }

    fn write(&self, at: u64, hole: &Hole) {
        self.write_at(at, hole).unwrap();
    }
}

/// Through a shared mapping, which is all that keeps the file open.
pub(crate) struct Mapping {
    start: *mut u8,
    len: usize,
}

impl Mapping {
    /// Of the first `len` bytes of a file, which is extended to that length.
    pub(crate) fn new(path: &Path, len: usize) -> io::Result<Mapping> {
        let file = fs::File::options().read(true).write(true).open(path)?;
        if file.metadata()?.len() < len as u64 {
            file.set_len(len as u64)?;
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, at a place that the kernel selects.
        let start = unsafe {
            let file = file.as_raw_fd();
            libc::mmap(ptr::null_mut(), len, access, libc::MAP_SHARED, file, 0)
        };
        match start {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            start => Ok(Mapping {
                start: start.cast(),
                len,
            }),
        }
    }

    fn at(&self, at: u64) -> *mut Hole {
        let at = at as usize;
        assert!(at + HOLE <= self.len);
        // SAFETY: within the mapping.
        unsafe { self.start.add(at).cast() }
    }
}

impl Way for Mapping {
    fn read(&self, at: u64) -> Hole {
        // SAFETY: mapped; nobody truncates the file. Others may write at the same time, so the
        // compiler must not read it twice.
        unsafe { self.at(at).read_volatile() }
    }

    fn write(&self, at: u64, hole: &Hole) {
        // SAFETY: as for reading.
        unsafe { self.at(at).write_volatile(*hole) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and nothing borrows from it.
        let result = unsafe { libc::munmap(self.start.cast(), self.len) };
        assert_eq!(result, 0, "{}", io::Error::last_os_error());
    }
}
