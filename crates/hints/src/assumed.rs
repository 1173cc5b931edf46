//! Facts about a file system that users can set, for tests and experiments.

/// The striping that a file is assumed to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AssumedStriping {
    /// Bytes per stripe.
    pub unit: u64,
    /// Number of servers.
    pub count: u64,
}
