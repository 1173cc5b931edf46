//! One aggregator a server (Chaarawi 2011): each I/O node receives requests from
//! a single process.

use super::{Algorithm, Decisions, not_ascending, two_phase};
use crate::{
    Case, Direction, Fitness, LockProtocol, Plan,
    partition::{FileLayout, Partition},
};

/// Two-phase with as many aggregators as servers.
#[derive(Debug)]
pub struct OnePerServer;

impl Algorithm for OnePerServer {
    fn name(&self) -> &'static str {
        "one-per-server"
    }

    fn suit(&self, case: &Case<'_>) -> Fitness {
        if let Some(unfit) = not_ascending(case) {
            return unfit;
        }
        let Some(striping) = case.facts.striping else {
            return Fitness::unfit("the file's servers are not known");
        };
        let enough = striping.count <= u64::from(case.ranks());
        match (case.direction, case.facts.lock_protocol, enough) {
            (Direction::Read, _, _) => Fitness::suits(
                18,
                "what a server reads ahead would belong to another aggregator",
            ),
            (_, LockProtocol::Server, true) => Fitness::suits(
                45,
                format!("each of {} servers hears one process", striping.count),
            ),
            (_, _, true) => Fitness::suits(30, "servers do not mind hearing several processes"),
            (_, _, false) => Fitness::suits(
                8,
                format!(
                    "{} servers for {} ranks: some would serve several",
                    striping.count,
                    case.ranks()
                ),
            ),
        }
    }

    fn partition(&self, _case: &Case<'_>) -> Option<&'static dyn Partition> {
        Some(&FileLayout)
    }

    fn plan(&self, case: &Case<'_>, choices: &Decisions<'_>) -> Plan {
        Plan::Rounds(two_phase::rounds(case, choices))
    }
}
