//! Ranks of one node that found each other in some other way, such as an MPI,
//! and share a segment: what they say to each other goes through it.
//!
//! ```
//! use pario_transport::{ProgressHook, Backoff, Rank, Segment, Transport, node};
//!
//! let memory = Segment::anonymous(node::bytes(1))?;
//! let alone = node::join(memory, 1, Rank(0), Backoff::DEFAULT, ProgressHook::default())?;
//! assert_eq!(alone.all_gather(b"me"), Ok(vec![b"me".to_vec()]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::path::Path;
use std::sync::Arc;

use crate::fabric::{self, Kind, ProgressHook, World};
pub use crate::fabric::{Endpoint, Reserved, WakeUp};
use crate::sharing::{Backing, NamedDirectory, SHARED_MEMORY_DIRECTORY};
use crate::{Backoff, Rank, Result, Segment};

/// The most ranks that can share a segment.
pub const RANKS_MAX: u32 = fabric::RANKS_MAX;

/// The length of the segment that so many ranks need.
///
/// # Panics
/// For more than [`RANKS_MAX`] ranks.
#[must_use]
pub fn bytes(ranks: u32) -> usize {
    assert!(ranks <= RANKS_MAX, "{ranks} ranks are too many for a node");
    World::bytes(ranks)
}

/// Joins the world in `memory`, zeroed before any rank joined, as one of
/// `ranks`; once per rank. Collective. While a rank waits it watches the processes
/// of the others, so that one that has ended is an error and not a wait for ever.
///
/// # Panics
/// When the memory is too small or there is no such rank.
pub fn join(
    memory: Segment,
    ranks: u32,
    rank: Rank,
    backoff: Backoff,
    progress_hook: ProgressHook,
) -> Result<Endpoint> {
    assert!(memory.bytes() >= bytes(ranks), "the segment is too small");
    assert!(rank.0 < ranks, "rank {rank} of {ranks}");
    let world = World::within(memory, ranks);
    if rank == Rank(0) {
        world.open();
    }
    let directory = NamedDirectory::new(Path::new(SHARED_MEMORY_DIRECTORY));
    let kind = Kind {
        name: "node",
        spans_processes: true,
        nodes: fabric::one_node(ranks),
        backoff,
        backings: vec![Backing::Memfd, Backing::Named(directory)],
        direct_receives: None,
        progress_hook,
    };
    let endpoint = Endpoint::join(world, rank, Arc::new(kind));
    endpoint.watch_processes()?;
    Ok(endpoint)
}
