//! Resonant I/O with agents that prefetch (Zhang 2009, section 3.3): agents
//! request their servers' data in order, and every rank then reads its own
//! pieces from the servers' caches.

use super::{
    Algorithm, Decisions, descending_offsets,
    resonant::{agents, by_name_only, unknown_striping},
};
use crate::{
    Case, Direction, Fitness, Plan,
    partition::{ByServer, Partition},
};

/// Agents read ahead for all ranks.
#[derive(Debug)]
pub struct ResonantPrefetch;

impl Algorithm for ResonantPrefetch {
    fn name(&self) -> &'static str {
        "resonant-prefetch"
    }

    fn fitness(&self, case: &Case<'_>) -> Fitness {
        if case.direction == Direction::Write {
            return Fitness::unfit("only reads can be prefetched");
        }
        if let Some(unfit) = descending_offsets(case).or_else(|| unknown_striping(case)) {
            return unfit;
        }
        match case.facts.nonblocking {
            true => by_name_only(),
            false => Fitness::unfit("requests cannot be sent ahead without nonblocking I/O"),
        }
    }

    fn partition(&self, _case: &Case<'_>) -> Option<&'static dyn Partition> {
        Some(&ByServer)
    }

    fn plan(&self, case: &Case<'_>, _choices: &Decisions<'_>) -> Plan {
        Plan::Prefetch(agents(case))
    }
}
