//! Neighbours: neighbouring realms on neighbouring ranks (Coloma 2006, section
//! 5.2). The aggregators of a node together own one contiguous range, so
//! whatever the node caches or reads ahead past one realm belongs to the next.

use super::{Partition, aligned};
use crate::{Case, Client, Fitness, Realm};

/// Aligned contiguous realms, their owners in node order.
#[derive(Debug)]
pub struct Neighbours;

impl Partition for Neighbours {
    fn name(&self) -> &'static str {
        "neighbours"
    }

    fn fitness(&self, case: &Case<'_>) -> Fitness {
        let nodes = case.pattern().nodes;
        if nodes == 1 || nodes == case.facts.nodes.len() {
            return Fitness::suits(10, "all ranks are equally close");
        }
        match case.facts.client {
            Client::Local | Client::Kernel => Fitness::suits(
                35,
                format!("the ranks of each of {nodes} nodes share its page cache"),
            ),
            Client::Library => Fitness::suits(15, "processes on a node share no cache"),
        }
    }

    fn realms(&self, case: &Case<'_>, candidates: &[u32]) -> Vec<(u32, Realm)> {
        aligned::realms(case, &in_node_order(&case.facts.nodes, candidates))
    }
}

/// Candidates by node, nodes in the order of their first candidate.
fn in_node_order(nodes: &[u32], candidates: &[u32]) -> Vec<u32> {
    let mut ranks = candidates.to_vec();
    ranks.sort_unstable_by_key(|rank| (nodes[*rank as usize], *rank));
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fixture, dense};

    #[test]
    fn owners_on_one_node_are_consecutive() {
        let mut fixture = Fixture::new(vec![dense(0, 1 << 20); 6]);
        fixture.facts.nodes = vec![0, 1, 2, 0, 1, 2];
        let realms = Neighbours.realms(&fixture.case(), &[0, 1, 2, 3, 4, 5]);
        let ranks: Vec<u32> = realms.iter().map(|(rank, _)| *rank).collect();
        assert_eq!(ranks, [0, 3, 1, 4, 2, 5]);
    }
}
