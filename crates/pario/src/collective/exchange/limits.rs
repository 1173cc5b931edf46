//! The sizes of an exchange, from hints and placement.

use std::collections::HashSet;

use pario_exchange::{Groups, Limits};
use pario_plan::{Exchange, Tuning};
use pario_transport::{Rank, Transport};

/// Windows per aggregator under way: one is moved between ranks while another
/// is moved to or from the file.
const DEPTH: u32 = 2;
/// Slices per aggregator that are put in place while others arrive.
const STAGING: u32 = 2;
/// Slices per node and aggregator that are filled while others are sent.
const NODE_BUFFERS: u32 = 2;
/// A data message: long enough for the network's full bandwidth.
const SLICE_BYTES: u64 = 1 << 20;
/// Receives that a rank may have posted in one context: as many tags as the
/// transport over an MPI has for it.
const TAGS: u16 = 512;

/// How many bytes all ranks together may move for their data to travel with the
/// messages that start and end a call.
pub const EAGER_BYTES: u64 = 32 << 10;

/// Limits for calls with these hints. The same on all ranks.
pub fn limits(groups: &Groups, window_bytes: u64, unit: u64, eager_bytes: u64) -> Limits {
    let largest = (0..groups.count()).map(|group| groups.members(group).len() as u64);
    let largest = largest.max().unwrap_or(1);
    Limits {
        window_bytes,
        slice_bytes: SLICE_BYTES.min(window_bytes).max(largest),
        depth: DEPTH,
        staging: STAGING,
        node_buffers: NODE_BUFFERS,
        unit,
        eager_bytes,
        tags: 0..TAGS,
    }
}

/// How data travels between ranks of several nodes: as a hint says, else one
/// message per node where nodes have several ranks.
pub(super) fn exchange(comm: &dyn Transport, tuning: &Tuning) -> Exchange {
    let asked = tuning.exchange.as_deref();
    let asked = Exchange::ALL
        .into_iter()
        .find(|it| Some(it.name()) == asked);
    let nodes: HashSet<_> = (0..comm.size())
        .map(|rank| comm.node_of(Rank(rank)))
        .collect();
    match asked {
        Some(asked) if asked != Exchange::Shared => asked,
        _ if nodes.len() < comm.size() as usize => Exchange::TwoLayer,
        _ => Exchange::Messages,
    }
}

/// Who combines data with whom.
pub(super) fn groups(comm: &dyn Transport, exchange: Exchange, is_unshared: bool) -> Groups {
    let nodes: Vec<u32> = (0..comm.size())
        .map(|rank| comm.node_of(Rank(rank)).0)
        .collect();
    match exchange {
        _ if is_unshared => Groups::alone(comm.size()),
        Exchange::Shared | Exchange::TwoLayer => Groups::by_node(&nodes),
        Exchange::Messages | Exchange::AllToAll => {
            let groups = Groups::by_node(&nodes);
            match groups.count() {
                // Asked for by name: there are no messages otherwise.
                1 => Groups::alone(comm.size()),
                _ => groups.without_layer(),
            }
        }
    }
}
