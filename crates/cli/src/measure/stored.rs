//! The file that a job writes: its expected contents. It is compared part by part, because it may
//! be larger than memory.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use pario::{Info, Mode};
use pario_transport::threads;

use super::content::{self, WrongByte};
use super::{Fault, Place};
use crate::failure::Failure;
use crate::workload::Job;

/// Bytes compared at a time. If a file has holes, each part visits all pieces of the
/// job.
const PART: u64 = 128 << 20;

/// The expected bytes where nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holes {
    /// Zeroes.
    Zero,
    /// Anything: ROMIO leaves what its buffer had.
    Undefined,
}

/// The bytes that a job writes, by the formula of its pieces.
pub(crate) struct Stored<'a> {
    job: &'a dyn Job,
    ranks: u32,
    holes: Holes,
    /// The number of bytes; no byte is written twice.
    pub(crate) bytes: u64,
    /// The end of the last one.
    end: u64,
    /// Pieces of the rank that has the most.
    pub(crate) pieces: u64,
    /// A part of the file; kept, because allocating memory is slow.
    part: Vec<u8>,
}

impl<'a> Stored<'a> {
    /// Visits all pieces.
    pub(crate) fn new(job: &'a dyn Job, ranks: u32, holes: Holes) -> Self {
        let mut stored = Stored {
            job,
            ranks,
            holes,
            bytes: 0,
            end: 0,
            pieces: 0,
            part: Vec::new(),
        };
        let (mut bytes, mut end, mut most) = (0, 0, 0);
        for rank in 0..ranks {
            let mut pieces = 0;
            stored.pieces_of(rank, &mut |piece| {
                bytes += piece.end - piece.start;
                end = end.max(piece.end);
                pieces += 1;
            });
            most = most.max(pieces);
        }
        (stored.bytes, stored.end, stored.pieces) = (bytes, end, most);
        stored
    }

    /// Memory that a comparison of a file of some bytes needs.
    pub(crate) fn footprint(bytes: u64) -> u64 {
        bytes.min(PART)
    }

    /// The first fault of a file, read as any other program would read it.
    pub(crate) fn check(&mut self, path: &Path, round: u64) -> Result<Option<Fault>, Failure> {
        let mut compare = || {
            let file = File::open(path)?;
            let length = file.metadata()?.len();
            self.first_fault(round, length, |part, at| file.read_exact_at(part, at))
        };
        compare().map_err(Failure::storage("read", path))
    }

    /// The first fault of a file by its name with a driver: system calls do not find it.
    pub(crate) fn check_by_driver(
        &mut self,
        name: &str,
        round: u64,
    ) -> Result<Option<Fault>, pario::Error> {
        let stored = Mutex::new(self);
        let compare = |comm| -> pario::Result<Option<Fault>> {
            let mut stored = stored.lock().unwrap_or_else(PoisonError::into_inner);
            let file = pario::File::open(&comm, name, Mode::READ_ONLY, &Info::new())?;
            let read = |part: &mut [u8], at| file.read_at(at, part).map(drop);
            let fault = stored.first_fault(round, file.size()?, read)?;
            file.close()?;
            Ok(fault)
        };
        let mut ranks = threads::run(1, compare);
        let rank = ranks.pop().expect("there is one rank");
        rank.unwrap_or_else(|panic| panic!("{panic}"))
    }

    /// Compares a file of a given length with the values of the round where the job writes. Returns
    /// the first fault, part by part.
    fn first_fault<E>(
        &mut self,
        round: u64,
        length: u64,
        mut read: impl FnMut(&mut [u8], u64) -> Result<(), E>,
    ) -> Result<Option<Fault>, E> {
        let mut buffer = std::mem::take(&mut self.part);
        if buffer.is_empty() {
            buffer.resize(self.end.clamp(1, PART) as usize, 0);
        }
        for start in (0..length).step_by(buffer.len()) {
            let bytes = (length - start).min(buffer.len() as u64) as usize;
            let part = &mut buffer[..bytes];
            read(part, start)?;
            if let Some(byte) = self.first_wrong(part, start, round) {
                return Ok(Some(Place::File.wrong(byte)));
            }
        }
        self.part = buffer;
        Ok((length != self.end).then_some(Fault::Length {
            expected: self.end,
            found: length,
        }))
    }

    /// The first wrong byte of a part that starts at an offset. Compared pieces are cleared, so
    /// that only holes remain.
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
        match self.holes {
            Holes::Zero => wrong.or_else(|| content::first_unlike(part, 0, start)),
            Holes::Undefined => wrong,
        }
    }

    /// The ranges that the job writes; a single one if it leaves no holes.
    fn ranges(&self, each: &mut dyn FnMut(Range<u64>)) {
        match self.bytes == self.end {
            true => each(0..self.end),
            false => (0..self.ranks).for_each(|rank| self.pieces_of(rank, each)),
        }
    }

    fn pieces_of(&self, rank: u32, each: &mut dyn FnMut(Range<u64>)) {
        for call in 0..self.job.calls() {
            self.job.pieces(rank, call, &mut |piece| {
                each(piece.file..piece.file + piece.bytes);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::workload::test_job;

    const ROUND: u64 = 2;

    /// Jobs with holes and without.
    const JOBS: [&str; 2] = ["hpio", "cyclic"];

    /// The file that a job writes.
    fn file(stored: &Stored<'_>) -> Vec<u8> {
        let mut file = vec![0; stored.end as usize];
        for rank in 0..stored.ranks {
            stored.pieces_of(rank, &mut |piece| {
                let bytes = &mut file[piece.start as usize..piece.end as usize];
                content::fill(bytes, piece.start, ROUND);
            });
        }
        file
    }

    /// The first fault of a file, compared in parts of several sizes.
    fn fault(stored: &mut Stored<'_>, file: &[u8]) -> Option<Fault> {
        let mut compare = |part: Vec<u8>| {
            stored.part = part;
            let fault = stored.first_fault(ROUND, file.len() as u64, |part, at| {
                part.copy_from_slice(&file[at as usize..at as usize + part.len()]);
                Ok::<_, Infallible>(())
            });
            fault.unwrap()
        };
        let whole = compare(Vec::new());
        for part in [1, 100, 256, 1000] {
            assert_eq!(compare(vec![7; part]), whole, "parts of {part}");
        }
        whole
    }

    #[test]
    fn the_right_file_passes_and_any_wrong_byte_is_named() {
        for name in JOBS {
            let job = test_job(name, 2, 0.0001);
            let mut stored = Stored::new(&*job, 2, Holes::Zero);
            assert_eq!(stored.bytes < stored.end, name == "hpio");
            let mut file = file(&stored);
            assert_eq!(fault(&mut stored, &file), None, "{name}");
            for at in [0, 9, 255, 256, 300, file.len() - 1] {
                file[at] ^= 0x10;
                let byte = WrongByte {
                    offset: at as u64,
                    expected: file[at] ^ 0x10,
                    found: file[at],
                };
                let wrong = Place::File.wrong(byte);
                assert_eq!(fault(&mut stored, &file), Some(wrong), "{name}");
                file[at] ^= 0x10;
            }
        }
    }

    #[test]
    fn a_wrong_length_is_named() {
        for name in JOBS {
            let job = test_job(name, 2, 0.0001);
            let mut stored = Stored::new(&*job, 2, Holes::Zero);
            let expected = stored.end;
            for found in [0, expected - 3, expected + 1] {
                let mut file = file(&stored);
                file.resize(found as usize, 0);
                let wrong = Fault::Length { expected, found };
                assert_eq!(fault(&mut stored, &file), Some(wrong), "{name}");
            }
        }
    }

    #[test]
    fn bytes_after_the_end_are_wrong() {
        let job = test_job("cyclic", 2, 0.0001);
        let mut stored = Stored::new(&*job, 2, Holes::Zero);
        let mut file = file(&stored);
        file.push(3);
        let byte = WrongByte {
            offset: stored.end,
            expected: 0,
            found: 3,
        };
        assert_eq!(fault(&mut stored, &file), Some(Place::File.wrong(byte)));
    }

    #[test]
    fn holes_may_have_anything_if_they_are_undefined() {
        let job = test_job("hpio", 2, 0.0001);
        let mut file = file(&Stored::new(&*job, 2, Holes::Zero));
        file[256] = 7;
        assert!(fault(&mut Stored::new(&*job, 2, Holes::Zero), &file).is_some());
        let mut stored = Stored::new(&*job, 2, Holes::Undefined);
        assert_eq!(fault(&mut stored, &file), None);
        file[255] ^= 7;
        assert!(fault(&mut stored, &file).is_some());
    }

    #[test]
    fn files_that_are_not_mounted_are_read_by_their_driver() {
        let job = test_job("hpio", 2, 0.0001);
        let mut stored = Stored::new(&*job, 2, Holes::Zero);
        let name = "mem:/stored-by-driver";
        let write = |bytes: &[u8]| {
            let written = threads::run(1, |comm| {
                let mode = Mode::CREATE | Mode::WRITE_ONLY;
                let file = pario::File::open(&comm, name, mode, &Info::new())?;
                file.write_at(0, bytes)?;
                file.close()
            });
            written.into_iter().for_each(|it| it.unwrap().unwrap());
        };
        let mut bytes = file(&stored);
        write(&bytes);
        assert_eq!(stored.check_by_driver(name, ROUND).unwrap(), None);
        bytes[300] ^= 1;
        write(&bytes);
        assert!(stored.check_by_driver(name, ROUND).unwrap().is_some());
        pario::File::delete(name, &Info::new()).unwrap();
        assert!(stored.check_by_driver(name, ROUND).is_err());
    }

    #[test]
    fn files_are_read_from_storage() {
        let job = test_job("small:calls=3", 2, 1.0);
        let mut stored = Stored::new(&*job, 2, Holes::Zero);
        assert_eq!((stored.bytes, stored.pieces), (6 * 4096, 3));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, file(&stored)).unwrap();
        assert_eq!(stored.check(&path, ROUND).unwrap(), None);
        assert!(stored.check(&path, ROUND + 1).unwrap().is_some());
        assert!(
            stored
                .check(&directory.path().join("other"), ROUND)
                .is_err()
        );
    }
}
