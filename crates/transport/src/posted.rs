//! Posted transfers: data that moves between segments of two ranks while both
//! do other things.

use std::sync::atomic::{AtomicU64, Ordering};

/// The tag of a posted transfer, below [`DataTag::BOUND`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataTag(pub u16);

impl DataTag {
    /// The number of tags: what every MPI has at least.
    pub const BOUND: u16 = 1 << 15;
}

/// A transfer under way. It belongs to the transport on which it was posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Posted(pub u64);

/// Messages and bytes of them that a rank has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages to ranks of other nodes.
    pub messages_between_nodes: u64,
    /// Their bytes.
    pub bytes_between_nodes: u64,
    /// Messages to ranks of the same node.
    pub messages_within_node: u64,
    /// Their bytes.
    pub bytes_within_node: u64,
}

/// Counts what a rank sends.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    between_nodes: [AtomicU64; 2],
    within_node: [AtomicU64; 2],
}

impl Sent {
    /// Counts a message of so many bytes.
    pub(crate) fn count(&self, bytes: usize, is_within_node: bool) {
        let [messages, total] = match is_within_node {
            true => &self.within_node,
            false => &self.between_nodes,
        };
        messages.fetch_add(1, Ordering::Relaxed);
        total.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// What was counted.
    #[must_use]
    pub(crate) fn traffic(&self) -> Traffic {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Traffic {
            messages_between_nodes: load(&self.between_nodes[0]),
            bytes_between_nodes: load(&self.between_nodes[1]),
            messages_within_node: load(&self.within_node[0]),
            bytes_within_node: load(&self.within_node[1]),
        }
    }
}
