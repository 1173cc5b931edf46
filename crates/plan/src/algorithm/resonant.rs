//! Resonant I/O (Zhang 2009, figure 4): each server receives ascending requests.
//! Long pieces in rank order only need staggered starts (`resonant-timed`).
//! Otherwise an agent per server, the rank with the most data there, requests all
//! of that server's data: for long reads ahead of the ranks, which then read
//! from the server's cache (`resonant-prefetch`), else for an exchange with the
//! others.

use super::{Algorithm, Decisions, ResonantPrefetch, ResonantTimed, descending_offsets};
use crate::{
    Aggregator, Case, Direction, Fitness, Members, Plan, Rounds, WindowWriter,
    partition::{ByServer, Partition, by_server},
};

/// Requests in the order that suits each server.
#[derive(Debug)]
pub struct Resonant;

/// The ways to have them in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    /// Groups of ranks start one after another.
    Timed,
    /// Agents read ahead.
    Prefetch,
    /// Agents move the data of all.
    Agents,
}

impl Variant {
    fn of(case: &Case<'_>) -> Variant {
        let is_long = case.pattern().piece_bytes >= case.boundary();
        let is_usable = |it: &dyn Algorithm| it.fitness(case).priority().is_some();
        match is_long {
            true if is_usable(&ResonantTimed) => Variant::Timed,
            true if is_usable(&ResonantPrefetch) => Variant::Prefetch,
            _ => Variant::Agents,
        }
    }
}

impl Algorithm for Resonant {
    fn name(&self) -> &'static str {
        "resonant"
    }

    fn fitness(&self, case: &Case<'_>) -> Fitness {
        if let Some(unfit) = descending_offsets(case).or_else(|| unknown_striping(case)) {
            return unfit;
        }
        match case.direction {
            _ if Variant::of(case) != Variant::Agents => {
                Fitness::suits(40, "long pieces need no exchange")
            }
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

    fn plan(&self, case: &Case<'_>, choices: &Decisions<'_>) -> Plan {
        match Variant::of(case) {
            Variant::Timed => ResonantTimed.plan(case, choices),
            Variant::Prefetch => ResonantPrefetch.plan(case, choices),
            Variant::Agents => Plan::Rounds(agents(case)),
        }
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
        Client, Striping,
        testing::{Fixture, dense},
    };

    #[test]
    fn the_variant_follows_the_pattern() {
        let plan = |accesses, direction| {
            let mut fixture = Fixture::new(accesses);
            fixture.direction = direction;
            fixture.facts.striping = Some(Striping {
                unit: 100,
                count: 2,
            });
            fixture.facts.client = Client::Library;
            let choices = Decisions {
                partition: &ByServer,
                aggregators: &[0],
            };
            Resonant.plan(&fixture.case(), &choices)
        };
        let apart = || (0..4).map(|rank| dense(rank * 500, 500)).collect();
        let backwards = || (0..4).map(|rank| dense((4 - rank) * 500, 500)).collect();
        let short = || (0..4).map(|rank| dense(rank * 50, 50)).collect();
        assert!(matches!(plan(apart(), Direction::Write), Plan::Timed(_)));
        assert!(matches!(
            plan(backwards(), Direction::Read),
            Plan::Prefetch(_)
        ));
        assert!(matches!(
            plan(backwards(), Direction::Write),
            Plan::Rounds(_)
        ));
        assert!(matches!(plan(short(), Direction::Read), Plan::Rounds(_)));
    }

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
