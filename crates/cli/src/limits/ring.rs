//! Writes through io_uring, several at a time.
//!
//! One of the files that may hold `unsafe`: what is pushed names memory that the kernel reads until
//! the completion is taken.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Duration;

use io_uring::{IoUring, opcode, types::Fd};

/// How long to sleep between looks at a ring that cannot be waited for.
const POLL: Duration = Duration::from_millis(1);

/// How many writes are under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    /// The most of them.
    pub(super) in_flight: u32,
    /// How many must end before more are submitted.
    pub(super) awaited: u32,
}

/// A part of memory, and where it goes in the file.
pub(super) type Piece<'a> = (&'a [u8], u64);

/// The queues.
pub(super) struct Ring {
    ring: IoUring,
    pace: Pace,
}

impl Ring {
    /// Makes them, or tells why this process may not.
    pub(super) fn new(pace: Pace) -> io::Result<Self> {
        let ring = IoUring::new(pace.in_flight)?;
        Ok(Ring { ring, pace })
    }

    /// Writes all pieces, none longer than 2 GiB. After an error nothing more is submitted; what
    /// was under way has ended when this returns. The queues are used up: after an error they may
    /// hold requests that the kernel has not taken.
    pub(super) fn write_all<'a>(
        mut self,
        file: &File,
        mut pieces: impl Iterator<Item = Piece<'a>>,
    ) -> io::Result<()> {
        let mut slots: Vec<Piece<'a>> = vec![(&[], 0); self.pace.in_flight as usize];
        let mut free: Vec<usize> = (0..slots.len()).collect();
        let mut outcome = Ok(());
        loop {
            while outcome.is_ok() && !free.is_empty() {
                let Some(piece) = pieces.next() else { break };
                let slot = free.pop().expect("the loop has looked");
                slots[slot] = piece;
                self.push(file, piece, slot);
            }
            let in_flight = slots.len() - free.len();
            if in_flight == 0 {
                return outcome;
            }
            if let Err(error) = self.wait(in_flight) {
                self.drain(in_flight);
                return Err(error);
            }
            while let Some((slot, result)) = self.next() {
                match rest(slots[slot], result) {
                    Ok(None) => free.push(slot),
                    Ok(Some(rest)) if outcome.is_ok() => {
                        slots[slot] = rest;
                        self.push(file, rest, slot);
                    }
                    Ok(Some(_)) => free.push(slot),
                    Err(error) => {
                        free.push(slot);
                        outcome = outcome.and(Err(error));
                    }
                }
            }
        }
    }

    fn push(&mut self, file: &File, (bytes, offset): Piece<'_>, slot: usize) {
        let length = u32::try_from(bytes.len()).expect("a piece is shorter than 2 GiB");
        let entry = opcode::Write::new(Fd(file.as_raw_fd()), bytes.as_ptr(), length)
            .offset(offset)
            .build()
            .user_data(slot as u64);
        // SAFETY: `write_all` borrows file and memory, and returns when no request is under way.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("there are as many entries as slots");
    }

    /// Submits what was pushed and waits. Failures that pass by themselves are none.
    fn wait(&mut self, in_flight: usize) -> io::Result<()> {
        let awaited = in_flight.min(self.pace.awaited as usize);
        match self.ring.submit_and_wait(awaited) {
            Ok(_) => Ok(()),
            Err(error) if is_transient(&error) => {
                thread::yield_now();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn next(&mut self) -> Option<(usize, i32)> {
        let completed = self.ring.completion().next()?;
        Some((completed.user_data() as usize, completed.result()))
    }

    /// Waits for what the kernel has taken, without its help.
    fn drain(&mut self, in_flight: usize) {
        let mut taken = in_flight - self.ring.submission().len();
        while taken > 0 {
            match self.next() {
                Some(_) => taken -= 1,
                None => thread::sleep(POLL),
            }
        }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | io::ErrorKind::ResourceBusy
    )
}

/// What a write has left to do.
fn rest((bytes, offset): Piece<'_>, result: i32) -> io::Result<Option<Piece<'_>>> {
    match usize::try_from(result) {
        Err(_) => Err(io::Error::from_raw_os_error(-result)),
        Ok(0) if !bytes.is_empty() => Err(io::ErrorKind::WriteZero.into()),
        Ok(written) if written < bytes.len() => {
            Ok(Some((&bytes[written..], offset + written as u64)))
        }
        Ok(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    const BATCH: Pace = Pace {
        in_flight: 4,
        awaited: 4,
    };
    const ROLLING: Pace = Pace {
        in_flight: 4,
        awaited: 1,
    };

    #[test]
    fn every_piece_is_written() {
        for pace in [BATCH, ROLLING] {
            let Ok(ring) = Ring::new(pace) else {
                println!("skipped: no io_uring here");
                return;
            };
            let file = tempfile::tempfile().unwrap();
            let source: Vec<u8> = (0..=250).collect();
            let pieces = source.chunks(8).zip((0..).step_by(8));
            ring.write_all(&file, pieces).unwrap();
            let mut found = vec![0; source.len()];
            file.read_exact_at(&mut found, 0).unwrap();
            assert_eq!(found, source);
        }
    }

    #[test]
    fn an_error_ends_it_after_what_was_under_way() {
        let Ok(ring) = Ring::new(BATCH) else {
            println!("skipped: no io_uring here");
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, []).unwrap();
        let read_only = File::open(&path).unwrap();
        let source = [1; 100];
        let pieces = source.chunks(8).zip((0..).step_by(8));
        assert!(ring.write_all(&read_only, pieces).is_err());
        assert_eq!(read_only.metadata().unwrap().len(), 0);
    }

    #[test]
    fn short_writes_go_on() {
        let bytes = [1, 2, 3, 4];
        assert_eq!(rest((&bytes, 10), 4).unwrap(), None);
        assert_eq!(rest((&bytes, 10), 3).unwrap(), Some((&bytes[3..], 13)));
        assert!(rest((&bytes, 10), 0).is_err());
        assert_eq!(rest((&bytes, 10), -5).unwrap_err().raw_os_error(), Some(5));
    }
}
