//! One aggregator per server (Chaarawi 2011): each I/O node receives requests
//! from a single process.

use super::{Algorithm, Decisions, descending_offsets, two_phase};
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

    fn fitness(&self, case: &Case<'_>) -> Fitness {
        if let Some(unfit) = descending_offsets(case) {
            return unfit;
        }
        let servers = match case.one_striping() {
            Ok(stripes) => stripes.servers(),
            Err(unfit) => return unfit,
        };
        let enough = servers <= u64::from(case.ranks());
        match (case.direction, case.facts.lock_protocol, enough) {
            (Direction::Read, _, _) => Fitness::suits(
                18,
                "a server's read-ahead would belong to another aggregator",
            ),
            (_, LockProtocol::Server, true) => Fitness::suits(
                45,
                format!("each of {servers} servers gets requests from one process"),
            ),
            (_, _, true) => {
                Fitness::suits(30, "servers handle requests from several processes well")
            }
            (_, _, false) => Fitness::suits(
                8,
                format!(
                    "{servers} servers for {} ranks: some ranks would aggregate for several",
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
