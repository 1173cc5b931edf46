//! What the planner knows about the machine and the file system.

use pario_types::{Client, LockProtocol, Striping};

/// The facts that a plan is based on, the same on all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The node of each rank.
    pub nodes: Vec<u32>,
    /// Striping over servers, if known.
    pub striping: Option<Striping>,
    /// Lock granularity in bytes, if known.
    pub lock_granularity: Option<u64>,
    /// How writers are serialised.
    pub lock_protocol: LockProtocol,
    /// Where the client runs.
    pub client: Client,
    /// Block size of the file system in bytes.
    pub block_bytes: u64,
    /// The size up to which every transfer is one request to a server; `None` where
    /// a cache gathers small transfers.
    pub request_bytes: Option<u64>,
}

impl Facts {
    /// Ranks on one node with a local file system.
    pub fn one_node(ranks: usize) -> Facts {
        Facts {
            nodes: vec![0; ranks],
            striping: None,
            lock_granularity: None,
            lock_protocol: LockProtocol::None,
            client: Client::Kernel,
            block_bytes: 4096,
            request_bytes: None,
        }
    }

    /// Number of nodes.
    pub fn node_count(&self) -> usize {
        let mut nodes = self.nodes.clone();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.len()
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
