//! The result of an access.

use pario_layout::Datatype;

/// The amount of data that an access moved, which may be less than requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    bytes: u64,
}

impl Status {
    pub(crate) fn new(bytes: u64) -> Status {
        Status { bytes }
    }

    /// Bytes of memory that were read from or written to the file.
    pub fn bytes(self) -> u64 {
        self.bytes
    }

    /// The number of items of a datatype in these bytes; `None` if it is not a whole number.
    pub fn count(self, datatype: &Datatype) -> Option<u64> {
        match (self.bytes, datatype.size()) {
            (0, _) => Some(0),
            (_, 0) => None,
            (bytes, size) => bytes.is_multiple_of(size).then_some(bytes / size),
        }
    }
}
