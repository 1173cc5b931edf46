//! Wrong data: where, what was expected, what was found.

use std::fmt;

use super::content::WrongByte;

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

#[cfg(test)]
mod tests {
    use super::*;

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
