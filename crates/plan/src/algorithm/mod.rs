//! Algorithms: how a collective call is carried out. One file per algorithm.

mod dynamic_segmentation;
mod groups;
mod individual;
mod one_per_server;
mod private_sieve;
mod resonant;
mod resonant_agents;
mod resonant_prefetch;
mod resonant_timed;
mod static_segmentation;
mod two_phase;

pub use dynamic_segmentation::DynamicSegmentation;
pub use individual::Individual;
pub use one_per_server::OnePerServer;
pub use private_sieve::PrivateSieve;
pub use resonant::Resonant;
pub use resonant_agents::ResonantAgents;
pub use resonant_prefetch::ResonantPrefetch;
pub use resonant_timed::ResonantTimed;
pub use static_segmentation::StaticSegmentation;
pub use two_phase::TwoPhase;

use crate::{Case, Fitness, Plan, partition::Partition};

/// A collective I/O algorithm.
pub trait Algorithm: Sync {
    /// Name in hints and explanations.
    fn name(&self) -> &'static str;

    /// How well it suits a case, and why.
    fn fitness(&self, case: &Case<'_>) -> Fitness;

    /// The partition that the algorithm requires, if any.
    fn partition(&self, _case: &Case<'_>) -> Option<&'static dyn Partition> {
        None
    }

    /// Makes the plan, given the partition and the aggregators.
    fn plan(&self, case: &Case<'_>, choices: &Decisions<'_>) -> Plan;
}

/// Choices that precede the plan.
pub struct Decisions<'a> {
    /// How the file is divided.
    pub partition: &'a dyn Partition,
    /// The ranks that aggregate, in realm order.
    pub aggregators: &'a [u32],
}

/// All algorithms, in tie-breaking order.
pub const ALGORITHMS: &[&dyn Algorithm] = &[
    &Individual,
    &PrivateSieve,
    &TwoPhase,
    &StaticSegmentation,
    &DynamicSegmentation,
    &OnePerServer,
    &Resonant,
    &ResonantTimed,
    &ResonantPrefetch,
    &ResonantAgents,
];

/// The algorithm with this name.
pub fn by_name(name: &str) -> Option<&'static dyn Algorithm> {
    ALGORITHMS
        .iter()
        .copied()
        .find(|algorithm| algorithm.name() == name)
}

/// Rejects a case in which some rank's file offsets do not ascend.
fn descending_offsets(case: &Case<'_>) -> Option<Fitness> {
    let reason = "some rank's file offsets do not ascend, as windows require";
    (!case.is_increasing()).then(|| Fitness::unfit(reason))
}
