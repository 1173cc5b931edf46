//! Resonant I/O with agents (Zhang 2009, section 3.3): the rank with the most
//! data on a server requests all of that server's data, in ascending order, and
//! exchanges it with the others.

use super::{Algorithm, Decisions, descending_offsets};
use crate::{
    Aggregator, Case, Direction, Fitness, Members, Plan, Rounds, WindowWriter,
    partition::{ByServer, Partition, by_server},
};

/// One agent per server.
#[derive(Debug)]
pub struct Resonant;

impl Algorithm for Resonant {
    fn name(&self) -> &'static str {
        "resonant"
    }

    fn fitness(&self, case: &Case<'_>) -> Fitness {
        if let Some(unfit) = descending_offsets(case).or_else(|| unknown_striping(case)) {
            return unfit;
        }
        match case.direction {
            Direction::Read => Fitness::suits(
                35,
                "servers with disks are read in order, but without read-ahead",
            ),
            Direction::Write => Fitness::suits(42, "each server is written in ascending order"),
        }
    }

    fn partition(&self, _case: &Case<'_>) -> Option<&'static dyn Partition> {
        Some(&ByServer)
    }

    fn plan(&self, case: &Case<'_>, _choices: &Decisions<'_>) -> Plan {
        Plan::Rounds(agents(case))
    }
}

/// Rejects a case whose striping is unknown.
pub(super) fn unknown_striping(case: &Case<'_>) -> Option<Fitness> {
    let unknown = case.striping().is_none();
    unknown.then(|| Fitness::unfit("the striping of the file is unknown"))
}

/// The agents' realms. Agents move their own windows, since the order of
/// requests at a server matters. Agents of one server start one after another.
pub(super) fn agents(case: &Case<'_>) -> Rounds {
    let agents = match case.striping() {
        Some(striping) => by_server::agents(case, striping),
        None => Vec::new(),
    };
    let aggregator = |agent: by_server::Agent| Aggregator {
        rank: agent.rank,
        realm: agent.realm,
        members: Members::All,
        delay_us: u64::from(agent.index).saturating_mul(case.tuning.timed_delay_us),
    };
    let (_, window_bytes) = case.windows();
    Rounds {
        aggregators: agents.into_iter().map(aggregator).collect(),
        window_bytes,
        writer: WindowWriter::Aggregator,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Striping,
        testing::{Fixture, dense},
    };

    #[test]
    fn agents_of_one_server_are_staggered() {
        let mut fixture = Fixture::new(vec![dense(0, 1000); 4]);
        fixture.facts.striping = Some(Striping {
            unit: 100,
            count: 2,
        });
        fixture.tuning.agents_per_server = 2;
        fixture.tuning.timed_delay_us = 300;
        let rounds = agents(&fixture.case());
        let delays: Vec<u64> = rounds.aggregators.iter().map(|it| it.delay_us).collect();
        assert_eq!(delays, [0, 300, 0, 300]);
        assert_eq!(rounds.writer, WindowWriter::Aggregator);
    }
}
