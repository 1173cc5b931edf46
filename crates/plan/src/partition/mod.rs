//! Partitions: how the file is divided into realms. One file per partition.

mod aligned;
mod balanced;
pub(crate) mod by_server;
mod contiguous;
mod cyclic;
mod even;
mod file_layout;
mod group_cyclic;
mod neighbours;
mod persistent;
mod server_data;
mod static_cyclic;
mod stripe_multiple;

pub use aligned::Aligned;
pub use balanced::Balanced;
pub use by_server::ByServer;
pub use even::Even;
pub use file_layout::FileLayout;
pub use group_cyclic::GroupCyclic;
pub use neighbours::Neighbours;
pub use persistent::Persistent;
pub use static_cyclic::StaticCyclic;
pub use stripe_multiple::StripeMultiple;

use crate::{Case, Fitness, PersistentRealms, Realm, Stripes, Striping};

/// A method to divide the file among aggregators.
pub trait Partition: Sync {
    /// Name in hints and explanations.
    fn name(&self) -> &'static str;

    /// How well it suits a case, and why.
    fn fitness(&self, case: &Case<'_>) -> Fitness;

    /// The realms, each with the rank that owns it. They do not overlap, and
    /// together they cover the region of the case (at least every byte that
    /// some rank moves). `candidates` are the ranks chosen as aggregators; a
    /// partition that determines the owners itself may use other ranks.
    fn realms(&self, case: &Case<'_>, candidates: &[u32]) -> Vec<(u32, Realm)>;

    /// State to keep for later calls.
    fn remember(&self, _case: &Case<'_>, _candidates: &[u32]) -> Option<PersistentRealms> {
        None
    }
}

/// All partitions, in tie-breaking order.
pub const PARTITIONS: &[&dyn Partition] = &[
    &Even,
    &Aligned,
    &StaticCyclic,
    &GroupCyclic,
    &Persistent::ANY,
    &Persistent::ALIGNED,
    &ByServer,
    &FileLayout,
    &StripeMultiple,
    &Neighbours,
    &Balanced,
];

/// The partition with this name.
pub fn by_name(name: &str) -> Option<&'static dyn Partition> {
    PARTITIONS
        .iter()
        .copied()
        .find(|partition| partition.name() == name)
}

/// The file's stripes, or those that are assumed if the striping is unknown.
fn stripes(case: &Case<'_>, candidates: &[u32]) -> Stripes {
    let known = case.stripes();
    known.unwrap_or_else(|| assumed_stripes(case, candidates))
}

/// As if each candidate were a server and a stripe as long as a lock.
fn assumed_stripes(case: &Case<'_>, candidates: &[u32]) -> Stripes {
    let striping = Striping {
        unit: case.boundary(),
        count: candidates.len().max(1) as u64,
    };
    striping.into()
}
