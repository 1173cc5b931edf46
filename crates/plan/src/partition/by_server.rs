//! By-server: each server's stripes belong to an agent, the rank with the most
//! data on that server (Zhang 2009, section 3.3), so that a server receives
//! requests from only one process, in ascending order.

use std::ops::Range;

use pario_layout::{Datatype, Layout};

use super::{Partition, cyclic, server_data::bytes_on, static_cyclic, stripes};
use crate::{Case, Fitness, Realm, Stripes};

/// One agent per server, or several that share its stripes.
#[derive(Debug)]
pub struct ByServer;

/// Maximum number of stripes examined for all ranks and servers together.
/// Beyond it, stripes are sampled, and ranks too where even one stripe per rank
/// and server is too many.
const LOOKUPS_MAX: u64 = 1 << 20;

/// Maximum number of stripes of one server examined per rank.
const STRIPES_MAX: u64 = 1 << 12;

/// Minimum number of stripes of one server examined per rank, unless it has
/// fewer: both ends and one in between.
const STRIPES_MIN: u64 = 3;

impl Partition for ByServer {
    fn name(&self) -> &'static str {
        "by-server"
    }

    fn fitness(&self, case: &Case<'_>) -> Fitness {
        match case.one_striping() {
            Err(unfit) => unfit,
            Ok(_) => static_cyclic::fitness(
                case,
                65,
                "each server gets requests from one agent, which has most of its data",
            ),
        }
    }

    fn realms(&self, case: &Case<'_>, candidates: &[u32]) -> Vec<(u32, Realm)> {
        agents(case, &stripes(case, candidates))
            .into_iter()
            .map(|agent| (agent.rank, agent.realm))
            .collect()
    }
}

/// An agent of a server and its realm.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    pub(crate) rank: u32,
    pub(crate) realm: Realm,
    /// Its server, from 0 on.
    pub(crate) server: u64,
}

/// The agents of all servers. Several agents of one server own its windows
/// round-robin, so that the offsets of their requests ascend from agent to
/// agent in each round.
pub(crate) fn agents(case: &Case<'_>, stripes: &Stripes) -> Vec<Agent> {
    let region = case.region();
    let mut agents = Vec::new();
    for Server { server, ranks } in servers(case, stripes) {
        let agent_cycle = AgentCycle::new(case, stripes, server, ranks.len() as u64);
        for (rank, index) in ranks.into_iter().zip(0..) {
            let realm = match (&agent_cycle, index) {
                (Some(agent_cycle), index) => agent_cycle.realm(index, &region),
                (None, 0) => cyclic::server_realm(stripes, server, &region),
                (None, _) => break,
            };
            agents.push(Agent {
                rank,
                realm,
                server,
            });
        }
    }
    agents
}

/// How several agents share the stripes of a server: one window each,
/// round-robin.
struct AgentCycle {
    /// Bytes of the file from one agent's first window to the next agent's.
    step: u64,
    tile: Layout,
}

impl AgentCycle {
    /// `None` for a single agent, or if a cycle does not fit in 63 bits.
    fn new(case: &Case<'_>, stripes: &Stripes, server: u64, agents: u64) -> Option<AgentCycle> {
        if agents < 2 {
            return None;
        }
        let region = case.region();
        let striping = stripes.striping;
        let cycle = striping.unit.checked_mul(striping.count)?;
        let cycles = region.end.div_ceil(cycle) - region.start / cycle;
        let (_, window_bytes) = case.windows();
        let of_server = stripes.stripes_of(server);
        let in_cycle = striping.unit.saturating_mul(of_server.len() as u64);
        let in_window = (window_bytes / in_cycle).clamp(1, cycles.div_ceil(agents).max(1));
        let step = cycle.checked_mul(in_window)?;
        let all = i64::try_from(step.checked_mul(agents)?).ok()?;
        let blocks = cyclic::blocks(striping.unit, &of_server)?;
        let window = Datatype::hvector(in_window, 1, cycle as i64, &blocks).ok()?;
        let tile = Datatype::resized(&window, 0, all).ok()?;
        Some(AgentCycle {
            step,
            tile: tile.layout().clone(),
        })
    }

    fn realm(&self, index: u64, file: &Range<u64>) -> Realm {
        Realm::tiled(index * self.step, self.tile.clone(), file.clone())
    }
}

/// The agents of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Server {
    server: u64,
    /// Its agents, those with the most data first.
    ranks: Vec<u32>,
}

/// The agents of each server that holds part of the region: the ranks with the
/// most data that are not agents yet, ties to the lowest rank. If there are
/// fewer ranks than agents, ranks are reused once all are agents.
fn servers(case: &Case<'_>, stripes: &Stripes) -> Vec<Server> {
    let ranks = u64::from(case.ranks());
    let servers = cyclic::servers_in(stripes, &case.region());
    let servers_used = servers.len() as u64;
    let most = (ranks / servers_used.max(1)).max(1);
    let wanted = u64::from(case.tuning.agents_per_server).clamp(1, most) as usize;
    let pairs = (ranks * servers_used).max(1);
    let stripes_max = (LOOKUPS_MAX / pairs).clamp(STRIPES_MIN, STRIPES_MAX);
    let step = (pairs.saturating_mul(STRIPES_MIN) / LOOKUPS_MAX).max(1);
    let mut taken = vec![false; case.accesses.len()];
    let with_agents = |server: u64| {
        if taken.iter().all(|taken| *taken) {
            taken.fill(false);
        }
        let of_server = stripes.stripes_of(server);
        let free = || (0..case.ranks()).filter(|rank| !taken[*rank as usize]);
        let mut sampled: Vec<u32> = free()
            .filter(|rank| (u64::from(*rank) + server).is_multiple_of(step))
            .collect();
        if sampled.len() < wanted {
            sampled = free().take(wanted).collect();
        }
        let count = |rank: u32| {
            let access = &case.accesses[rank as usize];
            let on_stripe = |stripe: &u64| bytes_on(access, stripes.striping, *stripe, stripes_max);
            of_server.iter().map(on_stripe).sum()
        };
        let ranks = most_data(sampled, wanted, count);
        ranks.iter().for_each(|rank| taken[*rank as usize] = true);
        Server { server, ranks }
    };
    servers.into_iter().map(with_agents).collect()
}

/// The `wanted` ranks with the most data, in descending order of data; ties go
/// to the lower rank. `ranks` must ascend.
fn most_data(ranks: Vec<u32>, wanted: usize, count: impl Fn(u32) -> u64) -> Vec<u32> {
    let mut best: Vec<(u64, u32)> = Vec::with_capacity(wanted + 1);
    for rank in ranks {
        let bytes = count(rank);
        let place = best.partition_point(|(most, _)| *most >= bytes);
        if place < wanted {
            best.insert(place, (bytes, rank));
            best.truncate(wanted);
        }
    }
    best.into_iter().map(|(_, rank)| rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Access, Striping,
        testing::{Fixture, dense},
    };

    const STRIPES: Striping = Striping { unit: 10, count: 3 };

    fn fixture_of_all(bytes: u64, ranks: usize) -> Fixture {
        fixture(vec![dense(0, bytes); ranks])
    }

    fn agents(case: &Case<'_>) -> Vec<Agent> {
        super::agents(case, &case.stripes().unwrap())
    }

    fn fixture(accesses: Vec<Access>) -> Fixture {
        let mut fixture = Fixture::new(accesses);
        fixture.facts.striping = Some(STRIPES);
        fixture
    }

    #[test]
    fn agents_have_the_most_data_and_are_distinct() {
        // Rank 1 has the most data on servers 0 and 1; ranks 0 and 2 tie on
        // server 1.
        let fixture = fixture(vec![
            dense(10, 10),
            dense(0, 20),
            dense(10, 10),
            dense(20, 1),
        ]);
        let agents = agents(&fixture.case());
        let ranks: Vec<u32> = agents.iter().map(|agent| agent.rank).collect();
        assert_eq!(ranks, [1, 0, 3]);
    }

    #[test]
    fn several_agents_share_the_windows_of_a_server() {
        let mut fixture = fixture(vec![dense(0, 300); 6]);
        fixture.tuning.agents_per_server = 2;
        fixture.tuning.slice_bytes = Some(20);
        let agents = agents(&fixture.case());
        let servers: Vec<_> = agents.iter().map(|it| (it.rank, it.server)).collect();
        assert_eq!(servers, [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (5, 2)]);
        for byte in 0..300 {
            let owners = agents.iter().filter(|agent| agent.realm.owns(byte));
            assert_eq!(owners.count(), 1, "byte {byte}");
        }
        // Two stripes of server 1 each, alternating.
        let window = |agent: usize, index| agents[agent].realm.window(index, 20);
        assert_eq!(window(2, 0).extents(), [10..20, 40..50]);
        assert_eq!(window(3, 0).extents(), [70..80, 100..110]);
        assert_eq!(window(2, 1).extents(), [130..140, 160..170]);
    }

    #[test]
    fn a_server_with_several_stripes_has_one_agent_for_all() {
        // Rank 1 has most of the first server's data, in two stripes of 20 bytes together.
        let mut fixture = fixture(vec![dense(0, 8), dense(20, 10), dense(3, 5), dense(10, 9)]);
        fixture.overstripe(10, &[2, 7, 2]);
        let ranks: Vec<_> = agents(&fixture.case()).iter().map(|it| it.rank).collect();
        assert_eq!(ranks, [1, 3]);
        let mut fixture = fixture_of_all(300, 4);
        fixture.overstripe(10, &[2, 7, 2]);
        fixture.tuning.agents_per_server = 2;
        fixture.tuning.slice_bytes = Some(40);
        let agents = agents(&fixture.case());
        let servers: Vec<_> = agents.iter().map(|it| it.server).collect();
        assert_eq!(servers, [0, 0, 1, 1]);
        for byte in 0..300 {
            let mut owners = agents.iter().filter(|agent| agent.realm.owns(byte));
            assert_eq!(
                owners.next().unwrap().server,
                [0, 1, 0][byte as usize / 10 % 3]
            );
            assert_eq!(owners.count(), 0, "byte {byte}");
        }
        let window = agents[0].realm.window(0, 40);
        assert_eq!(window.extents(), [0..10, 20..40, 50..60]);
    }

    #[test]
    fn ranks_are_reused_if_there_are_few() {
        let fixture = fixture(vec![dense(0, 300); 2]);
        let agents = agents(&fixture.case());
        let ranks: Vec<u32> = agents.iter().map(|agent| agent.rank).collect();
        assert_eq!(ranks, [0, 1, 0]);
    }
}
