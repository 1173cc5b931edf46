//! The contiguous share of a rank that plain POSIX calls move: the yardstick. It has the job's bytes,
//! but not as much memory: a large share goes through a smaller room, call after call.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::buffer::Buffer;
use super::content::{self, WrongByte};
use super::memory::GAP;
use super::wrong::{Fault, Place};
use crate::failure::Failure;

/// Bytes that the rooms of all ranks have together; shares that fit are moved by one call.
const ROOMS: u64 = 512 << 20;

/// Bytes of the smallest room that a share does not fit into, however many ranks there are: calls
/// are long enough for their number not to matter.
const SMALLEST_ROOM: u64 = 1 << 20;

/// A rank's share.
#[derive(Debug, Default)]
pub(crate) struct Share {
    /// Where it is in the file.
    place: Range<u64>,
    /// Bytes of the room.
    room_bytes: u64,
    /// What calls move, once it is made.
    room: Buffer,
}

impl Share {
    /// A rank's share of so many bytes. It has no room yet.
    pub(crate) fn new(rank: u32, ranks: u32, bytes: u64) -> Self {
        let largest_room = (ROOMS / u64::from(ranks)).max(SMALLEST_ROOM);
        Share::with_room(rank, ranks, bytes, largest_room)
    }

    fn with_room(rank: u32, ranks: u32, bytes: u64, largest_room: u64) -> Self {
        let bound = |rank: u32| (u128::from(bytes) * u128::from(rank) / u128::from(ranks)) as u64;
        let place = bound(rank)..bound(rank + 1);
        Share {
            room_bytes: largest_room.min(place.end - place.start),
            place,
            room: Buffer::default(),
        }
    }

    /// Memory that its room takes.
    pub(crate) fn footprint(&self) -> u64 {
        Buffer::footprint(self.room_bytes)
    }

    /// Makes the room, `offset` bytes behind the start of a page.
    pub(crate) fn make(&mut self, offset: usize) -> Result<(), Failure> {
        self.room = Buffer::new(self.room_bytes, GAP, offset)?;
        Ok(())
    }

    /// Gives the room the values of a round: those of the share's first part. The others have the
    /// same, because the clock would not stop while they are computed.
    pub(crate) fn fill(&mut self, round: u64) {
        content::fill(self.room.bytes_mut(), self.place.start, round);
    }

    /// Forgets the data, so that a read that moves nothing is found out.
    pub(crate) fn clear(&mut self) {
        self.room.bytes_mut().fill(GAP);
    }

    /// Writes the share.
    pub(crate) fn write(&self, file: &File) -> io::Result<()> {
        self.parts().try_for_each(|part| {
            let bytes = &self.room.bytes()[..length(&part)];
            file.write_all_at(bytes, part.start)
        })
    }

    /// Reads the share.
    pub(crate) fn read(&mut self, file: &File) -> io::Result<()> {
        self.parts().try_for_each(|part| {
            let bytes = &mut self.room.bytes_mut()[..length(&part)];
            file.read_exact_at(bytes, part.start)
        })
    }

    /// Fails unless a rank has read the values of a round. Of several parts the room has only the
    /// last, on top of the same values: they are read once more, one by one.
    pub(crate) fn check(
        &mut self,
        path: &Path,
        round: u64,
        rank: u32,
    ) -> io::Result<Result<(), Fault>> {
        let again = match length(&self.place) == self.room.bytes().len() {
            true => None,
            false => Some(File::open(path)?),
        };
        for part in self.parts() {
            let bytes = &mut self.room.bytes_mut()[..length(&part)];
            if let Some(file) = &again {
                bytes.fill(GAP);
                file.read_exact_at(bytes, part.start)?;
            }
            if let Some(byte) = content::first_wrong(bytes, self.place.start, round) {
                let offset = byte.offset - self.place.start + part.start;
                return Ok(Err(Fault::Byte {
                    place: Place::Memory { rank },
                    byte: WrongByte { offset, ..byte },
                }));
            }
        }
        Ok(Ok(()))
    }

    /// What each call moves.
    fn parts(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let (place, room) = (self.place.clone(), self.room_bytes.max(1));
        let starts = place.clone().step_by(room as usize);
        starts.map(move |start| start..place.end.min(start + room))
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
    fn written(largest_room: u64) -> (Vec<Share>, NamedTempFile) {
        let file = NamedTempFile::new().unwrap();
        let shares = (0..3).map(|rank| {
            let mut share = Share::with_room(rank, 3, BYTES, largest_room);
            share.make(16).unwrap();
            share.fill(3);
            share.write(file.as_file()).unwrap();
            share
        });
        (shares.collect(), file)
    }

    /// Reads a share and compares it with the values of a round.
    fn read(share: &mut Share, file: &NamedTempFile, round: u64) -> Result<(), Fault> {
        share.clear();
        share.read(file.as_file()).unwrap();
        share.check(file.path(), round, 1).unwrap()
    }

    #[test]
    fn shares_cover_the_bytes_with_any_room() {
        for room in [1, 7, 100, 333, 334, 5000] {
            let (mut shares, file) = written(room);
            assert_eq!(file.as_file().metadata().unwrap().len(), BYTES);
            for share in &mut shares {
                assert!(share.room.bytes().len() as u64 <= room);
                assert_eq!(read(share, &file, 3), Ok(()), "room {room}");
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
    fn after_a_check_the_room_has_the_values_again() {
        for room in [100, 334] {
            let (mut shares, file) = written(room);
            assert_eq!(read(&mut shares[2], &file, 3), Ok(()));
            let place = &shares[2].place;
            let wrong = content::first_wrong(shares[2].room.bytes(), place.start, 3);
            assert_eq!(wrong, None, "room {room}");
        }
    }

    #[test]
    fn any_wrong_byte_is_named_by_its_place_in_the_file() {
        for room in [64, 334] {
            let (mut shares, file) = written(room);
            for at in [333, 334, 400, 665] {
                let mut byte = [0];
                file.as_file().read_exact_at(&mut byte, at).unwrap();
                let [expected] = byte;
                file.as_file().write_all_at(&[expected ^ 1], at).unwrap();
                let wrong = Fault::Byte {
                    place: Place::Memory { rank: 1 },
                    byte: WrongByte {
                        offset: at,
                        expected,
                        found: expected ^ 1,
                    },
                };
                assert_eq!(read(&mut shares[1], &file, 3), Err(wrong));
                file.as_file().write_all_at(&byte, at).unwrap();
            }
        }
    }

    #[test]
    fn a_read_that_moves_nothing_is_found_out() {
        let (mut shares, file) = written(334);
        shares[0].clear();
        assert!(shares[0].check(file.path(), 3, 0).unwrap().is_err());
    }

    #[test]
    fn a_rank_without_a_share_makes_no_call() {
        let mut share = Share::new(0, 3, 2);
        share.make(0).unwrap();
        assert_eq!((share.place.clone(), share.parts().count()), (0..0, 0));
    }

    #[test]
    fn rooms_are_bounded_for_any_number_of_ranks() {
        for ranks in [1, 2, 64] {
            let rooms = (0..ranks).map(|rank| Share::new(rank, ranks, 1 << 40).room_bytes);
            assert_eq!(rooms.sum::<u64>(), ROOMS);
        }
        assert_eq!(Share::new(0, 1 << 20, 1 << 60).room_bytes, SMALLEST_ROOM);
    }
}
