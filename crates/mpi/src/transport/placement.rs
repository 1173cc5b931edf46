//! Which ranks run on which node.

use std::env;
use std::ffi::c_int;

use pario_transport::{Node, Rank, Result};

use super::mpi_point_to_point::host_error;
use crate::{Comm, Host, MpiError};

/// Simulates a placement of the ranks on that many nodes, in blocks: for tests and
/// experiments on one machine.
pub const SIMULATED_NODES: &str = "PARIO_NODES";

/// Ranks on nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placement {
    /// By rank: its node, and its number there.
    places: Vec<(Node, Rank)>,
    nodes: u32,
}

impl Placement {
    /// One rank.
    pub(super) fn alone() -> Placement {
        Self::one_node(1)
    }

    /// Ranks of one node.
    pub(super) fn one_node(ranks: u32) -> Placement {
        Self::of((0..ranks).map(|_| 0))
    }

    /// The communicator of the ranks of the caller's node, in order. Collective.
    pub(super) fn node_of_this_rank(
        host: &Host,
        comm: Comm,
        rank: Rank,
        size: u32,
    ) -> Result<Comm> {
        let key = rank.0 as c_int;
        let near = match simulated() {
            Some(nodes) => {
                let colour = block(rank.0, size, nodes) as c_int;
                let part = host.comm_split(comm, Some(colour), key);
                part.map(|part| part.expect("a rank that gave a colour gets a part"))
            }
            None => host.comm_split_shared(comm, key),
        };
        near.map_err(host_error)
    }

    /// From the communicators of the nodes. Collective over `comm`.
    pub(super) fn find(host: &Host, comm: Comm, near: Comm) -> Result<Placement> {
        let labels = labels(host, comm, near).map_err(host_error)?;
        Ok(Self::of(labels.into_iter()))
    }

    /// From something by rank that is equal for ranks of one node.
    fn of(labels: impl Iterator<Item = u32>) -> Placement {
        let mut seen: Vec<(u32, u32)> = Vec::new();
        let places = labels.map(|label| {
            let known = seen.iter().position(|(other, _)| *other == label);
            let node = known.unwrap_or_else(|| {
                seen.push((label, 0));
                seen.len() - 1
            });
            let index = seen[node].1;
            seen[node].1 += 1;
            (Node(node as u32), Rank(index))
        });
        let places = places.collect();
        Placement {
            places,
            nodes: seen.len() as u32,
        }
    }

    pub(super) fn nodes(&self) -> u32 {
        self.nodes
    }

    pub(super) fn node_of(&self, rank: Rank) -> Node {
        self.places[rank.index()].0
    }

    /// How many ranks are on a rank's node, and its number among them.
    pub(super) fn on_my_node(&self, me: Rank) -> (u32, Rank) {
        let (node, index) = self.places[me.index()];
        let here = self.places.iter().filter(|(other, _)| *other == node);
        (here.count() as u32, index)
    }

    /// The number of a rank on the node of `me`, if it is there.
    pub(super) fn index_on_node(&self, me: Rank, rank: Rank) -> Option<Rank> {
        let (node, index) = self.places[rank.index()];
        (node == self.node_of(me)).then_some(index)
    }

    /// The ranks of a node, in order.
    pub(super) fn ranks_of(&self, node: Node) -> impl Iterator<Item = Rank> + '_ {
        let places = self.places.iter().zip(0..);
        places.filter_map(move |((other, _), rank)| (*other == node).then_some(Rank(rank)))
    }

    /// The first rank of a node.
    pub(super) fn leader_of(&self, node: Node) -> Rank {
        self.ranks_of(node).next().expect("a node has ranks")
    }
}

/// By rank: the rank that is the first of its node.
fn labels(host: &Host, comm: Comm, near: Comm) -> std::result::Result<Vec<u32>, MpiError> {
    let mut first = (host.comm_rank(comm)? as u32).to_ne_bytes();
    host.bcast(&mut first, 0, near)?;
    let all = host.allgather(&first, comm)?;
    let (labels, _) = all.as_chunks();
    Ok(labels
        .iter()
        .map(|label| u32::from_ne_bytes(*label))
        .collect())
}

fn simulated() -> Option<u32> {
    let value = env::var(SIMULATED_NODES).ok()?;
    value.trim().parse().ok().filter(|nodes| *nodes > 0)
}

/// The block of a rank when `size` ranks are dealt to `nodes` blocks.
fn block(rank: u32, size: u32, nodes: u32) -> u32 {
    let nodes = nodes.min(size);
    (u64::from(rank) * u64::from(nodes) / u64::from(size)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_become_nodes_in_order_of_appearance() {
        let placement = Placement::of([7, 3, 7, 3, 9].into_iter());
        assert_eq!(placement.nodes(), 3);
        assert_eq!(placement.node_of(Rank(2)), Node(0));
        assert_eq!(placement.on_my_node(Rank(3)), (2, Rank(1)));
        assert_eq!(placement.index_on_node(Rank(0), Rank(2)), Some(Rank(1)));
        assert_eq!(placement.index_on_node(Rank(0), Rank(1)), None);
        assert_eq!(placement.leader_of(Node(2)), Rank(4));
        assert!(placement.ranks_of(Node(1)).eq([Rank(1), Rank(3)]));
    }

    #[test]
    fn blocks_are_even() {
        let blocks: Vec<u32> = (0..7).map(|rank| block(rank, 7, 3)).collect();
        assert_eq!(blocks, [0, 0, 0, 1, 1, 2, 2]);
        assert_eq!(block(0, 1, 5), 0);
    }
}
