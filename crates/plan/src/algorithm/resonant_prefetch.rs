//! Resonant I/O with agents whose requests serve as prefetch (Zhang 2009,
//! section 3.3): agents ask for their servers' data in order, and every rank
//! then reads its own pieces, which are in the servers' caches by then.

use super::{
    Algorithm, Decisions, not_ascending,
    resonant::{agents, without_servers},
};
use crate::{
    Case, Client, Direction, Fitness, Plan,
    partition::{ByServer, Partition},
};

/// Agents read ahead for everyone.
#[derive(Debug)]
pub struct ResonantPrefetch;

impl Algorithm for ResonantPrefetch {
    fn name(&self) -> &'static str {
        "resonant-prefetch"
    }

    fn suit(&self, case: &Case<'_>) -> Fitness {
        if case.direction == Direction::Write {
            return Fitness::unfit("only reads can be prefetched");
        }
        if let Some(unfit) = not_ascending(case).or_else(|| without_servers(case)) {
            return unfit;
        }
        let piece = case.pattern().piece_bytes;
        match case.facts.client {
            Client::Library if piece >= case.boundary() => Fitness::suits(
                45,
                format!("pieces of {piece} bytes are read straight from the servers' caches"),
            ),
            _ => Fitness::suits(
                20,
                format!("every rank would ask again for pieces of {piece} bytes"),
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
