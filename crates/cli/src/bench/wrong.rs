//! Wrong data: where, what was expected, what was found.

use std::fmt;

use super::content::{self, WrongByte};
use crate::workload::Job;

/// Where wrong data was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the file.
    File,
    /// In what a rank read; the offset is that in the file.
    Memory {
        /// The rank.
        rank: u32,
    },
    /// In memory that no one asked to fill; the offset is that in the memory of the call.
    Gap {
        /// The rank.
        rank: u32,
        /// The call.
        call: u64,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File => f.write_str("of the file"),
            Place::Memory { rank } => write!(f, "of the file, as rank {rank} read it"),
            Place::Gap { rank, call } => write!(
                f,
                "of rank {rank}'s memory for call {call}, which was not to be filled"
            ),
        }
    }
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A byte, the first one.
    Byte {
        /// Where it is.
        place: Place,
        /// What it is.
        byte: WrongByte,
    },
    /// The file is longer or shorter than what was written.
    Length {
        /// The end of what was written.
        expected: u64,
        /// The file's end.
        found: u64,
    },
    /// A call reported another number of bytes than it was asked to move.
    Count {
        /// The rank whose call it was.
        rank: u32,
        /// What it was asked to move.
        expected: u64,
        /// What it said it moved.
        found: u64,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Byte { place, byte } => write!(
                f,
                "byte {} {place}: expected {:#04x}, found {:#04x}",
                byte.offset, byte.expected, byte.found
            ),
            Fault::Length { expected, found } => {
                write!(f, "the file has {found} bytes, expected {expected}")
            }
            Fault::Count {
                rank,
                expected,
                found,
            } => write!(
                f,
                "rank {rank} was told that {found} bytes were moved, expected {expected}"
            ),
        }
    }
}

/// Compares a whole file with what a job writes in a round: its pieces by the formula, and zeroes
/// where no one wrote. What was compared is cleared.
pub(crate) fn check_file(
    job: &dyn Job,
    ranks: u32,
    round: u64,
    file: &mut [u8],
) -> Result<(), Fault> {
    let (mut end, mut fault) = (0, None);
    for rank in 0..ranks {
        for call in 0..job.calls() {
            job.pieces(rank, call, &mut |piece| {
                end = end.max(piece.file + piece.bytes);
                let length = file.len() as u64;
                let inside = piece.file.min(length) as usize
                    ..(piece.file + piece.bytes).min(length) as usize;
                let wrong = content::first_wrong(&file[inside.clone()], piece.file, round);
                fault = fault.or(wrong);
                file[inside].fill(0);
            });
        }
    }
    let found = file.len() as u64;
    let hole = || {
        let offset = file.iter().position(|byte| *byte != 0)?;
        Some(WrongByte {
            offset: offset as u64,
            expected: 0,
            found: file[offset],
        })
    };
    let place = Place::File;
    match fault.or_else(hole) {
        Some(byte) => Err(Fault::Byte { place, byte }),
        None if found != end => Err(Fault::Length {
            expected: end,
            found,
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Parameters, Setting, by_name};

    /// A job with holes, and its file.
    fn job_and_file() -> (Box<dyn Job>, Vec<u8>) {
        let setting = Setting {
            ranks: 2,
            scale: 0.0001,
            parameters: Parameters::default(),
        };
        let job = by_name("hpio").unwrap().job(&setting).unwrap();
        let mut file = Vec::new();
        for rank in 0..2 {
            job.pieces(rank, 0, &mut |piece| {
                let end = (piece.file + piece.bytes) as usize;
                file.resize(file.len().max(end), 0);
                content::fill(&mut file[piece.file as usize..end], piece.file, 2);
            });
        }
        (job, file)
    }

    #[test]
    fn the_right_file_passes() {
        let (job, mut file) = job_and_file();
        assert_eq!(check_file(&*job, 2, 2, &mut file), Ok(()));
    }

    #[test]
    fn any_wrong_byte_is_named() {
        let (job, file) = job_and_file();
        for at in [0, 9, 255, 256, 300, file.len() - 1] {
            let mut file = file.clone();
            file[at] ^= 0x10;
            let byte = WrongByte {
                offset: at as u64,
                expected: file[at] ^ 0x10,
                found: file[at],
            };
            let place = Place::File;
            let wrong = Err(Fault::Byte { place, byte });
            assert_eq!(check_file(&*job, 2, 2, &mut file), wrong);
        }
    }

    #[test]
    fn a_wrong_length_is_named() {
        let (job, file) = job_and_file();
        let expected = file.len() as u64;
        for found in [expected - 3, expected + 1] {
            let mut file = file.clone();
            file.resize(found as usize, 0);
            let wrong = Err(Fault::Length { expected, found });
            assert_eq!(check_file(&*job, 2, 2, &mut file), wrong);
        }
    }

    #[test]
    fn the_message_has_offset_expected_and_found() {
        let byte = WrongByte {
            offset: 23,
            expected: 0x3f,
            found: 0xbf,
        };
        let fault = Fault::Byte {
            place: Place::Memory { rank: 3 },
            byte,
        };
        assert_eq!(
            fault.to_string(),
            "byte 23 of the file, as rank 3 read it: expected 0x3f, found 0xbf"
        );
    }
}
