//! What the planner knows about the machine and the file system.

use std::ops::Range;

/// Round-robin striping over servers, from byte 0 of the file on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Striping {
    /// Bytes in a row on one server; not zero.
    pub unit: u64,
    /// Servers; not zero.
    pub count: u64,
}

/// A part of the file on one server (Chaarawi 2011's fcache).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerPart {
    /// Which server, from 0 on.
    pub server: u64,
    /// Where it starts in the server's own object.
    pub local_offset: u64,
    /// Its length.
    pub len: u64,
}

impl Striping {
    /// The server of a byte.
    pub fn server_of(&self, file_byte: u64) -> u64 {
        file_byte / self.unit % self.count
    }

    /// Which servers hold a range of the file, and where.
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

/// How the file system keeps writers apart (Liao 2008).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockProtocol {
    /// It does not, or the node's kernel does by itself.
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

/// The facts that a plan rests on, the same on all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The node of each rank.
    pub nodes: Vec<u32>,
    /// Striping over servers, if known.
    pub striping: Option<Striping>,
    /// Bytes that one lock covers at least, if known.
    pub lock_granularity: Option<u64>,
    /// How writers are kept apart.
    pub lock_protocol: LockProtocol,
    /// Where the client runs.
    pub client: Client,
    /// The file system's block.
    pub block_bytes: u64,
}

impl Facts {
    /// Ranks on one node, a local file system.
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

    /// How many nodes there are.
    pub fn node_count(&self) -> usize {
        let mut nodes = self.nodes.clone();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.len()
    }

    /// The boundary that realms of different aggregators should share:
    /// locks, else stripes, else blocks.
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
    fn parts_name_server_and_place() {
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
