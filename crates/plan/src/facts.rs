//! What the planner knows about the machine and the file system.

use std::ops::Range;

/// Round-robin striping over servers, starting at byte 0 of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Striping {
    /// Stripe size in bytes; not zero.
    pub unit: u64,
    /// Number of servers; not zero.
    pub count: u64,
}

/// A contiguous part of the file on one server (Chaarawi 2011's fcache).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerPart {
    /// Server index, from 0.
    pub server: u64,
    /// Offset in the server's own object.
    pub local_offset: u64,
    /// Length in bytes.
    pub len: u64,
}

impl Striping {
    /// The server that holds a byte.
    pub fn server_of(&self, file_byte: u64) -> u64 {
        file_byte / self.unit % self.count
    }

    /// The parts of a file range by server.
    pub fn parts(self, file: Range<u64>) -> impl Iterator<Item = ServerPart> {
        let mut at = file.start;
        std::iter::from_fn(move || {
            if at >= file.end {
                return None;
            }
            let stripe = at / self.unit;
            let within = at % self.unit;
            let len = (self.unit - within).min(file.end - at);
            at += len;
            Some(ServerPart {
                server: stripe % self.count,
                local_offset: stripe / self.count * self.unit + within,
                len,
            })
        })
    }
}

/// How the file system serialises writers (Liao 2008).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockProtocol {
    /// Not at all, or within the node's kernel.
    None,
    /// Each server manages the locks of its stripes (Lustre).
    Server,
    /// The holder of a token grants further locks (GPFS).
    Token,
}

/// Where the file system's client runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Client {
    /// In the node's kernel: any rank of a node may move any byte.
    Kernel,
    /// In each process.
    Library,
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_server_and_offset() {
        let striping = Striping { unit: 10, count: 3 };
        let parts: Vec<_> = striping.parts(25..62).collect();
        let expected = [(2, 5, 5), (0, 10, 10), (1, 10, 10), (2, 10, 10), (0, 20, 2)];
        let expected = expected.map(|(server, local_offset, len)| ServerPart {
            server,
            local_offset,
            len,
        });
        assert_eq!(parts, expected);
        assert_eq!(striping.server_of(29), 2);
    }
}
