//! The measure of all contenders: plain POSIX calls that move as many bytes of one shared file, a
//! contiguous share a rank.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::bench::buffer::Buffer;
use crate::compare::protocol::Direction;
use crate::failure::Failure;

/// Bytes of a call.
const CALL_BYTES: u64 = 8 << 20;

/// Where the buffer begins behind the start of a page: at it. Elsewhere the kernel's copies may take
/// twice as long, and contenders would look as much closer to the machine's limit.
const BUFFER_OFFSET: usize = 0;

/// A rank's share of the file.
pub(super) struct Raw {
    path: PathBuf,
    start: u64,
    bytes: u64,
    buffer: Buffer,
}

impl Raw {
    /// The share of a rank that moves so many bytes.
    pub(super) fn new(path: &Path, rank: u32, bytes: u64) -> Result<Raw, Failure> {
        Ok(Raw {
            path: path.to_owned(),
            start: u64::from(rank) * bytes,
            bytes,
            buffer: Buffer::new(CALL_BYTES, 1, BUFFER_OFFSET)?,
        })
    }

    /// Opens, moves, closes.
    pub(super) fn run(&mut self, direction: Direction) -> Result<(), Failure> {
        self.transfer(direction).map_err(|source| Failure::Storage {
            action: match direction {
                Direction::Write => "write",
                Direction::Read => "read",
            },
            path: self.path.clone(),
            source,
        })
    }

    fn transfer(&mut self, direction: Direction) -> io::Result<()> {
        let file = match direction {
            Direction::Write => OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .open(&self.path)?,
            Direction::Read => File::open(&self.path)?,
        };
        let mut done = 0;
        while done < self.bytes {
            let length = CALL_BYTES.min(self.bytes - done);
            let part = &mut self.buffer.bytes_mut()[..length as usize];
            match direction {
                Direction::Write => file.write_all_at(part, self.start + done)?,
                Direction::Read => file.read_exact_at(part, self.start + done)?,
            }
            done += length;
        }
        Ok(())
    }
}
