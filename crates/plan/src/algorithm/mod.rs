//! Algorithms: how a collective call is carried out. One file a method.

mod dynamic_segmentation;
mod groups;
mod individual;
mod one_per_server;
mod private_sieve;
mod resonant;
mod resonant_prefetch;
mod resonant_timed;
mod static_segmentation;
mod two_phase;

pub use dynamic_segmentation::DynamicSegmentation;
pub use individual::Individual;
pub use one_per_server::OnePerServer;
pub use private_sieve::PrivateSieve;
pub use resonant::Resonant;
pub use resonant_prefetch::ResonantPrefetch;
pub use resonant_timed::ResonantTimed;
pub use static_segmentation::StaticSegmentation;
pub use two_phase::TwoPhase;

use crate::{Case, Fitness, Plan, partition::Partition};

/// A way to carry out a collective call.
pub trait Algorithm: Sync {
    /// Its name, in hints and explanations.
    fn name(&self) -> &'static str;

    /// How well it suits a case, and why.
    fn suit(&self, case: &Case<'_>) -> Fitness;

    /// The partition it insists on, if any.
    fn partition(&self, _case: &Case<'_>) -> Option<&'static dyn Partition> {
        None
    }

    /// The plan, with the partition and the aggregators chosen.
    fn plan(&self, case: &Case<'_>, choices: &Decisions<'_>) -> Plan;
}

/// What was chosen before the plan is made.
pub struct Decisions<'a> {
    /// How the file is divided.
    pub partition: &'a dyn Partition,
    /// The ranks that aggregate, in realm order.
    pub aggregators: &'a [u32],
}

/// All algorithms, in the order in which ties are resolved.
pub const ALGORITHMS: &[&dyn Algorithm] = &[
    &Individual,
    &PrivateSieve,
    &TwoPhase,
    &StaticSegmentation,
    &DynamicSegmentation,
    &OnePerServer,
    &Resonant,
    &ResonantPrefetch,
    &ResonantTimed,
];

/// The algorithm of that name.
pub fn by_name(name: &str) -> Option<&'static dyn Algorithm> {
    ALGORITHMS
        .iter()
        .copied()
        .find(|algorithm| algorithm.name() == name)
}

/// What a method that needs ascending bytes says where they do not ascend.
fn not_ascending(case: &Case<'_>) -> Option<Fitness> {
    let reason = "some rank's bytes do not ascend: no window can hold them";
    (!case.is_increasing()).then(|| Fitness::unfit(reason))
}
