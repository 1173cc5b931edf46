//! Assignment of ranks to aggregators.

use crate::{Facts, Group};

/// One group per aggregator, which is a member itself. Groups are as equal in
/// size as that allows, and ranks of a node stay together where possible.
pub(super) fn assign(facts: &Facts, aggregators: &[u32]) -> Vec<Group> {
    let node_of = |rank: u32| facts.nodes[rank as usize];
    let mut order: Vec<u32> = (0..facts.nodes.len() as u32).collect();
    order.sort_unstable_by_key(|rank| (node_of(*rank), *rank));
    let mut centres: Vec<u32> = aggregators.to_vec();
    centres.sort_unstable_by_key(|rank| (node_of(*rank), *rank));
    centres.dedup();
    let places: Vec<usize> = centres
        .iter()
        .map(|centre| order.partition_point(|rank| before(facts, *rank, *centre)))
        .collect();
    // Group i ends between its own aggregator and the next, as close to an
    // equal share as possible.
    let end = |index: usize| match places.get(index + 1) {
        None => order.len(),
        Some(next) => ((index + 1) * order.len() / centres.len()).clamp(places[index] + 1, *next),
    };
    let mut start = 0;
    let mut groups = Vec::with_capacity(centres.len());
    for (index, aggregator) in centres.iter().enumerate() {
        let mut members = order[start..end(index)].to_vec();
        members.sort_unstable();
        start = end(index);
        groups.push(Group {
            aggregator: *aggregator,
            members,
        });
    }
    groups
}

fn before(facts: &Facts, a: u32, b: u32) -> bool {
    (facts.nodes[a as usize], a) < (facts.nodes[b as usize], b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(nodes: &[u32], aggregators: &[u32]) -> Vec<Vec<u32>> {
        let mut facts = Facts::one_node(nodes.len());
        facts.nodes = nodes.to_vec();
        let groups = assign(&facts, aggregators);
        for group in &groups {
            assert!(group.members.contains(&group.aggregator));
        }
        groups.into_iter().map(|group| group.members).collect()
    }

    #[test]
    fn groups_are_equal_and_respect_nodes() {
        let two_nodes = [0, 1, 0, 1, 0, 1];
        assert_eq!(members(&two_nodes, &[0, 1]), [[0, 2, 4], [1, 3, 5]]);
        assert_eq!(members(&[0; 5], &[0]), [[0, 1, 2, 3, 4]]);
        assert_eq!(members(&[0; 5], &[3, 4]), [vec![0, 1, 2, 3], vec![4]]);
        assert_eq!(members(&[0; 5], &[0, 1]), [vec![0], vec![1, 2, 3, 4]]);
    }
}
