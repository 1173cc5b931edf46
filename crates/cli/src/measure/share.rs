//! The contiguous share of a rank that plain POSIX calls move: the baseline for contenders. It
//! is as large as the rank's data, but a large share goes through a smaller buffer in several
//! calls.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::content::{self, WrongByte};
use super::memory::GAP;
use super::{Buffer, Direction, Fault, Place};
use crate::failure::Failure;

/// Bytes of all ranks' buffers together; shares that fit are moved by one call.
const BUFFERS: u64 = 512 << 20;

/// Bytes of the smallest buffer for larger shares, however many ranks there are: calls are large
/// enough for their number not to matter.
const SMALLEST_BUFFER: u64 = 1 << 20;

/// A rank's share.
#[derive(Debug, Default)]
pub(crate) struct Share {
    /// Its bytes of the file.
    range: Range<u64>,
    buffer_bytes: u64,
    /// The buffer, once allocated.
    buffer: Buffer,
}

impl Share {
    /// A rank's share of some bytes, without its buffer.
    pub(crate) fn new(rank: u32, ranks: u32, bytes: u64) -> Self {
        let largest = (BUFFERS / u64::from(ranks)).max(SMALLEST_BUFFER);
        Share::with_buffer(rank, ranks, bytes, largest)
    }

    /// The same with a buffer, and so calls, of at most `largest` bytes.
    pub(crate) fn with_buffer(rank: u32, ranks: u32, bytes: u64, largest: u64) -> Self {
        let bound = |rank: u32| (u128::from(bytes) * u128::from(rank) / u128::from(ranks)) as u64;
        let range = bound(rank)..bound(rank + 1);
        Share {
            buffer_bytes: largest.min(range.end - range.start),
            range,
            buffer: Buffer::default(),
        }
    }

    /// Memory that its buffer needs.
    pub(crate) fn footprint(&self) -> u64 {
        Buffer::footprint(self.buffer_bytes)
    }

    /// Allocates the buffer, `offset` bytes past a page boundary.
    pub(crate) fn allocate(&mut self, offset: usize) -> Result<(), Failure> {
        self.buffer = Buffer::new(self.buffer_bytes, GAP, offset)?;
        Ok(())
    }

    /// Fills the buffer with the values of a round: those of the share's first part. Later parts
    /// have the same values, because the clock would run while others are computed.
    pub(crate) fn fill(&mut self, round: u64) {
        content::fill(self.buffer.bytes_mut(), self.range.start, round);
    }

    /// Overwrites the data, so that a read that moves nothing is detected.
    pub(crate) fn clear(&mut self) {
        self.buffer.bytes_mut().fill(GAP);
    }

    /// Opens the file for one direction; a write creates it.
    pub(crate) fn open(path: &Path, direction: Direction) -> io::Result<File> {
        match direction {
            Direction::Write => File::options()
                .write(true)
                .create(true)
                .truncate(false)
                .open(path),
            Direction::Read => File::open(path),
        }
    }

    pub(crate) fn transfer(&mut self, file: &File, direction: Direction) -> io::Result<()> {
        self.parts().try_for_each(|part| {
            let bytes = &mut self.buffer.bytes_mut()[..length(&part)];
            match direction {
                Direction::Write => file.write_all_at(bytes, part.start),
                Direction::Read => file.read_exact_at(bytes, part.start),
            }
        })
    }

    /// Fails unless a rank has read the values of a round. Of several parts the buffer has only the
    /// last, on top of the same values: they are read once more, one by one.
    pub(crate) fn check(
        &mut self,
        path: &Path,
        round: u64,
        rank: u32,
    ) -> io::Result<Result<(), Fault>> {
        let again = match length(&self.range) == self.buffer.bytes().len() {
            true => None,
            false => Some(File::open(path)?),
        };
        for part in self.parts() {
            let bytes = &mut self.buffer.bytes_mut()[..length(&part)];
            if let Some(file) = &again {
                bytes.fill(GAP);
                file.read_exact_at(bytes, part.start)?;
            }
            if let Some(byte) = content::first_wrong(bytes, self.range.start, round) {
                let offset = byte.offset - self.range.start + part.start;
                let byte = WrongByte { offset, ..byte };
                return Ok(Err(Place::Memory { rank }.wrong(byte)));
            }
        }
        Ok(Ok(()))
    }

    /// The bytes of the file that each call moves.
    fn parts(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let (range, bytes) = (self.range.clone(), self.buffer_bytes.max(1));
        let starts = range.clone().step_by(bytes as usize);
        starts.map(move |start| start..range.end.min(start + bytes))
    }
}

fn length(part: &Range<u64>) -> usize {
    (part.end - part.start) as usize
}

#[cfg(test)]
mod tests {
    use tempfile::NamedTempFile;

    use super::*;

    const BYTES: u64 = 1000;

    /// The shares of three ranks, filled for round 3, and the file that they write.
    fn written(largest: u64) -> (Vec<Share>, NamedTempFile) {
        let file = NamedTempFile::new().unwrap();
        let shares = (0..3).map(|rank| {
            let mut share = Share::with_buffer(rank, 3, BYTES, largest);
            share.allocate(16).unwrap();
            share.fill(3);
            share.transfer(file.as_file(), Direction::Write).unwrap();
            share
        });
        (shares.collect(), file)
    }

    /// Reads a share and compares it with the values of a round.
    fn read(share: &mut Share, file: &NamedTempFile, round: u64) -> Result<(), Fault> {
        share.clear();
        share.transfer(file.as_file(), Direction::Read).unwrap();
        share.check(file.path(), round, 1).unwrap()
    }

    #[test]
    fn shares_cover_the_bytes_with_any_buffer() {
        for largest in [1, 7, 100, 333, 334, 5000] {
            let (mut shares, file) = written(largest);
            assert_eq!(file.as_file().metadata().unwrap().len(), BYTES);
            for share in &mut shares {
                assert!(share.buffer.bytes().len() as u64 <= largest);
                assert_eq!(read(share, &file, 3), Ok(()), "buffer {largest}");
                assert!(read(share, &file, 4).is_err());
            }
        }
    }

    #[test]
    fn a_share_that_fits_is_one_part_with_the_values_of_its_place() {
        let (shares, file) = written(334);
        assert!(shares.iter().all(|share| share.parts().count() == 1));
        let bytes = std::fs::read(file.path()).unwrap();
        assert_eq!(content::first_wrong(&bytes, 0, 3), None);
    }

    #[test]
    fn after_a_check_the_buffer_has_the_values_again() {
        for largest in [100, 334] {
            let (mut shares, file) = written(largest);
            assert_eq!(read(&mut shares[2], &file, 3), Ok(()));
            let range = &shares[2].range;
            let wrong = content::first_wrong(shares[2].buffer.bytes(), range.start, 3);
            assert_eq!(wrong, None, "buffer {largest}");
        }
    }

    #[test]
    fn any_wrong_byte_is_named_by_its_offset_in_the_file() {
        for largest in [64, 334] {
            let (mut shares, file) = written(largest);
            for at in [333, 334, 400, 665] {
                let mut byte = [0];
                file.as_file().read_exact_at(&mut byte, at).unwrap();
                let [expected] = byte;
                file.as_file().write_all_at(&[expected ^ 1], at).unwrap();
                let wrong = Place::Memory { rank: 1 }.wrong(WrongByte {
                    offset: at,
                    expected,
                    found: expected ^ 1,
                });
                assert_eq!(read(&mut shares[1], &file, 3), Err(wrong));
                file.as_file().write_all_at(&byte, at).unwrap();
            }
        }
    }

    #[test]
    fn a_read_that_moves_nothing_is_found() {
        let (mut shares, file) = written(334);
        shares[0].clear();
        assert!(shares[0].check(file.path(), 3, 0).unwrap().is_err());
    }

    #[test]
    fn a_rank_without_a_share_makes_no_call() {
        let mut share = Share::new(0, 3, 2);
        share.allocate(0).unwrap();
        assert_eq!((share.range.clone(), share.parts().count()), (0..0, 0));
    }

    #[test]
    fn buffers_are_bounded_for_any_number_of_ranks() {
        for ranks in [1, 2, 64] {
            let buffers = (0..ranks).map(|rank| Share::new(rank, ranks, 1 << 40).buffer_bytes);
            assert_eq!(buffers.sum::<u64>(), BUFFERS);
        }
        assert_eq!(
            Share::new(0, 1 << 20, 1 << 60).buffer_bytes,
            SMALLEST_BUFFER
        );
    }
}
