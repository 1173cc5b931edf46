//! Resonant I/O with agents that prefetch (Zhang 2009, section 3.3): agents
//! request their servers' data in order, and every rank then reads its own
//! pieces from the servers' caches.

use super::{
    Algorithm, Decisions, descending_offsets,
    resonant::{agents, unknown_striping},
};
use crate::{
    Case, Client, Direction, Fitness, Plan,
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
        let piece = case.pattern().piece_bytes;
        match case.facts.client {
            Client::Library if piece >= case.boundary() => Fitness::suits(
                45,
                format!("pieces of {piece} bytes are read from the servers' caches"),
            ),
            _ => Fitness::suits(
                20,
                format!("every rank would request pieces of {piece} bytes again"),
            ),
        }
    }

    fn partition(&self, _case: &Case<'_>) -> Option<&'static dyn Partition> {
        Some(&ByServer)
    }

    fn plan(&self, case: &Case<'_>, _choices: &Decisions<'_>) -> Plan {
        Plan::Prefetch(agents(case))
    }
}
