//! Who aggregates: how many ranks, and which.

use crate::{Case, Client};

/// The chosen ranks and why so many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aggregators {
    /// In realm order.
    pub ranks: Vec<u32>,
    /// Why so many.
    pub reason: String,
}

/// Chooses: what was asked for, else one for each node.
pub fn choose(case: &Case<'_>) -> Aggregators {
    let nodes = by_node(&case.facts.nodes);
    let one_client = nodes.len() == 1 && case.facts.client == Client::Kernel;
    let (count, reason) = match case.tuning.aggregators {
        Some(asked) => (
            asked.clamp(1, case.ranks().max(1)),
            "the hint cb_nodes asks for them".into(),
        ),
        None if one_client => (
            1,
            "one stream of windows serves a node that shares its kernel".into(),
        ),
        None => (
            nodes.len() as u32,
            format!("one on each of {} nodes", nodes.len()),
        ),
    };
    Aggregators {
        ranks: spread(&nodes, count as usize),
        reason,
    }
}

/// The ranks of each node, ascending.
fn by_node(nodes: &[u32]) -> Vec<Vec<u32>> {
    let mut names = nodes.to_vec();
    names.sort_unstable();
    names.dedup();
    names
        .iter()
        .map(|name| {
            let here = nodes.iter().enumerate().filter(|(_, node)| *node == name);
            here.map(|(rank, _)| rank as u32).collect()
        })
        .collect()
}

/// So many ranks, one a node in turn.
fn spread(nodes: &[Vec<u32>], count: usize) -> Vec<u32> {
    let longest = nodes.iter().map(Vec::len).max().unwrap_or(0);
    let turns = (0..longest).flat_map(|turn| nodes.iter().filter_map(move |node| node.get(turn)));
    let mut ranks: Vec<u32> = turns.copied().take(count).collect();
    ranks.sort_unstable();
    ranks
}
