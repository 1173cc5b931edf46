//! The file that a job leaves: what must be in it, and its comparison part by part, as it may be
//! larger than memory.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use pario::{Info, Mode, threads};

use super::content::{self, WrongByte};
use super::outcome::Stop;
use super::wrong::{Fault, Place};
use crate::failure::Failure;
use crate::workload::Job;

/// Bytes that are compared at a time. Where a file has holes, each part looks at all pieces of the
/// job.
pub(crate) const PART: u64 = 128 << 20;

/// What a job writes, by the formula of its pieces.
pub(crate) struct Written<'a> {
    job: &'a dyn Job,
    ranks: u32,
    /// How many bytes; no byte is written twice.
    bytes: u64,
    /// Where the last of them ends.
    end: u64,
}

impl<'a> Written<'a> {
    /// Looks at all pieces.
    pub(crate) fn new(job: &'a dyn Job, ranks: u32) -> Self {
        let mut written = Written {
            job,
            ranks,
            bytes: 0,
            end: 0,
        };
        let (mut bytes, mut end) = (0, 0);
        written.pieces(&mut |piece| {
            bytes += piece.end - piece.start;
            end = end.max(piece.end);
        });
        (written.bytes, written.end) = (bytes, end);
        written
    }

    /// Room for a part of the file.
    pub(crate) fn part(&self) -> Vec<u8> {
        vec![0; self.end.clamp(1, PART) as usize]
    }

    /// Compares a file of some length in parts as long as the room: values of the round where the
    /// job writes, zeroes where no one wrote. What is wrong first, by parts.
    pub(crate) fn first_fault<E>(
        &self,
        round: u64,
        length: u64,
        room: &mut [u8],
        mut read: impl FnMut(&mut [u8], u64) -> Result<(), E>,
    ) -> Result<Option<Fault>, E> {
        for start in (0..length).step_by(room.len()) {
            let bytes = (length - start).min(room.len() as u64) as usize;
            let part = &mut room[..bytes];
            read(part, start)?;
            if let Some(byte) = self.first_wrong(part, start, round) {
                let place = Place::File;
                return Ok(Some(Fault::Byte { place, byte }));
            }
        }
        Ok((length != self.end).then_some(Fault::Length {
            expected: self.end,
            found: length,
        }))
    }

    /// The first wrong byte of a part that starts there. What was compared is cleared, so that
    /// holes remain.
    fn first_wrong(&self, part: &mut [u8], start: u64, round: u64) -> Option<WrongByte> {
        let end = start + part.len() as u64;
        let mut wrong = None;
        self.ranges(&mut |range| {
            let inside = range.start.max(start)..range.end.min(end);
            if inside.is_empty() {
                return;
            }
            let bytes = &mut part[(inside.start - start) as usize..(inside.end - start) as usize];
            wrong = wrong.or_else(|| content::first_wrong(bytes, inside.start, round));
            bytes.fill(0);
        });
        wrong.or_else(|| content::first_unlike(part, 0, start))
    }

    /// Where the job writes; all at once if it leaves no holes.
    fn ranges(&self, each: &mut dyn FnMut(Range<u64>)) {
        match self.bytes == self.end {
            true => each(0..self.end),
            false => self.pieces(each),
        }
    }

    fn pieces(&self, each: &mut dyn FnMut(Range<u64>)) {
        for rank in 0..self.ranks {
            for call in 0..self.job.calls() {
                self.job.pieces(rank, call, &mut |piece| {
                    each(piece.file..piece.file + piece.bytes);
                });
            }
        }
    }
}

/// Compares a file, read as any other program would; the room is for a part of it.
pub(crate) fn check_file(
    written: &Written<'_>,
    round: u64,
    path: &Path,
    room: &mut [u8],
) -> Result<Option<Fault>, Failure> {
    let mut compare = || {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        written.first_fault(round, length, room, |part, at| file.read_exact_at(part, at))
    };
    compare().map_err(|source| Failure::Storage {
        action: "read",
        path: path.to_owned(),
        source,
    })
}

/// Compares a file that no other program can see; the room is for a part of it.
pub(crate) fn check_in_memory(
    written: &Written<'_>,
    round: u64,
    path: &Path,
    room: &mut [u8],
) -> Result<Option<Fault>, Stop> {
    let name = format!("mem:{}", path.display());
    let room = Mutex::new(room);
    let compare = |comm| -> Result<Option<Fault>, Stop> {
        let mut room = room.lock().unwrap_or_else(PoisonError::into_inner);
        let file = pario::File::open(&comm, &name, Mode::READ_ONLY, &Info::new())?;
        let read = |part: &mut [u8], at| file.read_at(at, part).map(drop);
        let fault = written.first_fault(round, file.size()?, &mut room, read)?;
        file.close()?;
        Ok(fault)
    };
    let mut ranks = threads::run(1, compare);
    let rank = ranks.pop().expect("there is one rank");
    rank.map_err(|panic| Stop::Failed(panic.to_string()))?
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::workload::{Parameters, Setting, by_name};

    const ROUND: u64 = 2;

    /// The jobs have holes or none.
    const JOBS: [&str; 2] = ["hpio", "cyclic"];

    fn job(name: &str) -> Box<dyn Job> {
        let setting = Setting {
            ranks: 2,
            scale: 0.0001,
            parameters: Parameters::default(),
        };
        by_name(name).unwrap().job(&setting).unwrap()
    }

    /// The file that it writes.
    fn file(written: &Written<'_>) -> Vec<u8> {
        let mut file = vec![0; written.end as usize];
        written.pieces(&mut |piece| {
            let bytes = &mut file[piece.start as usize..piece.end as usize];
            content::fill(bytes, piece.start, ROUND);
        });
        file
    }

    /// What is wrong with a file, compared in parts of several sizes.
    fn fault(written: &Written<'_>, file: &[u8]) -> Option<Fault> {
        let length = file.len() as u64;
        let compare = |mut room: Vec<u8>| {
            let fault = written.first_fault(ROUND, length, &mut room, |part, at| {
                part.copy_from_slice(&file[at as usize..at as usize + part.len()]);
                Ok::<_, Infallible>(())
            });
            fault.unwrap()
        };
        let whole = compare(written.part());
        for part in [1, 100, 256, 1000] {
            assert_eq!(compare(vec![7; part]), whole, "parts of {part}");
        }
        whole
    }

    #[test]
    fn the_right_file_passes() {
        for name in JOBS {
            let job = job(name);
            let written = Written::new(&*job, 2);
            assert_eq!(written.bytes < written.end, name == "hpio");
            assert_eq!(fault(&written, &file(&written)), None, "{name}");
        }
    }

    #[test]
    fn any_wrong_byte_is_named() {
        for name in JOBS {
            let job = job(name);
            let written = Written::new(&*job, 2);
            let mut file = file(&written);
            for at in [0, 9, 255, 256, 300, file.len() - 1] {
                file[at] ^= 0x10;
                let byte = WrongByte {
                    offset: at as u64,
                    expected: file[at] ^ 0x10,
                    found: file[at],
                };
                let place = Place::File;
                let wrong = Fault::Byte { place, byte };
                assert_eq!(fault(&written, &file), Some(wrong), "{name}");
                file[at] ^= 0x10;
            }
        }
    }

    #[test]
    fn a_wrong_length_is_named() {
        for name in JOBS {
            let job = job(name);
            let written = Written::new(&*job, 2);
            let expected = written.end;
            for found in [0, expected - 3, expected + 1] {
                let mut file = file(&written);
                file.resize(found as usize, 0);
                let wrong = Fault::Length { expected, found };
                assert_eq!(fault(&written, &file), Some(wrong), "{name}");
            }
        }
    }

    #[test]
    fn bytes_behind_the_end_are_wrong() {
        let job = job("cyclic");
        let written = Written::new(&*job, 2);
        let mut file = file(&written);
        file.push(3);
        let byte = WrongByte {
            offset: written.end,
            expected: 0,
            found: 3,
        };
        let place = Place::File;
        assert_eq!(fault(&written, &file), Some(Fault::Byte { place, byte }));
    }
}
