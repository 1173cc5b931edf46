//! Pieces that the kernel copies into a mapping.
//!
//! The pieces are gathered in a small file in memory, from which one `preadv`
//! scatters them over the mapping. A page that cannot be had, because the disk
//! is full or the file was truncated, is then an error of the call; the same
//! store made by the program would raise `SIGBUS`.
//!
//! This file may contain `unsafe`: it maps memory and lends mapped addresses to
//! the kernel.
#![allow(unsafe_code)]

use std::{
    io,
    ops::{Deref, DerefMut, Range},
    os::fd::{AsFd, AsRawFd, OwnedFd},
    sync::Mutex,
};

use super::mapping::Mapping;
use crate::{
    Batch, Direction, Piece,
    closing::lock,
    per_process::PerProcess,
    posix::{Calls, SystemCall, sys},
    vector::PARTS_MAX,
};

/// Bytes gathered at a time: they stay in the cache between the two copies.
const BYTES: usize = 64 << 10;

/// Number of idle files kept; more are created while more threads write.
const IDLE_MAX: usize = 8;

/// A forked child makes its own, since the parent's memory is shared with it.
static IDLE: PerProcess<Mutex<Vec<Staging>>> = PerProcess::new();

/// A file in memory and the targets of what it holds.
pub(super) struct Staging {
    file: OwnedFd,
    /// Device and inode of `file`: programs close descriptors that are not
    /// theirs.
    identity: (u64, u64),
    memory: Mapping,
    /// Where the gathered bytes go, in order.
    parts: Vec<libc::iovec>,
    gathered: usize,
    /// Memory that is to be gathered next; contiguous pieces are copied at
    /// once.
    next: Source,
}

// SAFETY: the addresses are used only while a batch and a mapping are borrowed.
unsafe impl Send for Staging {}

/// Contiguous memory of a batch.
struct Source {
    memory: *const u8,
    len: usize,
}

impl Source {
    const NONE: Source = Source {
        memory: std::ptr::null(),
        len: 0,
    };
}

impl Staging {
    /// One that is not in use, or a new one.
    pub(super) fn borrow() -> io::Result<Borrowed> {
        while let Some(idle) = lock(IDLE.get_or_make(Mutex::default)).pop() {
            match idle.is_intact() {
                true => return Ok(Borrowed(Some(idle))),
                // The descriptor may be another file's by now.
                false => std::mem::forget(idle),
            }
        }
        Staging::new().map(|new| Borrowed(Some(new)))
    }

    fn new() -> io::Result<Self> {
        // Beyond this limit, the kernel sends a signal.
        if sys::file_size_limit()? < BYTES as u64 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let file = sys::memory_file(c"pario-staging")?;
        // With its memory allocated, storing into it cannot fail.
        sys::allocate(file.as_fd(), BYTES as i64)?;
        let memory = Mapping::new(file.as_fd(), 0..BYTES as u64)?;
        let identity = sys::identity(file.as_fd())?;
        Ok(Staging {
            identity: (identity.device, identity.inode),
            file,
            memory,
            parts: Vec::with_capacity(PARTS_MAX),
            gathered: 0,
            next: Source::NONE,
        })
    }

    fn is_intact(&self) -> bool {
        sys::identity(self.file.as_fd())
            .is_ok_and(|found| (found.device, found.inode) == self.identity)
    }

    /// Has the kernel store a range of the pieces of a batch that writes, in
    /// order. After an error, some may have been stored.
    ///
    /// # Panics
    /// If a non-empty piece lies outside the mapping.
    pub(super) fn store(
        &mut self,
        calls: &Calls,
        target: &mut Mapping,
        batch: &Batch<'_>,
        pieces: Range<usize>,
    ) -> io::Result<()> {
        assert_eq!(
            batch.direction(),
            Direction::Write,
            "only writes can be stored"
        );
        for piece in &batch.pieces()[pieces] {
            let mut done = 0;
            while done < piece.len {
                if self.gathered == BYTES || self.parts.len() == PARTS_MAX {
                    self.scatter(calls)?;
                }
                let len = (piece.len - done).min(BYTES - self.gathered);
                let part = Piece {
                    offset: piece.offset + done as u64,
                    memory: piece.memory.wrapping_add(done),
                    len,
                };
                self.add(target.target(&part), &part);
                done += len;
            }
        }
        self.scatter(calls)
    }

    /// Adds a piece, for which there is space.
    fn add(&mut self, target: *mut u8, piece: &Piece) {
        if self.next.memory.wrapping_add(self.next.len) == piece.memory.cast_const() {
            self.next.len += piece.len;
        } else {
            self.gather();
            self.next = Source {
                memory: piece.memory,
                len: piece.len,
            };
        }
        self.gathered += piece.len;
        self.parts.push(libc::iovec {
            iov_base: target.cast(),
            iov_len: piece.len,
        });
    }

    /// Copies the pending memory to its place before the end of what is gathered.
    fn gather(&mut self) {
        let Source { memory, len } = std::mem::replace(&mut self.next, Source::NONE);
        if len == 0 {
            return;
        }
        let place = Piece {
            offset: (self.gathered - len) as u64,
            memory: std::ptr::null_mut(),
            len,
        };
        let target = self.memory.target(&place);
        // SAFETY: pieces of a live batch, contiguous and valid for reads; the
        // target is inside memory that only this value uses.
        unsafe { target.copy_from_nonoverlapping(memory, len) };
    }

    /// Stores what has been gathered.
    fn scatter(&mut self, calls: &Calls) -> io::Result<()> {
        self.gather();
        let bytes = std::mem::take(&mut self.gathered);
        let mut parts = std::mem::take(&mut self.parts);
        let fd = self.file.as_raw_fd();
        let stored = match bytes {
            0 => Ok(0),
            _ => calls.make(SystemCall::Store, bytes, |limit| {
                shorten(&mut parts, limit);
                // SAFETY: the parts are inside the target mapping, which the
                // caller has borrowed exclusively.
                sys::counted(unsafe {
                    libc::preadv64(fd, parts.as_ptr(), parts.len() as libc::c_int, 0)
                })
            }),
        };
        parts.clear();
        self.parts = parts;
        match stored {
            Ok(stored) if stored == bytes => Ok(()),
            // A page in the middle could not be had.
            Ok(_) => Err(io::ErrorKind::WriteZero.into()),
            Err(error) => Err(error),
        }
    }
}

/// Keeps the first `bytes` bytes.
fn shorten(parts: &mut Vec<libc::iovec>, bytes: usize) {
    let mut left = bytes;
    parts.retain_mut(|part| {
        part.iov_len = part.iov_len.min(left);
        left -= part.iov_len;
        part.iov_len > 0
    });
}

/// A staging file on loan.
pub(super) struct Borrowed(Option<Staging>);

impl Deref for Borrowed {
    type Target = Staging;

    fn deref(&self) -> &Staging {
        self.0.as_ref().expect("there until dropped")
    }
}

impl DerefMut for Borrowed {
    fn deref_mut(&mut self) -> &mut Staging {
        self.0.as_mut().expect("there until dropped")
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        let mut idle = lock(IDLE.get_or_make(Mutex::default));
        if idle.len() < IDLE_MAX {
            idle.extend(self.0.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    /// The program has closed the staging file's descriptor and opened another
    /// file in its place.
    #[test]
    fn a_replaced_descriptor_is_not_read_from() {
        let other = tempfile::tempfile().unwrap();
        other.write_all_at(&[b'x'; 100], 0).unwrap();
        let mut staging = Staging::new().unwrap();
        assert!(staging.is_intact());
        // SAFETY: replaces a descriptor that this test owns.
        let fd = unsafe { libc::dup2(other.as_raw_fd(), staging.file.as_raw_fd()) };
        assert_eq!(fd, staging.file.as_raw_fd());
        assert!(!staging.is_intact());
        staging.gathered = 0;
    }
}
