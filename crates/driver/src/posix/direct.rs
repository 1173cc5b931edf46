//! Transfers that bypass the page cache.
//!
//! Whole aligned blocks are transferred directly; the partial blocks at the
//! edges of a run go through the buffered descriptor. No block is read,
//! modified and written back, no neighbouring byte is touched, and the file
//! never grows beyond what was written. Blocks are whole pages, so a direct
//! transfer and a buffered edge never share a page of the cache, which could
//! otherwise be written back with stale contents.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use super::{
    calls::Calls,
    sys,
    transfer::{self, step},
};
use crate::{
    Batch, Direction, Outcome,
    vector::{Cursor, Vector},
};

/// Size of the aligned bounce buffer, used if the caller's memory is not
/// aligned.
const BOUNCE_BYTES: usize = 1 << 20;

/// A second descriptor of the file and its alignment requirements.
#[derive(Debug)]
pub(super) struct Direct {
    fd: OwnedFd,
    /// Alignment of offsets and lengths: whole pages.
    block: usize,
    /// Alignment of memory addresses.
    memory: usize,
}

/// The two descriptors of a transfer.
pub(super) struct Descriptors<'f> {
    pub(super) calls: &'f Calls,
    pub(super) buffered: BorrowedFd<'f>,
    pub(super) direct: &'f Direct,
}

impl Direct {
    /// Opens the file again for direct transfers; `None` if the file system
    /// does not support them or the file cannot be reopened.
    pub(super) fn reopen(buffered: BorrowedFd<'_>, flags: libc::c_int) -> Option<Direct> {
        let extended = sys::extended(buffered).ok()?;
        let page = usize::try_from(sys::page_size()).ok()?;
        let block = usize::try_from(extended.direct_offset).ok()?;
        if block == 0 {
            return None;
        }
        let fd = sys::reopen(buffered, flags | libc::O_DIRECT).ok()?;
        let memory = usize::try_from(extended.direct_memory).ok()?.max(1);
        Some(Direct {
            fd,
            block: block.max(page),
            memory,
        })
    }

    pub(super) fn into_descriptor(self) -> OwnedFd {
        self.fd
    }

    fn aligned(&self, vector: &Vector<'_>) -> bool {
        vector.parts().iter().all(|part| {
            part.iov_base.addr().is_multiple_of(self.memory)
                && part.iov_len.is_multiple_of(self.block)
        })
    }
}

/// Moves a batch.
pub(super) fn run(descriptors: &Descriptors<'_>, batch: &Batch<'_>) -> Outcome {
    let mut bounce = Bounce::default();
    transfer::run_steps(batch, |vector| descriptors.step(vector, &mut bounce))
}

impl Descriptors<'_> {
    /// Moves the first part of a run that takes one path; zero means end of
    /// file.
    fn step(&self, vector: &mut Vector<'_>, bounce: &mut Bounce) -> io::Result<usize> {
        let block = self.direct.block;
        let within = (vector.offset() % block as u64) as usize;
        if within > 0 || vector.bytes() < block {
            vector.shorten(block - within);
            return step(self.calls, self.buffered, vector);
        }
        vector.shorten(vector.bytes() / block * block);
        let moved = if self.direct.aligned(vector) && self.ends_inside(vector)? {
            step(self.calls, self.direct.fd.as_fd(), vector)
        } else {
            vector.shorten(BOUNCE_BYTES.next_multiple_of(block));
            self.step_by_bounce(vector, bounce)
        };
        match moved {
            // The file system has stricter alignment requirements.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                step(self.calls, self.buffered, vector)
            }
            moved => moved,
        }
    }

    /// Shortens a run to whole blocks of the file and returns whether it may go
    /// directly to the caller's memory. A direct read of the file's last block
    /// may fill memory up to the end of the block, although it reports only the
    /// bytes before the end of the file.
    fn ends_inside(&self, vector: &mut Vector<'_>) -> io::Result<bool> {
        if vector.direction() == Direction::Write {
            return Ok(true);
        }
        let block = self.direct.block as u64;
        let inside = sys::size(self.buffered)?.saturating_sub(vector.offset()) / block * block;
        vector.shorten(
            usize::try_from(inside)
                .unwrap_or(usize::MAX)
                .max(self.direct.block),
        );
        Ok(inside > 0)
    }

    fn step_by_bounce(&self, vector: &Vector<'_>, bounce: &mut Bounce) -> io::Result<usize> {
        let buffer = bounce.get(vector.bytes(), self.direct.block.max(self.direct.memory))?;
        let fd = self.direct.fd.as_fd();
        match vector.direction() {
            Direction::Write => {
                vector.gather(buffer);
                self.step_once(fd, Batch::write(vector.offset(), buffer))
            }
            Direction::Read => {
                let moved = self.step_once(fd, Batch::read(vector.offset(), buffer))?;
                vector.scatter(&buffer[..moved]);
                Ok(moved)
            }
        }
    }

    fn step_once(&self, fd: BorrowedFd<'_>, batch: Batch<'_>) -> io::Result<usize> {
        let mut vector = Vector::new(batch.direction());
        vector.load(&batch, Cursor::default());
        step(self.calls, fd, &mut vector)
    }
}

/// Aligned memory, allocated when first needed.
#[derive(Default)]
struct Bounce {
    memory: Vec<u8>,
}

impl Bounce {
    /// `bytes` bytes at an address that is a multiple of `alignment`.
    fn get(&mut self, bytes: usize, alignment: usize) -> io::Result<&mut [u8]> {
        let needed = bytes + alignment;
        if self.memory.len() < needed {
            self.memory.clear();
            self.memory
                .try_reserve_exact(needed)
                .map_err(|_| io::ErrorKind::OutOfMemory)?;
            self.memory.resize(needed, 0);
        }
        let address = self.memory.as_ptr().addr();
        let start = address.next_multiple_of(alignment) - address;
        Ok(&mut self.memory[start..start + bytes])
    }
}
