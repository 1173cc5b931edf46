//! Messages and collectives through shared memory: what the threads and the
//! processes transport are made of.
//!
//! A world is one stretch of shared memory ([`world`], arranged by
//! [`geometry`]). It has a queue of packets for each receiver ([`packet_queue`]),
//! slots for short collectives ([`collective_slots`]), and for each rank an event
//! on which it sleeps, the set of ranks that wait for space in its queue
//! ([`waiting_senders`]), and a word that says whether it is still there.
//!
//! There are no locks in shared memory, and a rank may be killed between any two
//! instructions: each word either has one writer at a time, or is changed by a
//! single atomic instruction, and is written after the data that it announces. A
//! rank that is killed while it writes a packet delays those behind that packet
//! until its end is noticed; then the packet is passed over ([`cells`]). What it
//! sent before can be received.
//!
//! In its own memory a rank has an [`engine`]: the [unexpected-message
//! queue](crate::unexpected) and its posted transfers ([`transfers`]). All
//! duplicates of a transport share it. Long messages travel as packets, which are
//! put together at the receiver, or copied straight to the memory of a posted
//! receive; ranks that are threads copy the latter themselves
//! ([`direct_receives`]). A rank that waits for anything takes packets from its queue and
//! pushes its posted sends on, so a blocked sender always gets on.

mod cells;
mod collective_slots;
mod direct_receives;
mod endpoint;
mod engine;
mod geometry;
mod operations;
mod packet_queue;
mod process_watch;
mod progress_hook;
mod transfers;
mod waiting_senders;
mod world;

pub(crate) use direct_receives::DirectReceives;
pub(crate) use endpoint::Kind;
pub use endpoint::{Endpoint, Reserved, WakeUp};
pub use progress_hook::ProgressHook;
pub(crate) use world::World;

use crate::Node;

/// The most ranks that a world may have. Memory grows with their number: 27 MiB
/// for 256 ranks, 110 MiB for 1024, as far as it has been used.
pub(crate) const RANKS_MAX: u32 = 1024;

/// The shared memory that communicators of so many ranks on a node take for their
/// messages and collectives, once it has all been used.
pub fn shared_bytes(ranks: u32) -> u64 {
    World::bytes(ranks) as u64
}

/// All ranks on one node.
pub(crate) fn one_node(ranks: u32) -> Vec<Node> {
    assert!(
        ranks <= RANKS_MAX,
        "{ranks} ranks are too many: a world has at most {RANKS_MAX}"
    );
    vec![Node(0); ranks as usize]
}

/// Ranks on simulated nodes.
pub(crate) fn placement(ranks: usize, nodes: &[u32]) -> Vec<Node> {
    assert_eq!(
        nodes.len(),
        ranks,
        "a placement names the node of each rank"
    );
    nodes.iter().copied().map(Node).collect()
}

#[cfg(test)]
mod tests;
