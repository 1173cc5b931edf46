//! What the planner knows about the machine and the file system.

use std::ops::Range;

use pario_types::{Client, LockProtocol, Placement, Stripes, Striping};

/// The facts that a plan is based on, the same on all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The node of each rank.
    pub nodes: Vec<u32>,
    /// Striping over servers, if known: that of the longest component.
    pub striping: Option<Striping>,
    /// Which servers hold which bytes, if known. Ranks may know different
    /// servers, so plans depend on ranges, stripes, and which stripes share a
    /// server.
    pub placement: Option<Placement>,
    /// Lock granularity in bytes, if known.
    pub lock_granularity: Option<u64>,
    /// How writers are serialised.
    pub lock_protocol: LockProtocol,
    /// Where the client runs.
    pub client: Client,
    /// Whether files are kept in memory only (tmpfs).
    pub in_memory: bool,
    /// Block size of the file system in bytes.
    pub block_bytes: u64,
    /// Whether a process can go on while its requests are under way.
    pub nonblocking: bool,
}

impl Facts {
    /// Ranks on one node with a local file system.
    pub fn one_node(ranks: usize) -> Facts {
        Facts {
            nodes: vec![0; ranks],
            striping: None,
            placement: None,
            lock_granularity: None,
            lock_protocol: LockProtocol::None,
            client: Client::Local,
            in_memory: false,
            block_bytes: 4096,
            nonblocking: true,
        }
    }

    /// Number of nodes.
    pub fn node_count(&self) -> usize {
        let mut nodes = self.nodes.clone();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.len()
    }

    /// A range of the file divided where the striping changes; `None` where it is
    /// unknown.
    pub fn sections(&self, file: Range<u64>) -> Vec<(Range<u64>, Option<Stripes>)> {
        match &self.placement {
            Some(placement) => placement.sections(file),
            None => vec![(file, self.striping.map(Stripes::from))],
        }
    }

    /// Preferred alignment of realms: lock granularity, else stripe size, else
    /// block size.
    pub fn boundary(&self) -> u64 {
        self.lock_granularity
            .or(self.striping.map(|striping| striping.unit))
            .unwrap_or(self.block_bytes)
            .max(1)
    }
}
