//! Choice of aggregators: how many, and which ranks.
//!
//! In order of precedence: the hints (`cb_nodes`, within the limits of
//! `cb_config_list`); a single aggregator where all ranks share a kernel and
//! memory; otherwise the number with the lowest cost in the cost model, among
//! divisors and multiples of the number of servers where that is known, so that
//! each aggregator always accesses the same servers (Liao 2008, section IV-B).
//!
//! Where servers manage locks, only `cb_nodes` gives a write more aggregators than
//! the file has objects. The groups that then share the objects (Liao 2008, section
//! III-C) write contiguous parts of them, but a lock is granted on as long a range as
//! possible, so that each group first takes the locks of the others, and its holders
//! write back their caches. What more aggregators would gain, receiving data on more
//! nodes, is the smaller part of the time: a server is as fast as one of them.

use std::{borrow::Cow, fmt};

use pario_hints::{ConfigList, Hints};

use crate::{Case, CostModel, Stripes, number::Counted};

/// The aggregators and the reason for their number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aggregators {
    /// In realm order.
    pub ranks: Vec<u32>,
    /// Why this many.
    pub reason: Cow<'static, str>,
}

/// Ranks by node.
type Nodes = Vec<(u32, Vec<u32>)>;

/// Chooses the aggregators for a case.
pub fn choose(case: &Case<'_>) -> Aggregators {
    let nodes = by_node(&case.facts.nodes);
    let (listed, eligible) = eligible(case.tuning.config_list.as_ref(), nodes);
    let most = eligible.iter().map(|(_, ranks)| ranks.len()).sum::<usize>() as u64;
    let one_client = eligible.len() == 1 && case.facts.client.is_shared();
    let (count, reason) = match (case.tuning.aggregators, listed) {
        (Some(asked), _) => {
            let count = u64::from(asked).clamp(1, most.max(1));
            let reason = match count == u64::from(asked) {
                true => "as set by the hint cb_nodes".into(),
                false => {
                    format!("the hint cb_nodes is {asked}, but only {most} are possible").into()
                }
            };
            (count, reason)
        }
        (None, Some(list)) => match case.one_writer_per_object(most) {
            None => (
                most,
                format!("as allowed by the hint cb_config_list ({list})").into(),
            ),
            Some(objects) => {
                let reason = format!(
                    "the hint cb_config_list ({list}) allows {most}, but {}",
                    OnePerObject(objects)
                );
                (objects, reason.into())
            }
        },
        (None, None) if one_client => (1, "one stream of windows suffices on a single node".into()),
        (None, None) => cheapest(case, eligible.len(), most),
    };
    Aggregators {
        ranks: spread_over(&eligible, count as usize),
        reason,
    }
}

/// The eligible ranks by node, and the list that restricts them. A list that
/// matches no node is ignored.
fn eligible(list: Option<&ConfigList>, nodes: Nodes) -> (Option<&ConfigList>, Nodes) {
    let chosen = list.map(|list| list.eligible(&nodes));
    match chosen.filter(|chosen| !chosen.is_empty()) {
        Some(chosen) => (list, chosen),
        None => (None, nodes),
    }
}

/// The aggregators that hints prescribe for every call, for ranks on these
/// nodes.
pub fn requested_aggregators(nodes: &[u32], hints: &Hints) -> Option<Vec<u32>> {
    let (listed, eligible) = eligible(hints.cb_config_list.as_ref(), by_node(nodes));
    let most = || eligible.iter().map(|(_, ranks)| ranks.len()).sum();
    let count = match (hints.cb_nodes, listed) {
        (Some(asked), _) => usize::try_from(asked).unwrap_or(usize::MAX),
        (None, Some(_)) => most(),
        (None, None) => return None,
    };
    Some(spread_over(&eligible, count))
}

/// The number of aggregators with the lowest cost.
fn cheapest(case: &Case<'_>, nodes: usize, most: u64) -> (u64, Cow<'static, str>) {
    let model = CostModel::default();
    let time = |count: u64| model.time_us(case, nodes, count);
    let most = most.min(CostModel::saturated(case));
    let capped = case.one_writer_per_object(most);
    let most = capped.unwrap_or(most);
    let stripes = case.stripes();
    let counts = match &stripes {
        Some(stripes) => divisors_and_multiples(stripes, most),
        None => powers_of_two(nodes as u64, most),
    };
    let best = counts
        .into_iter()
        .map(|count| (count, time(count)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map_or(1, |(count, _)| count);
    let relation = match stripes.as_ref().map(Stripes::servers) {
        None => String::new(),
        Some(servers) if servers.is_multiple_of(best) => {
            format!(", a divisor of {}", Counted(servers, "server"))
        }
        Some(servers) => format!(", a multiple of {}", Counted(servers, "server")),
    };
    let limit = capped.map_or_else(String::new, |objects| {
        format!("; {}", OnePerObject(objects))
    });
    let reason = format!(
        "{best} has the lowest modelled cost for {} of {} on {}{relation}{limit}",
        Counted(case.pattern().bytes, "byte"),
        Counted(case.ranks().into(), "rank"),
        Counted(nodes as u64, "node"),
    );
    (best, reason.into())
}

/// Why there are no more aggregators than objects.
struct OnePerObject(u64);

impl fmt::Display for OnePerObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let objects = Counted(self.0, "object");
        write!(
            f,
            "more aggregators than the file's {objects} would take locks from each other"
        )
    }
}

/// 1, 2, 4, ... and 1, 2, 4, ... per node, up to `most`.
fn powers_of_two(nodes: u64, most: u64) -> Vec<u64> {
    let from = |first: u64| {
        std::iter::successors(Some(first), |count| count.checked_mul(2))
            .take_while(|count| *count <= most)
    };
    let mut counts: Vec<u64> = from(1).chain(from(nodes.max(1))).collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// Divisors are searched exhaustively up to this many servers.
const DIVISORS_MAX: u64 = 1 << 16;

/// Divisors of the number of servers; its multiples that divide the stripes of each
/// server, if it has several in a cycle; and multiples of the number of stripes by
/// powers of two.
fn divisors_and_multiples(stripes: &Stripes, most: u64) -> Vec<u64> {
    let servers = stripes.servers();
    let divisors = (1..=servers.min(most).min(DIVISORS_MAX)).filter(|n| servers.is_multiple_of(*n));
    // As many stripes as all servers have at least.
    let even = stripes.striping.count / servers * servers;
    let shares = (2..=even / servers)
        .map(|each| each * servers)
        .take_while(|count| *count <= most)
        .filter(|count| even.is_multiple_of(*count));
    let multiples = std::iter::successors(even.checked_mul(2), |count| count.checked_mul(2))
        .take_while(|count| *count <= most);
    divisors.chain(shares).chain(multiples).collect()
}

/// Ranks by node, ascending; nodes are in ascending order too.
pub(crate) fn by_node(nodes: &[u32]) -> Vec<(u32, Vec<u32>)> {
    let mut ranks: Vec<(u32, u32)> = nodes.iter().copied().zip(0..).collect();
    ranks.sort_unstable();
    ranks
        .chunk_by(|a, b| a.0 == b.0)
        .map(|node| (node[0].0, node.iter().map(|(_, rank)| *rank).collect()))
        .collect()
}

/// Picks `count` ranks, as many from each node as possible alike, and those of a
/// node at equal distances: launchers bind neighbours to neighbouring cores, so that
/// the aggregators of a node are on different sockets and memory controllers.
/// Ascending.
fn spread_over(nodes: &[(u32, Vec<u32>)], count: usize) -> Vec<u32> {
    let longest = nodes.iter().map(|(_, ranks)| ranks.len()).max();
    let mut taken = vec![0; nodes.len()];
    let turns = (0..longest.unwrap_or(0)).flat_map(|turn| {
        let places = nodes.iter().enumerate();
        places.filter_map(move |(place, (_, ranks))| (turn < ranks.len()).then_some(place))
    });
    turns.take(count).for_each(|place| taken[place] += 1);
    let picked = nodes.iter().zip(taken).flat_map(|((_, ranks), taken)| {
        (0..taken).map(move |index: usize| ranks[index * ranks.len() / taken])
    });
    let mut ranks: Vec<u32> = picked.collect();
    ranks.sort_unstable();
    ranks
}

/// Picks up to `count` ranks, spread over the nodes.
pub(crate) fn spread(nodes: &[u32], count: u64) -> Vec<u32> {
    spread_over(
        &by_node(nodes),
        usize::try_from(count).unwrap_or(usize::MAX),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Client, Direction, LockProtocol, Striping,
        testing::{Fixture, dense},
    };

    /// Twelve ranks on three nodes, each with a share of the file.
    fn cluster(bytes: u64) -> Fixture {
        let accesses = (0..12).map(|rank| dense(rank * bytes, bytes)).collect();
        let mut fixture = Fixture::new(accesses);
        fixture.facts.nodes = (0..12).map(|rank| rank / 4).collect();
        fixture.facts.client = Client::Library;
        fixture
    }

    #[test]
    fn hints_take_precedence() {
        let mut fixture = cluster(1 << 20);
        fixture.tuning.aggregators = Some(4);
        assert_eq!(choose(&fixture.case()).ranks, [0, 2, 4, 8]);
        fixture.tuning.config_list = Some("*:1".parse().unwrap());
        let few = choose(&fixture.case());
        assert_eq!(few.ranks, [0, 4, 8]);
        assert!(
            few.reason.contains("but only 3 are possible"),
            "{}",
            few.reason
        );
        fixture.tuning.aggregators = None;
        fixture.tuning.config_list = Some("1:2".parse().unwrap());
        assert_eq!(choose(&fixture.case()).ranks, [4, 5]);
        // A list that matches no node is ignored.
        fixture.tuning.config_list = None;
        let free = choose(&fixture.case());
        fixture.tuning.config_list = Some("9:2,elsewhere:*".parse().unwrap());
        assert_eq!(choose(&fixture.case()), free);
    }

    #[test]
    fn aggregators_of_a_node_are_apart() {
        let nodes = |counts: &[usize]| -> Vec<u32> {
            let nodes = (0..).zip(counts);
            nodes.flat_map(|(node, count)| vec![node; *count]).collect()
        };
        assert_eq!(spread(&nodes(&[8, 8]), 4), [0, 4, 8, 12]);
        assert_eq!(spread(&nodes(&[8, 8]), 5), [0, 2, 5, 8, 12]);
        assert_eq!(spread(&nodes(&[6, 1]), 4), [0, 2, 4, 6]);
        assert_eq!(spread(&nodes(&[3, 2]), 9), [0, 1, 2, 3, 4]);
        assert_eq!(spread(&[], 2), [0; 0]);
    }

    #[test]
    fn hints_alone_may_determine_the_aggregators() {
        let nodes: Vec<u32> = (0..12).map(|rank| rank / 4).collect();
        let asked = |pairs: &[(&str, &str)]| {
            let info = pario_hints::Info::from_pairs(pairs.iter().copied()).unwrap();
            let hints = Hints::resolve(&info, &pario_hints::Sources::none()).hints;
            requested_aggregators(&nodes, &hints)
        };
        assert_eq!(asked(&[]), None);
        assert_eq!(asked(&[("cb_config_list", "9:1")]), None);
        assert_eq!(asked(&[("cb_config_list", "*:1")]), Some(vec![0, 4, 8]));
        assert_eq!(asked(&[("cb_nodes", "2")]), Some(vec![0, 4]));
        assert_eq!(
            asked(&[("cb_nodes", "64"), ("cb_config_list", "1:*")]),
            Some(vec![4, 5, 6, 7])
        );
    }

    #[test]
    fn a_single_node_needs_one_aggregator() {
        let fixture = Fixture::new(vec![dense(0, 1 << 30); 4]);
        assert_eq!(choose(&fixture.case()).ranks, [0]);
    }

    #[test]
    fn the_number_is_a_divisor_or_multiple_of_the_servers() {
        for (servers, each) in (1..40).flat_map(|servers| [(servers, 1), (servers, 3)]) {
            for bytes in [1 << 10, 1 << 20, 1 << 28] {
                let mut fixture = cluster(bytes);
                let numbers: Vec<u32> = (0..servers * each).map(|it| it % servers).collect();
                let servers = u64::from(servers);
                fixture.overstripe(1 << 20, &numbers);
                let count = choose(&fixture.case()).ranks.len() as u64;
                assert!(
                    servers.is_multiple_of(count) || count.is_multiple_of(servers),
                    "{count} aggregators for {servers} servers"
                );
            }
        }
    }

    #[test]
    fn writes_have_one_aggregator_per_object_where_servers_manage_locks() {
        let mut fixture = cluster(1 << 28);
        fixture.facts.lock_protocol = LockProtocol::Server;
        fixture.facts.striping = Some(Striping {
            unit: 1 << 20,
            count: 4,
        });
        let few = choose(&fixture.case());
        assert_eq!(few.ranks.len(), 4, "{}", few.reason);
        assert!(few.reason.contains("file's 4 objects"), "{}", few.reason);

        // A list of nodes is a limit, a number is a request.
        fixture.tuning.config_list = Some("*:*".parse().unwrap());
        let listed = choose(&fixture.case());
        assert_eq!(listed.ranks.len(), 4, "{}", listed.reason);
        assert!(listed.reason.contains("allows 12"), "{}", listed.reason);
        fixture.tuning.aggregators = Some(8);
        assert_eq!(choose(&fixture.case()).ranks.len(), 8);

        // Objects count, not servers: each has its own locks.
        fixture.tuning = crate::Tuning::default();
        fixture.overstripe(1 << 20, &[0, 1, 0, 1, 0, 1, 0, 1]);
        assert!(choose(&fixture.case()).ranks.len() <= 8);

        // Reads share locks.
        fixture.facts.placement = None;
        fixture.facts.striping = Some(Striping {
            unit: 1 << 20,
            count: 1,
        });
        assert_eq!(choose(&fixture.case()).ranks.len(), 1);
        fixture.direction = Direction::Read;
        let read = choose(&fixture.case());
        assert!(read.ranks.len() > 1, "{}", read.reason);
        assert!(!read.reason.contains("locks"), "{}", read.reason);
    }

    #[test]
    fn little_data_needs_few_aggregators() {
        let few = choose(&cluster(64).case());
        assert_eq!(few.ranks.len(), 1, "{}", few.reason);
        let many = choose(&cluster(1 << 30).case());
        assert_eq!(many.ranks.len(), 12, "{}", many.reason);
        assert!(many.reason.contains("modelled cost"), "{}", many.reason);
    }
}
