//! Partitions: how the file is divided into realms. One file a method.

mod even;

pub use even::Even;

use crate::{Case, Realm, Verdict};

/// A way to divide the file among aggregators.
pub trait Partition: Sync {
    /// Its name, in hints and explanations.
    fn name(&self) -> &'static str;

    /// How well it suits a case, and why.
    fn suit(&self, case: &Case<'_>) -> Verdict;

    /// The realms of `candidates.len()` aggregators or fewer, each with the
    /// rank that owns it. They do not overlap, and together they hold all of
    /// the case's region (at least every byte of it that some rank moves).
    /// `candidates` are the ranks chosen as aggregators; a partition that
    /// knows better which rank should own which realm may use others.
    fn realms(&self, case: &Case<'_>, candidates: &[u32]) -> Vec<(u32, Realm)>;

    /// What later calls must keep to.
    fn remember(&self, _case: &Case<'_>, _aggregators: usize) -> Option<u64> {
        None
    }
}

/// All partitions, in the order in which ties are resolved.
pub const PARTITIONS: &[&dyn Partition] = &[&Even];

/// The partition of that name.
pub fn by_name(name: &str) -> Option<&'static dyn Partition> {
    PARTITIONS
        .iter()
        .copied()
        .find(|partition| partition.name() == name)
}
