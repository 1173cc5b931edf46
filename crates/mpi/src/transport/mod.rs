//! The transport over an MPI.
//!
//! Ranks of a node communicate through shared memory
//! ([`pario_transport::node`]); they need the MPI only to find each other. Ranks
//! of different nodes, or of a node that cannot share memory, use two private
//! communicators ([`mpi_endpoint`]): one for control messages, which are taken
//! from any rank and queued, and one for posted transfers, whose source and tag
//! are fixed, so that the MPI moves the bytes straight to their place. Whoever
//! waits keeps the MPI's progress moving, and sleeps in between.

mod all_to_all;
mod attachment;
mod data_slots;
mod dispatch;
mod engine;
mod gather;
mod host_progress;
mod machine;
mod meeting;
mod mpi_endpoint;
mod mpi_point_to_point;
mod packets;
mod permission;
mod placement;
mod point_to_point;
mod process_group;
mod progress;
mod registry;
mod retired;

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pario_transport::unexpected::ContextId;
use pario_transport::{
    DataTag, Posted, Rank, Result, Segment, Transport, TransportError, generic, node,
};

pub use engine::Moved;
pub use meeting::Met;
pub use permission::{Callers, InsideCall, end};
pub use placement::SIMULATED_NODES;
pub use progress::{ProgressRegistration, is_weak, progress_registered};

use data_slots::Context;
use dispatch::PostedOn;
use engine::Direction;
use meeting::CHOOSER;
use mpi_endpoint::MpiEndpoint;
use process_group::ProcessGroup;

use crate::{Comm, Group, Host};

/// Locks state that a panic in another thread leaves intact.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The ranks of an MPI communicator, as pario sees them.
#[derive(Debug)]
pub struct MpiTransport {
    group: Arc<ProcessGroup>,
    context: Context,
    /// The ranks of this node, if they share memory.
    node: Option<node::Endpoint>,
    /// Transfers over the MPI for which there is no tag.
    by_messages: generic::PostedByMessages,
}

impl MpiTransport {
    /// A transport between the ranks of an intracommunicator. Collective; what
    /// is sent over `comm` itself never meets pario's messages.
    pub fn new(host: &'static Host, comm: Comm) -> Result<Arc<MpiTransport>> {
        let met = Self::meet(host, comm, |_| 0)?;
        let several_worlds = || TransportError::Host {
            message: "the communicator has ranks of another MPI_COMM_WORLD".to_owned(),
        };
        let [transport, _] = met.ok_or_else(several_worlds)?.transports;
        Ok(transport)
    }

    /// The transport of a context that all ranks of the group agreed on.
    fn numbered(group: &Arc<ProcessGroup>, word: u64, reserved: node::Reserved) -> MpiTransport {
        let context = Context::from_word(word);
        let node = group.node.as_ref();
        let node = node.map(|node| node.numbered(context.number, reserved));
        if let Some(link) = &group.link {
            link.open(ContextId(context.number));
        }
        MpiTransport {
            group: Arc::clone(group),
            context,
            node,
            by_messages: generic::PostedByMessages::default(),
        }
    }

    /// The message by which one rank lets the others have the same duplicates:
    /// the context of each, and the memory that is reserved for it.
    fn offer_duplicates(&self, count: usize) -> Vec<u8> {
        let node = self.group.node.as_ref().filter(|_| self.is_one_node());
        let words = (0..count).flat_map(|_| {
            let context = self.group.take_context();
            [context, node.map_or(0, |node| node.reserve().0)]
        });
        words.flat_map(u64::to_le_bytes).collect()
    }

    /// The duplicates that were offered.
    fn accept_duplicates(&self, count: usize, offer: &[u8]) -> Result<Vec<Arc<MpiTransport>>> {
        let (words, _) = offer.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let (duplicates, odd) = words.as_chunks::<2>();
        if duplicates.len() != count || !odd.is_empty() {
            return Err(TransportError::Malformed {
                rank: CHOOSER,
                operation: "a duplication",
            });
        }
        let duplicate = |&[context, reserved]: &[u64; 2]| {
            let reserved = node::Reserved(reserved);
            Arc::new(MpiTransport::numbered(&self.group, context, reserved))
        };
        Ok(duplicates.iter().map(duplicate).collect())
    }

    /// Makes progress for background operations, if the calling thread may call
    /// the MPI. Keeps the progress of the MPI itself moving, too.
    pub fn make_progress(&self) -> Moved {
        match &self.group.link {
            Some(link) => link.progress(),
            None => {
                self.group.progress.make();
                Moved::Nothing
            }
        }
    }

    /// Has messages of a background operation that starts now move on while the
    /// program is in other functions of the MPI, as far as this MPI allows that
    /// ([`is_weak`]). `None` if nothing needs to be done. The calling thread may
    /// call the MPI.
    #[must_use]
    pub fn progress_in_background(&self) -> Option<ProgressRegistration> {
        match &self.group.link {
            Some(link) if !self.is_one_node() => ProgressRegistration::of(link),
            _ => None,
        }
    }

    /// The host's group of the ranks, in order. It goes with the transport.
    #[must_use]
    pub fn group(&self) -> Group {
        self.group.group()
    }

    /// A communicator of the ranks that nobody else uses, where there is one.
    #[must_use]
    pub fn comm(&self) -> Option<Comm> {
        self.group.comm
    }

    /// The number of nodes that the ranks run on.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.group.placement.nodes()
    }

    /// Whether all ranks share memory, so that nothing goes over the MPI.
    #[must_use]
    pub fn is_one_node(&self) -> bool {
        self.group.is_one_node()
    }

    /// How the ranks of this transport communicate, for reports.
    #[must_use]
    pub fn describe(&self) -> String {
        let placement = &self.group.placement;
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

    /// The ranks of this node, and the rank's number there, if it is here and
    /// they share memory.
    fn nearby(&self, rank: Rank) -> Option<(&node::Endpoint, Rank)> {
        let node = self.node.as_ref()?;
        let index = self.group.placement.index_on_node(self.rank(), rank)?;
        Some((node, index))
    }

    /// Messages over the MPI, which exist wherever a rank is not nearby.
    fn link(&self) -> &Arc<MpiEndpoint> {
        let link = self.group.link.as_ref();
        link.expect("ranks that share no memory have a communicator")
    }

    fn check_rank(&self, rank: Rank) -> Result<()> {
        let size = self.size();
        match rank.0 < size {
            true => Ok(()),
            false => Err(TransportError::BadRank { rank, size }),
        }
    }

    /// All ranks through shared memory: their numbers there are the ranks.
    fn all_nearby(&self) -> Option<&node::Endpoint> {
        let one = self.group.placement.nodes() == 1;
        self.node.as_ref().filter(|_| one)
    }

    /// The context of messages over the MPI.
    fn context(&self) -> ContextId {
        ContextId(self.context.number)
    }

    /// Counts a message that goes over the MPI.
    fn count_sent(&self, to: Rank, bytes: usize) {
        let placement = &self.group.placement;
        let is_within_node = placement.node_of(to) == placement.node_of(self.rank());
        self.group.sent.count(bytes, is_within_node);
    }

    /// Starts a transfer over the MPI.
    fn post(
        &self,
        direction: Direction,
        peer: Rank,
        tag: DataTag,
        memory: &Segment,
        range: Range<usize>,
    ) -> Posted {
        let mpi_tag = self.context.slot.and_then(|slot| slot.mpi_tag(tag));
        if let Some(mpi_tag) = mpi_tag {
            if direction == Direction::Send {
                self.count_sent(peer, range.len());
            }
            let link = self.link();
            let id = link.post(self.context(), direction, peer, mpi_tag, memory, range);
            return PostedOn::Mpi(id).encode();
        }
        let posted = match direction {
            Direction::Receive => self.by_messages.receive(peer, tag, memory, range),
            Direction::Send => self.by_messages.send(peer, tag, memory, range),
        };
        self.by_messages.progress(self);
        PostedOn::Messages(posted).encode()
    }

    /// A result of the ranks of this node.
    fn on_node<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| self.group.translate(error))
    }
}

impl Drop for MpiTransport {
    fn drop(&mut self) {
        let link = self.group.link.as_ref();
        let is_idle = link.is_none_or(|link| link.close(self.context()));
        // A receive that is still posted would take the data of the slot's next
        // user.
        if is_idle {
            self.group.give_back(self.context);
        }
    }
}
