//! Resonant I/O with agents (paper 003, section 3.3): the rank with most of a
//! server's data asks for all of it, in ascending order, and exchanges it
//! with the others.

use super::{Algorithm, Choices, not_ascending, two_phase};
use crate::{
    Case, Direction, Issuer, Plan, Rounds, Verdict,
    partition::{ByServer, Partition},
};

/// An agent for each server.
#[derive(Debug)]
pub struct Resonant;

impl Algorithm for Resonant {
    fn name(&self) -> &'static str {
        "resonant"
    }

    fn suit(&self, case: &Case<'_>) -> Verdict {
        if let Some(unfit) = not_ascending(case).or_else(|| without_servers(case)) {
            return unfit;
        }
        match case.direction {
            Direction::Read => Verdict::suits(
                35,
                "servers with disks are read in order, but their read-ahead is lost",
            ),
            Direction::Write => Verdict::suits(42, "each server is written in ascending order"),
        }
    }

    fn partition(&self, _case: &Case<'_>) -> Option<&'static dyn Partition> {
        Some(&ByServer)
    }

    fn plan(&self, case: &Case<'_>, choices: &Choices<'_>) -> Plan {
        Plan::Rounds(agents(case, choices))
    }
}

/// What resonant methods say where striping is not known.
pub(super) fn without_servers(case: &Case<'_>) -> Option<Verdict> {
    let unknown = case.facts.striping.is_none();
    unknown.then(|| Verdict::unfit("the file's servers are not known"))
}

/// Agents' realms, moved by the agents themselves: the order at a server is
/// the point, so no other rank may issue a window.
pub(super) fn agents(case: &Case<'_>, choices: &Choices<'_>) -> Rounds {
    Rounds {
        issuer: Issuer::Aggregator,
        ..two_phase::rounds(case, choices)
    }
}
