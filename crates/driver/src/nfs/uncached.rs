//! Transfers through a descriptor without a cache.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use crate::{
    Batch, Direction, Outcome,
    posix::{Calls, run_steps, step, sys},
    vector::{Cursor, Vector},
};

/// Size of the buffer in which scattered memory is gathered.
const BOUNCE_BYTES: usize = 1 << 20;

/// Parts of at least this size on average are passed on as they are.
const PART_BYTES_MIN: usize = 64 << 10;

/// A descriptor that bypasses the page cache, of a file system that imposes no
/// alignment.
#[derive(Debug)]
pub(super) struct Uncached {
    fd: OwnedFd,
}

impl Uncached {
    /// Opens the file of a descriptor again; `None` if that is not possible
    /// without a cache.
    pub(super) fn reopen(fd: BorrowedFd<'_>, access: libc::c_int) -> Option<Uncached> {
        let fd = sys::reopen(fd, access | libc::O_DIRECT).ok()?;
        Some(Uncached { fd })
    }

    /// Moves a batch.
    pub(super) fn transfer(&self, calls: &Calls, batch: &Batch<'_>) -> Outcome {
        let mut bounce = Vec::new();
        run_steps(batch, |vector| match vector.direction() {
            Direction::Read => self.read(calls, vector, &mut bounce),
            Direction::Write => self.step(calls, vector, &mut bounce),
        })
    }

    /// Reads some bytes; zero if the server agrees that the file ends before them.
    ///
    /// The client fills memory beyond the end of the file with zeros, so only what
    /// is inside is read into the caller's memory. What this node knows of the size
    /// is enough for that, unless another has truncated the file since it was last
    /// queried.
    fn read(
        &self,
        calls: &Calls,
        vector: &mut Vector<'_>,
        bounce: &mut Vec<u8>,
    ) -> io::Result<usize> {
        let end = vector.offset() + vector.bytes() as u64;
        let fd = self.fd.as_fd();
        let mut size = sys::known_size(fd)?;
        if size < end {
            size = sys::fresh_size(fd)?;
        }
        // A second time if the size was old.
        for _ in 0..2 {
            let inside = size.saturating_sub(vector.offset());
            let inside = usize::try_from(inside).unwrap_or(usize::MAX);
            if inside == 0 {
                break;
            }
            vector.shorten(inside);
            match self.step(calls, vector, bounce)? {
                0 => size = sys::fresh_size(fd)?,
                moved => return Ok(moved),
            }
        }
        Ok(0)
    }

    /// Moves some bytes of a run. The client sends each part in memory separately,
    /// so small ones are gathered first.
    fn step(
        &self,
        calls: &Calls,
        vector: &mut Vector<'_>,
        bounce: &mut Vec<u8>,
    ) -> io::Result<usize> {
        let parts = vector.parts().len();
        if parts == 1 || vector.bytes() / parts >= PART_BYTES_MIN {
            return step(calls, self.fd.as_fd(), vector);
        }
        vector.shorten(BOUNCE_BYTES);
        if bounce.len() < vector.bytes() {
            bounce
                .try_reserve_exact(vector.bytes() - bounce.len())
                .map_err(|_| io::ErrorKind::OutOfMemory)?;
            bounce.resize(vector.bytes(), 0);
        }
        let buffer = &mut bounce[..vector.bytes()];
        match vector.direction() {
            Direction::Write => {
                vector.gather(buffer);
                self.step_contiguous(calls, &Batch::write(vector.offset(), buffer))
            }
            Direction::Read => {
                let moved =
                    self.step_contiguous(calls, &Batch::read(vector.offset(), &mut *buffer))?;
                vector.scatter(&buffer[..moved]);
                Ok(moved)
            }
        }
    }

    fn step_contiguous(&self, calls: &Calls, batch: &Batch<'_>) -> io::Result<usize> {
        let mut vector = Vector::new(batch.direction());
        vector.load(batch, Cursor::default());
        step(calls, self.fd.as_fd(), &mut vector)
    }

    pub(super) fn into_descriptor(self) -> OwnedFd {
        self.fd
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        sync::{
            Arc,
            atomic::{AtomicU32, Ordering},
        },
    };

    use super::*;
    use crate::{CallAction, Interference, SystemCall};

    /// Counts transfers and shortens them.
    #[derive(Debug, Default)]
    struct Short {
        transfers: AtomicU32,
        limit: Option<usize>,
    }

    impl Interference for Short {
        fn before(&self, _: SystemCall, _: usize) -> CallAction {
            self.transfers.fetch_add(1, Ordering::Relaxed);
            match self.limit {
                Some(limit) => CallAction::Shorten(limit),
                None => CallAction::Proceed,
            }
        }
    }

    fn uncached(contents: &[u8]) -> Uncached {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), contents).unwrap();
        let opened = fs::OpenOptions::new().read(true).write(true).open(file);
        Uncached {
            fd: opened.unwrap().into(),
        }
    }

    #[test]
    fn scattered_memory_is_one_call_per_run() {
        let file = uncached(&[0; 64]);
        let short = Arc::new(Short::default());
        let calls = Calls::interfered(short.clone());
        let mut memory: Vec<u8> = (0..64).collect();
        // Two runs of the file, each from scattered memory.
        let places = [
            (8, 40, 4),
            (12, 0, 4),
            (16, 20, 8),
            (40, 30, 2),
            (42, 10, 2),
        ];
        let write = Batch::gather(Direction::Write, &mut memory, &places);
        assert_eq!(file.transfer(&calls, &write).into_result().unwrap(), 20);
        assert_eq!(short.transfers.load(Ordering::Relaxed), 2);
        let mut found = vec![0; 64];
        let read = Batch::gather(Direction::Read, &mut found, &places);
        assert_eq!(file.transfer(&calls, &read).into_result().unwrap(), 20);
        for (_, at, len) in places {
            assert_eq!(found[at..at + len], memory[at..at + len]);
        }
    }

    #[test]
    fn short_calls_are_continued_to_the_end_of_the_file() {
        let file = uncached(&[7; 50]);
        let calls = Calls::interfered(Arc::new(Short {
            limit: Some(3),
            ..Short::default()
        }));
        let mut memory = vec![0; 80];
        let read = Batch::gather(Direction::Read, &mut memory, &[(5, 40, 30), (35, 0, 40)]);
        assert_eq!(file.transfer(&calls, &read).into_result().unwrap(), 45);
        assert_eq!(memory[40..70], [7; 30]);
        assert_eq!(
            (&memory[..15], &memory[15..40]),
            (&[7; 15][..], &[0; 25][..])
        );
    }
}
