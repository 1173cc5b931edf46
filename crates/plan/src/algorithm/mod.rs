//! Algorithms: how a collective call is carried out. One file a method.

mod individual;
mod private_sieve;
mod two_phase;

pub use individual::Individual;
pub use private_sieve::PrivateSieve;
pub use two_phase::TwoPhase;

use crate::{Case, Plan, Verdict, partition::Partition};

/// A way to carry out a collective call.
pub trait Algorithm: Sync {
    /// Its name, in hints and explanations.
    fn name(&self) -> &'static str;

    /// How well it suits a case, and why.
    fn suit(&self, case: &Case<'_>) -> Verdict;

    /// The partition it insists on, if any.
    fn partition(&self, _case: &Case<'_>) -> Option<&'static dyn Partition> {
        None
    }

    /// The plan, with the partition and the aggregators chosen.
    fn plan(&self, case: &Case<'_>, choices: &Choices<'_>) -> Plan;
}

/// What was chosen before the plan is made.
pub struct Choices<'a> {
    /// How the file is divided.
    pub partition: &'a dyn Partition,
    /// The ranks that aggregate, in realm order.
    pub aggregators: &'a [u32],
}

/// All algorithms, in the order in which ties are resolved.
pub const ALGORITHMS: &[&dyn Algorithm] = &[&Individual, &PrivateSieve, &TwoPhase];

/// The algorithm of that name.
pub fn by_name(name: &str) -> Option<&'static dyn Algorithm> {
    ALGORITHMS
        .iter()
        .copied()
        .find(|algorithm| algorithm.name() == name)
}
