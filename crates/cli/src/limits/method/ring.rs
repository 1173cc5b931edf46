//! Writes through io_uring, several at a time.
//!
//! One of the files that may contain `unsafe`: requests refer to memory that the kernel reads until
//! their completion is reaped.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Duration;

use io_uring::{IoUring, opcode, types::Fd};

use super::{Outcome, Stage, Stop, timed};

/// Sleep between checks of a ring that cannot be waited for.
const POLL: Duration = Duration::from_millis(1);

/// How many writes are in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::limits) struct Pace {
    /// The maximum.
    pub(in crate::limits) in_flight: u32,
    /// How many must complete before more are submitted.
    pub(in crate::limits) awaited: u32,
}

/// One thread, one request per piece. Creating the queues is not timed.
pub(in crate::limits) fn submit(stage: &Stage<'_>, pace: Pace) -> Outcome {
    let file = stage.open()?;
    let ring = Ring::new(pace)
        .map_err(|error| Stop::Unavailable(format!("io_uring is not available ({error})")))?;
    let pieces = stage.pattern.pieces(0..stage.span());
    let pieces = pieces.map(|piece| {
        let offset = piece.start as u64;
        (&stage.source[piece], offset)
    });
    let mut time = Duration::ZERO;
    timed(&mut time, || ring.write_all(&file, pieces)).map_err(Stop::failed("write"))?;
    Ok(time.into())
}

/// A part of memory, and its offset in the file.
type Piece<'a> = (&'a [u8], u64);

/// The queues.
struct Ring {
    ring: IoUring,
    pace: Pace,
}

impl Ring {
    fn new(pace: Pace) -> io::Result<Self> {
        let ring = IoUring::new(pace.in_flight)?;
        Ok(Ring { ring, pace })
    }

    /// Writes all pieces, none longer than 2 GiB. After an error nothing more is submitted; nothing
    /// is in flight when this returns. The queues are consumed: after an error they may hold
    /// requests that the kernel has not taken.
    fn write_all<'a>(
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
                let slot = free.pop().expect("the loop has checked");
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
        // SAFETY: `write_all` borrows file and memory, and returns when no request is in flight.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("there are as many entries as slots");
    }

    /// Submits what was pushed and waits. Transient failures are not errors.
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

    /// Waits for the requests that the kernel has taken, by polling.
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

/// The remainder of a write.
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
    fn an_error_is_returned_once_nothing_is_in_flight() {
        let Ok(ring) = Ring::new(BATCH) else {
            println!("skipped: no io_uring here");
            return;
        };
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, []).unwrap();
        let read_only = File::open(&path).unwrap();
        let source = [1; 100];
        let pieces = source.chunks(8).zip((0..).step_by(8));
        assert!(ring.write_all(&read_only, pieces).is_err());
        assert_eq!(read_only.metadata().unwrap().len(), 0);
    }

    #[test]
    fn short_writes_are_continued() {
        let bytes = [1, 2, 3, 4];
        assert_eq!(rest((&bytes, 10), 4).unwrap(), None);
        assert_eq!(rest((&bytes, 10), 3).unwrap(), Some((&bytes[3..], 13)));
        assert!(rest((&bytes, 10), 0).is_err());
        assert_eq!(rest((&bytes, 10), -5).unwrap_err().raw_os_error(), Some(5));
    }
}
