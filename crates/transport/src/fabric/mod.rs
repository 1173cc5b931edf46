//! Messages and collectives through shared memory: what the threads and the
//! processes transport are made of.
//!
//! A world is one stretch of shared memory ([`world`], arranged by
//! [`geometry`]): a ring of bytes for each pair of ranks ([`ring`]), boards for
//! short collectives ([`board`]), and for each rank a bell on which it sleeps,
//! flags for the rings that have something for it ([`flags`]), and a word that
//! says whether it is still there. There are no locks in it.
//! Each word has one writer at a time, and is written after the data that it
//! announces, so a rank may be killed between any two instructions.
//!
//! In its own memory a rank has a [`mailroom`]: the ends of its rings and the
//! messages that arrived before anyone asked for them ([`inbox`]). All
//! duplicates of a transport share it. A rank that waits for anything empties
//! its incoming rings meanwhile, so a blocked sender always gets on.

mod board;
mod endpoint;
mod flags;
mod geometry;
mod inbox;
mod mailroom;
mod process_watch;
mod progress_hook;
mod ring;
mod world;

pub(crate) use endpoint::Kind;
pub use endpoint::{Endpoint, Reserved, WakeUp};
pub use progress_hook::ProgressHook;
pub(crate) use world::World;

use crate::Node;

/// The most ranks that a world may have: rings take memory for each pair.
pub(crate) const RANKS_MAX: u32 = 1024;

/// All ranks on one node.
pub(crate) fn one_node(ranks: u32) -> Vec<Node> {
    assert!(
        ranks <= RANKS_MAX,
        "{ranks} ranks are too many: a world has at most {RANKS_MAX}"
    );
    vec![Node(0); ranks as usize]
}

/// Ranks on pretended nodes.
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
