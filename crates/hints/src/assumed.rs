//! Facts about a file system that users may pretend, for tests and
//! experiments.

/// Striping that a file is treated as having.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AssumedStriping {
    /// Bytes in a row on one server.
    pub unit: u64,
    /// Servers.
    pub count: u64,
}
