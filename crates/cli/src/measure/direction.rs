use serde::{Deserialize, Serialize};

/// The direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Direction {
    /// From memory to the file.
    Write,
    /// From the file to memory.
    Read,
}

impl Direction {
    /// Both, in the order in which they are measured.
    pub(crate) const ALL: [Direction; 2] = [Direction::Write, Direction::Read];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Direction::Write => "write",
            Direction::Read => "read",
        }
    }
}

impl From<Direction> for pario_plan::Direction {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Write => pario_plan::Direction::Write,
            Direction::Read => pario_plan::Direction::Read,
        }
    }
}
