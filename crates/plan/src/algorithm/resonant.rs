//! Resonant I/O (Zhang 2009, figure 4): each server receives ascending requests,
//! in one of three forms. Ranks whose data is in rank order take turns, without
//! any exchange (`resonant-timed`). Otherwise an agent per server, the rank with
//! the most data there, requests all of that server's data: in reads ahead of
//! the ranks, which then read from the server's cache (`resonant-prefetch`), else
//! for an exchange with the others (`resonant-agents`).

use super::{
    Algorithm, Decisions, ResonantAgents, ResonantPrefetch, ResonantTimed, descending_offsets,
};
use crate::{
    Aggregator, Case, Client, Direction, Fitness, LockProtocol, Members, Plan, Rounds, Signal,
    Turn, WindowWriter,
    partition::{ByServer, Partition, by_server},
};

/// Requests in the order that suits each server.
#[derive(Debug)]
pub struct Resonant;

/// The forms, in the order in which they are tried.
const FORMS: [&dyn Algorithm; 3] = [&ResonantTimed, &ResonantPrefetch, &ResonantAgents];

/// The first form that can carry out a call.
fn form(case: &Case<'_>) -> Option<&'static dyn Algorithm> {
    let is_usable = |form: &&dyn Algorithm| form.fitness(case).priority().is_some();
    FORMS.into_iter().find(is_usable)
}

impl Algorithm for Resonant {
    fn name(&self) -> &'static str {
        "resonant"
    }

    fn fitness(&self, case: &Case<'_>) -> Fitness {
        if let Some(unfit) = descending_offsets(case).or_else(|| unknown_striping(case)) {
            return unfit;
        }
        let Some(form) = form(case) else {
            return Fitness::unfit("none of its forms can carry out the call");
        };
        let piece = case.pattern().piece_bytes;
        let (facts, boundary) = (case.facts, case.boundary());
        if facts.client != Client::Library || facts.lock_protocol != LockProtocol::None {
            return Fitness::suits(
                20,
                "the kernel's cache or locks decide when requests are sent, not the ranks",
            );
        }
        if piece < boundary {
            return Fitness::suits(
                35,
                format!(
                    "pieces of {piece} bytes, shorter than a stripe of {boundary}, are better merged \
                     across servers"
                ),
            );
        }
        // Agents exchange as much as the groups of dynamic segmentation, with all ranks.
        let priority = match case.direction {
            _ if form.name() == ResonantTimed.name() => 62,
            Direction::Read => 61,
            Direction::Write => 55,
        };
        let name = form.name();
        Fitness::suits(
            priority,
            format!("{name} orders requests of {piece} bytes at each server"),
        )
    }

    fn partition(&self, _case: &Case<'_>) -> Option<&'static dyn Partition> {
        Some(&ByServer)
    }

    fn plan(&self, case: &Case<'_>, choices: &Decisions<'_>) -> Plan {
        match form(case) {
            Some(form) => form.plan(case, choices),
            None => Plan::Individual,
        }
    }
}

/// The priority of a form that is to be used only by name: `resonant` chooses
/// among them.
pub(super) fn by_name_only() -> Fitness {
    Fitness::suits(1, "`resonant` chooses among its forms")
}

/// Rejects a case whose striping is unknown or changes.
pub(super) fn unknown_striping(case: &Case<'_>) -> Option<Fitness> {
    case.one_striping().err()
}

/// When those who wait for a rank's requests may send theirs.
pub(super) fn signal(case: &Case<'_>) -> Signal {
    match case.facts.nonblocking {
        true => Signal::StartedUs(case.tuning.timed_delay_us),
        false => Signal::Complete,
    }
}

/// The agents' realms. Agents move their own windows, since the order of
/// requests at a server matters. Agents of one server take turns.
pub(super) fn agents(case: &Case<'_>) -> Rounds {
    let agents = match case.stripes() {
        Some(stripes) => by_server::agents(case, &stripes),
        None => Vec::new(),
    };
    let shared = |server: u64| agents.iter().filter(|it| it.server == server).count() > 1;
    let aggregator = |agent: &by_server::Agent| Aggregator {
        rank: agent.rank,
        realm: agent.realm.clone(),
        members: Members::All,
        turn: shared(agent.server).then(|| Turn {
            server: agent.server,
            signal: signal(case),
        }),
    };
    let (_, window_bytes) = case.windows();
    Rounds {
        aggregators: agents.iter().map(aggregator).collect(),
        window_bytes,
        writer: WindowWriter::Aggregator,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Access, Striping,
        testing::{Fixture, dense, strided},
    };

    fn plan(accesses: Vec<Access>, direction: Direction, nonblocking: bool) -> Plan {
        let mut fixture = Fixture::new(accesses);
        fixture.direction = direction;
        fixture.facts.striping = Some(Striping {
            unit: 100,
            count: 2,
        });
        fixture.facts.client = Client::Library;
        fixture.facts.nonblocking = nonblocking;
        let choices = Decisions {
            partition: &ByServer,
            aggregators: &[0],
        };
        Resonant.plan(&fixture.case(), &choices)
    }

    /// Figure 4: timed if the ranks' data does not overlap, else prefetched reads,
    /// else agents, however long the pieces are.
    #[test]
    fn the_form_follows_figure_4() {
        for len in [50, 500] {
            let ordered = || (0..4).map(|rank| dense(rank * len, len)).collect();
            let reversed = || (0..4).map(|rank| dense((4 - rank) * len, len));
            let mixed = || (0..4).map(|rank| strided(rank * len, len, 4 * len as i64, 2 * len));
            for direction in [Direction::Read, Direction::Write] {
                let timed = plan(ordered(), direction, true);
                assert!(matches!(timed, Plan::Timed(_)), "{len} {direction:?}");
            }
            for accesses in [reversed().collect::<Vec<_>>(), mixed().collect()] {
                let read = plan(accesses.clone(), Direction::Read, true);
                assert!(matches!(read, Plan::Prefetch(_)), "{len}");
                let read = plan(accesses.clone(), Direction::Read, false);
                assert!(matches!(read, Plan::Rounds(_)), "{len}");
                let write = plan(accesses, Direction::Write, true);
                assert!(matches!(write, Plan::Rounds(_)), "{len}");
            }
        }
    }

    #[test]
    fn without_nonblocking_transfers_groups_wait_for_the_end() {
        let ordered = || (0..4).map(|rank| dense(rank * 500, 500)).collect();
        for (nonblocking, expected) in [(true, Signal::StartedUs(500)), (false, Signal::Complete)] {
            let Plan::Timed(timed) = plan(ordered(), Direction::Write, nonblocking) else {
                panic!("the ranks' data is in rank order");
            };
            assert_eq!(timed.signal, expected);
        }
    }

    #[test]
    fn agents_of_one_server_take_turns() {
        let mut fixture = Fixture::new(vec![dense(0, 1000); 4]);
        fixture.facts.striping = Some(Striping {
            unit: 100,
            count: 2,
        });
        let turns = |fixture: &Fixture| -> Vec<Option<u64>> {
            let rounds = agents(&fixture.case());
            assert_eq!(rounds.writer, WindowWriter::Aggregator);
            let turns = rounds.aggregators.iter();
            turns.map(|it| it.turn.map(|turn| turn.server)).collect()
        };
        assert_eq!(turns(&fixture), [None, None], "nobody to wait for");
        fixture.tuning.agents_per_server = 2;
        assert_eq!(turns(&fixture), [Some(0), Some(0), Some(1), Some(1)]);
    }
}
