//! The transport over an MPI.
//!
//! Ranks of a node talk through shared memory ([`pario_transport::node`]); the
//! MPI is needed only to find each other. Ranks of different nodes, or of a
//! node that cannot share memory, talk by messages over a private duplicate of
//! the communicator ([`bridge`]). Whoever waits keeps the MPI's progress
//! moving, and sleeps in between.

mod bridge;
mod cache;
mod gather;
mod hooks;
mod mpi_wire;
mod permission;
mod placement;
mod process;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pario_transport::{
    Meanwhile, Node, Patience, Rank, Result, Segment, Tag, Transport, TransportError, generic, node,
};

pub use bridge::Moved;
pub use hooks::{Attendance, carry_attended, is_weak};
pub use permission::{Callers, InsideCall};

use bridge::Bridge;
use mpi_wire::MpiWire;
pub use placement::PRETENDED_NODES;
use placement::Placement;

use crate::{Comm, Host, Threads};

/// The context in which the ranks of a transport find each other.
const FIRST_CONTEXT: u64 = 0;

/// What all duplicates of a transport share.
#[derive(Debug)]
struct Shared {
    bridge: Arc<Bridge>,
    placement: Placement,
    /// The private duplicate.
    comm: Comm,
    /// Contexts are numbered by rank 0.
    next_context: AtomicU64,
}

/// The ranks of an MPI communicator, as pario sees them.
#[derive(Debug)]
pub struct MpiTransport {
    shared: Arc<Shared>,
    context: u64,
    /// The ranks of this node, if they share memory.
    node: Option<Arc<dyn Transport>>,
}

impl MpiTransport {
    /// A transport between the ranks of an intracommunicator. Collective; what
    /// is sent over `comm` itself never meets pario's messages.
    pub fn new(host: &'static Host, comm: Comm) -> Result<MpiTransport> {
        let wire = MpiWire::duplicate(host, comm)?;
        let placement = Placement::find(host, wire.comm())?;
        let callers = match host.threads().map_err(mpi_wire::host_error)? {
            Threads::Multiple => Callers::All,
            _ => Callers::Inside,
        };
        // The caller is inside a call, or has promised the same.
        let _inside = InsideCall::enter();
        let comm = wire.comm();
        Self::over(Bridge::new(Box::new(wire), callers), placement, comm)
    }

    fn over(bridge: Bridge, placement: Placement, comm: Comm) -> Result<MpiTransport> {
        let bridge = Arc::new(bridge);
        let mut transport = MpiTransport {
            shared: Arc::new(Shared {
                bridge: Arc::clone(&bridge),
                placement,
                comm,
                next_context: AtomicU64::new(FIRST_CONTEXT + 1),
            }),
            context: FIRST_CONTEXT,
            node: None,
        };
        transport.node = transport.meet_on_node(&bridge)?;
        Ok(transport)
    }

    /// The ranks of this node find memory that they share, by messages.
    fn meet_on_node(&self, bridge: &Arc<Bridge>) -> Result<Option<Arc<dyn Transport>>> {
        let placement = &self.shared.placement;
        let (ranks, me) = placement.on_my_node(self.rank());
        if ranks > node::RANKS_MAX {
            return Ok(None);
        }
        let Some(memory) = generic::segment(self, node::bytes(ranks))? else {
            return Ok(None);
        };
        let bridge = Arc::downgrade(bridge);
        let carry = move || {
            if let Some(bridge) = bridge.upgrade() {
                bridge.carry();
            }
            hooks::carry_attended();
        };
        let meanwhile = Meanwhile::new(carry);
        let patience = bridge::PATIENCE.among(ranks);
        let joined = node::join(memory, ranks, me, patience, meanwhile);
        Ok(Some(joined))
    }

    /// Carries messages of background operations on, if the calling thread may
    /// call the MPI. Keeps the progress of the MPI itself moving, too.
    pub fn make_progress(&self) -> Moved {
        self.shared.bridge.carry()
    }

    /// Sees to it that messages of a background operation that starts now move
    /// on while the program is in other functions of the MPI, as far as this
    /// MPI lets others do that ([`is_weak`]). `None` where nothing needs to be
    /// done. The calling thread may call the MPI.
    #[must_use]
    pub fn attend_background(&self) -> Option<Attendance> {
        match self.is_one_node() {
            true => None,
            false => Attendance::of(&self.shared.bridge),
        }
    }

    /// The private duplicate of the communicator: the same ranks, in order.
    #[must_use]
    pub fn comm(&self) -> Comm {
        self.shared.comm
    }

    /// The number of nodes that the ranks run on.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.shared.placement.nodes()
    }

    /// Whether all ranks share memory, so that nothing goes over the MPI.
    #[must_use]
    pub fn is_one_node(&self) -> bool {
        self.node.is_some() && self.shared.placement.nodes() == 1
    }

    /// What the ranks of this transport use to talk, for reports.
    #[must_use]
    pub fn describe(&self) -> String {
        let placement = &self.shared.placement;
        let (here, _) = placement.on_my_node(self.rank());
        let node = match self.node {
            Some(_) => "shared memory",
            None if here == 1 => "nothing",
            None => "messages (no shared memory)",
        };
        format!(
            "{} ranks on {} nodes: {node} on the node, {} between nodes",
            self.size(),
            placement.nodes(),
            match placement.nodes() {
                1 => "nothing",
                _ => "MPI messages",
            }
        )
    }

    /// The rank's number on this node, if it is here and they share memory.
    fn nearby(&self, rank: Rank) -> Option<(&dyn Transport, Rank)> {
        let node = self.node.as_deref()?;
        let index = self.shared.placement.index_on_node(self.rank(), rank)?;
        Some((node, index))
    }

    fn check_rank(&self, rank: Rank) -> Result<()> {
        let size = self.size();
        match rank.0 < size {
            true => Ok(()),
            false => Err(TransportError::BadRank { rank, size }),
        }
    }

    /// All ranks through shared memory.
    fn all_nearby(&self) -> Option<&dyn Transport> {
        let one = self.shared.placement.nodes() == 1;
        self.node.as_deref().filter(|_| one)
    }
}

impl Transport for MpiTransport {
    fn name(&self) -> &'static str {
        "mpi"
    }

    fn rank(&self) -> Rank {
        self.shared.bridge.rank()
    }

    fn size(&self) -> u32 {
        self.shared.bridge.size()
    }

    fn node_of(&self, rank: Rank) -> Node {
        self.shared.placement.node_of(rank)
    }

    fn spans_processes(&self) -> bool {
        true
    }

    fn send(&self, to: Rank, tag: Tag, bytes: &[u8]) -> Result<()> {
        self.check_rank(to)?;
        match self.nearby(to) {
            Some((node, to)) => node.send(to, tag, bytes),
            None => self.shared.bridge.send(self.context, to, tag, bytes),
        }
    }

    fn send_owned(&self, to: Rank, tag: Tag, message: Vec<u8>) -> Result<()> {
        self.check_rank(to)?;
        let bridge = &self.shared.bridge;
        match self.nearby(to) {
            Some((node, to)) => node.send_owned(to, tag, message),
            None => bridge.send_owned(self.context, to, tag, message),
        }
    }

    fn receive(&self, from: Rank, tag: Tag) -> Result<Vec<u8>> {
        self.check_rank(from)?;
        if let Some((node, from)) = self.nearby(from) {
            return node.receive(from, tag);
        }
        let attend = || self.node.as_ref().map_or(Ok(()), |node| node.attend());
        let bridge = &self.shared.bridge;
        bridge.receive(self.context, from, tag, self.patience(), attend)
    }

    fn try_receive(&self, from: Rank, tag: Tag) -> Result<Option<Vec<u8>>> {
        self.check_rank(from)?;
        match self.nearby(from) {
            Some((node, from)) => node.try_receive(from, tag),
            None => self.shared.bridge.try_receive(self.context, from, tag),
        }
    }

    fn attend(&self) -> Result<()> {
        match &self.node {
            Some(node) => node.attend()?,
            None => {
                self.shared.bridge.carry();
            }
        }
        self.shared.bridge.check()
    }

    fn patience(&self) -> Patience {
        let node = self.node.as_ref();
        node.map_or(bridge::PATIENCE, |node| node.patience())
    }

    /// An MPI ends the whole job when a rank is lost.
    fn check(&self, rank: Rank) -> Result<()> {
        self.check_rank(rank)?;
        self.shared.bridge.check()
    }

    fn barrier(&self) -> Result<()> {
        match self.all_nearby() {
            Some(node) => node.barrier(),
            None => gather::barrier(self),
        }
    }

    fn broadcast(&self, root: Rank, bytes: Vec<u8>) -> Result<Vec<u8>> {
        self.check_rank(root)?;
        match (self.all_nearby(), self.nearby(root)) {
            (Some(node), Some((_, root))) => node.broadcast(root, bytes),
            _ => generic::broadcast(self, root, bytes),
        }
    }

    fn all_gather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        match self.all_nearby() {
            // On one node the numbers there are the ranks.
            Some(node) => node.all_gather(mine),
            None => gather::all_gather(self, mine),
        }
    }

    fn duplicate(&self) -> Result<Arc<dyn Transport>> {
        const CHOOSER: Rank = Rank(0);
        let offer = if self.rank() == CHOOSER {
            let next = self.shared.next_context.fetch_add(1, Ordering::Relaxed);
            next.to_le_bytes().to_vec()
        } else {
            Vec::new()
        };
        let offer = self.broadcast(CHOOSER, offer)?;
        let malformed = |_| TransportError::Malformed {
            rank: CHOOSER,
            operation: "a duplication",
        };
        let context = offer
            .try_into()
            .map(u64::from_le_bytes)
            .map_err(malformed)?;
        let node = self.node.as_ref().map(|node| node.duplicate());
        Ok(Arc::new(MpiTransport {
            shared: Arc::clone(&self.shared),
            context,
            node: node.transpose()?,
        }))
    }

    fn scratch(&self) -> Option<Segment> {
        self.all_nearby()?.scratch()
    }

    fn segment(&self, bytes: usize) -> Result<Option<Segment>> {
        match &self.node {
            Some(node) => node.segment(bytes),
            None => generic::segment(self, bytes),
        }
    }
}

impl Drop for MpiTransport {
    fn drop(&mut self) {
        self.shared.bridge.close(self.context);
    }
}
