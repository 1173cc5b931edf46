//! Resonant I/O with agents that move the data of all ranks (Zhang 2009, section
//! 3.3): each server gets requests from one process, in ascending order, and the
//! ranks exchange data with the agents.

use super::{
    Algorithm, Decisions, descending_offsets,
    resonant::{agents, by_name_only, unknown_striping},
};
use crate::{
    Case, Fitness, Plan,
    partition::{ByServer, Partition},
};

/// Agents move the data of all ranks.
#[derive(Debug)]
pub struct ResonantAgents;

impl Algorithm for ResonantAgents {
    fn name(&self) -> &'static str {
        "resonant-agents"
    }

    fn fitness(&self, case: &Case<'_>) -> Fitness {
        let unfit = descending_offsets(case).or_else(|| unknown_striping(case));
        unfit.unwrap_or_else(by_name_only)
    }

    fn partition(&self, _case: &Case<'_>) -> Option<&'static dyn Partition> {
        Some(&ByServer)
    }

    fn plan(&self, case: &Case<'_>, _choices: &Decisions<'_>) -> Plan {
        Plan::Rounds(agents(case))
    }
}
