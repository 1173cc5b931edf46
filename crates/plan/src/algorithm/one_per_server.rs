//! One aggregator a server (Chaarawi 2011): each I/O node receives requests from
//! a single process.

use super::{Algorithm, Choices, not_ascending, two_phase};
use crate::{
    Case, Direction, LockProtocol, Plan, Verdict,
    partition::{FileLayout, Partition},
};

/// Two-phase with as many aggregators as servers.
#[derive(Debug)]
pub struct OnePerServer;

impl Algorithm for OnePerServer {
    fn name(&self) -> &'static str {
        "one-per-server"
    }

    fn suit(&self, case: &Case<'_>) -> Verdict {
        if let Some(unfit) = not_ascending(case) {
            return unfit;
        }
        let Some(striping) = case.facts.striping else {
            return Verdict::unfit("the file's servers are not known");
        };
        let enough = striping.count <= u64::from(case.ranks());
        match (case.direction, case.facts.lock_protocol, enough) {
            (Direction::Read, _, _) => Verdict::suits(
                18,
                "what a server reads ahead would belong to another aggregator",
            ),
            (_, LockProtocol::Server, true) => Verdict::suits(
                45,
                format!("each of {} servers hears one process", striping.count),
            ),
            (_, _, true) => Verdict::suits(30, "servers do not mind hearing several processes"),
            (_, _, false) => Verdict::suits(
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

    fn plan(&self, case: &Case<'_>, choices: &Choices<'_>) -> Plan {
        Plan::Rounds(two_phase::rounds(case, choices))
    }
}
