//! Wrong data: where, what was expected, what was found.

use std::fmt;
use std::io::{self, Read};

use super::array::Array;
use super::cells::{self, CELL_BYTES, WrongByte};

/// Cells compared at a time.
const CHUNK_CELLS: usize = 64 * 1024;

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
    /// In ghost cells, which no one asked to read; the offset is that in the rank's memory.
    Ghost {
        /// The rank.
        rank: u32,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File => f.write_str("of the file"),
            Place::Memory { rank } => write!(f, "of the file, as rank {rank} read it"),
            Place::Ghost { rank } => write!(f, "of rank {rank}'s memory, a ghost cell"),
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
    /// The file is longer or shorter than the array.
    Length {
        /// The array's bytes.
        expected: u64,
        /// The file's.
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

/// Compares a whole file with what the array holds in a round.
pub(crate) fn check_file(
    array: &Array,
    round: u64,
    mut file: impl Read,
) -> io::Result<Result<(), Fault>> {
    let mut chunk = vec![0; CHUNK_CELLS * CELL_BYTES as usize];
    let mut length = 0;
    loop {
        let filled = fill(&mut file, &mut chunk)?;
        let inside = (array.bytes().saturating_sub(length)).min(filled as u64) as usize;
        let first = length / CELL_BYTES;
        if let Some(byte) = cells::first_wrong(&chunk[..inside], first, round) {
            return Ok(Err(Fault::Byte {
                place: Place::File,
                byte,
            }));
        }
        length += filled as u64;
        if filled < chunk.len() {
            break;
        }
    }
    if length == array.bytes() {
        return Ok(Ok(()));
    }
    Ok(Err(Fault::Length {
        expected: array.bytes(),
        found: length,
    }))
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::super::array::Shape;
    use super::*;

    fn array_and_bytes() -> (Array, Vec<u8>) {
        // More than one chunk, and a last one that is not full.
        let array = Array::new(Shape([3, 160, 160]), 4).unwrap();
        let mut bytes = vec![0; array.bytes() as usize];
        cells::fill(&mut bytes, 0, 2);
        (array, bytes)
    }

    #[test]
    fn the_right_file_passes() {
        let (array, bytes) = array_and_bytes();
        assert_eq!(check_file(&array, 2, &bytes[..]).unwrap(), Ok(()));
    }

    #[test]
    fn a_wrong_byte_is_named() {
        let (array, mut bytes) = array_and_bytes();
        let chunk = CHUNK_CELLS * CELL_BYTES as usize;
        for at in [0, 9, chunk - 1, chunk, bytes.len() - 1] {
            let expected = bytes[at];
            bytes[at] ^= 0x10;
            let byte = WrongByte {
                offset: at as u64,
                expected,
                found: bytes[at],
            };
            let fault = Fault::Byte {
                place: Place::File,
                byte,
            };
            assert_eq!(check_file(&array, 2, &bytes[..]).unwrap(), Err(fault));
            bytes[at] = expected;
        }
    }

    #[test]
    fn a_wrong_length_is_named() {
        let (array, mut bytes) = array_and_bytes();
        bytes.push(0);
        let longer = check_file(&array, 2, &bytes[..]).unwrap();
        bytes.truncate(bytes.len() - 4);
        let shorter = check_file(&array, 2, &bytes[..]).unwrap();
        for (fault, found) in [(longer, array.bytes() + 1), (shorter, array.bytes() - 3)] {
            assert_eq!(
                fault,
                Err(Fault::Length {
                    expected: array.bytes(),
                    found
                })
            );
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
