//! What an access did.

use pario_layout::Datatype;

/// How much an access moved: what was transferred, not what was asked.
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

    /// How many whole items of a datatype that was; `None` if it was not a
    /// whole number of them.
    pub fn count(self, datatype: &Datatype) -> Option<u64> {
        match (self.bytes, datatype.size()) {
            (0, _) => Some(0),
            (_, 0) => None,
            (bytes, size) => bytes.is_multiple_of(size).then_some(bytes / size),
        }
    }
}
