//! Private sieve: every rank streams the whole region through a small buffer
//! and keeps its own pieces. There is no exchange, but each byte of the file is
//! read once per rank.

use super::{Algorithm, Decisions, descending_offsets};
use crate::{Case, Client, Direction, Fitness, Plan};

/// Every rank reads the whole region.
#[derive(Debug)]
pub struct PrivateSieve;

/// With more ranks per node, reading everything that often costs more than an
/// exchange.
const RANKS_PER_NODE_MAX: u32 = 2;

impl Algorithm for PrivateSieve {
    fn name(&self) -> &'static str {
        "private-sieve"
    }

    fn fitness(&self, case: &Case<'_>) -> Fitness {
        if case.direction == Direction::Write {
            return Fitness::unfit("only reads can be sieved privately");
        }
        if let Some(unfit) = descending_offsets(case) {
            return unfit;
        }
        if case.facts.client == Client::Library {
            return Fitness::suits(1, "every rank would read the whole region from the servers");
        }
        let pattern = case.pattern();
        if case.facts.client == Client::Kernel && pattern.nodes > 1 {
            return Fitness::suits(
                5,
                "every node would request the whole region from the servers",
            );
        }
        let ranks = case.ranks();
        match (pattern.is_interleaved, ranks <= RANKS_PER_NODE_MAX) {
            (true, true) if pattern.nodes == 1 => {
                Fitness::suits(40, "ranks that share memory can read each byte once")
            }
            (true, true) => Fitness::suits(70, "few ranks read small interleaved pieces"),
            (true, false) => Fitness::suits(
                15,
                format!("{ranks} ranks would each read the whole region"),
            ),
            (false, _) => Fitness::suits(15, "the ranks' pieces are not interleaved"),
        }
    }

    fn plan(&self, case: &Case<'_>, _choices: &Decisions<'_>) -> Plan {
        Plan::PrivateSieve {
            buffer_bytes: case.private_buffer_bytes(),
        }
    }
}
