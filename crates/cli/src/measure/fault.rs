//! Wrong data: where it is, what was expected, what was found.

use std::fmt;

use super::content::WrongByte;

/// Where wrong data was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    File,
    /// In the data that a rank read; the offset is in the file.
    Memory {
        rank: u32,
    },
    /// In memory between pieces; the offset is in the memory of the call.
    Gap {
        rank: u32,
        call: u64,
    },
}

impl Place {
    /// A wrong byte at this place.
    pub(crate) fn wrong(self, byte: WrongByte) -> Fault {
        Fault::Byte { place: self, byte }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File => f.write_str("of the file"),
            Place::Memory { rank } => write!(f, "of the file, as rank {rank} read it"),
            Place::Gap { rank, call } => {
                write!(f, "of rank {rank}'s memory in call {call}, between pieces")
            }
        }
    }
}

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A byte, the first one.
    Byte { place: Place, byte: WrongByte },
    /// The file is longer or shorter than what was written.
    Length { expected: u64, found: u64 },
    /// Calls reported a different number of bytes than requested.
    Count {
        rank: u32,
        expected: u64,
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
                "the calls of rank {rank} reported {found} bytes, expected {expected}"
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
        assert_eq!(
            Place::Memory { rank: 3 }.wrong(byte).to_string(),
            "byte 23 of the file, as rank 3 read it: expected 0x3f, found 0xbf"
        );
    }
}
