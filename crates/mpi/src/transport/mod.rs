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
    Backoff, DataTag, Gathered, MemoryRuns, Node, Posted, Rank, Result, Segment, Tag, Traffic,
    Transport, TransportError, generic, node,
};

pub use engine::Moved;
pub use meeting::Met;
pub use permission::{Callers, InsideCall, end};
pub use placement::SIMULATED_NODES;
pub use progress::{ProgressRegistration, is_weak, progress_registered};

use data_slots::Context;
use engine::Direction;
use meeting::CHOOSER;
use mpi_endpoint::{LOOKS_PER_POLL, MpiEndpoint};
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

/// Who moves a posted transfer.
enum PostedOn {
    Node(Posted),
    Mpi(u64),
    Messages(Posted),
}

impl PostedOn {
    const KINDS: u64 = 3;

    fn encode(self) -> Posted {
        let (id, kind) = match self {
            PostedOn::Node(Posted(id)) => (id, 0),
            PostedOn::Mpi(id) => (id, 1),
            PostedOn::Messages(Posted(id)) => (id, 2),
        };
        Posted(id * Self::KINDS + kind)
    }

    fn decode(posted: Posted) -> PostedOn {
        let id = posted.0 / Self::KINDS;
        match posted.0 % Self::KINDS {
            0 => PostedOn::Node(Posted(id)),
            1 => PostedOn::Mpi(id),
            _ => PostedOn::Messages(Posted(id)),
        }
    }
}

impl Transport for MpiTransport {
    fn name(&self) -> &'static str {
        "mpi"
    }

    fn rank(&self) -> Rank {
        self.group.rank
    }

    fn size(&self) -> u32 {
        self.group.size
    }

    fn node_of(&self, rank: Rank) -> Node {
        self.group.placement.node_of(rank)
    }

    fn spans_processes(&self) -> bool {
        true
    }

    fn has_all_to_all(&self) -> bool {
        self.all_to_all_over().is_some()
    }

    fn all_to_all(&self, send: &[MemoryRuns], receive: &[MemoryRuns]) -> Result<()> {
        self.exchange_with_all(send, receive)
    }

    fn send(&self, to: Rank, tag: Tag, bytes: &[u8]) -> Result<()> {
        self.check_rank(to)?;
        match self.nearby(to) {
            Some((node, to)) => self.on_node(node.send(to, tag, bytes)),
            None => {
                self.count_sent(to, bytes.len());
                self.link().send(self.context(), to, tag, bytes)
            }
        }
    }

    fn try_send(&self, to: Rank, tag: Tag, bytes: &[u8]) -> Result<bool> {
        self.check_rank(to)?;
        match self.nearby(to) {
            Some((node, to)) => self.on_node(node.try_send(to, tag, bytes)),
            // It is buffered.
            None => self.send(to, tag, bytes).map(|()| true),
        }
    }

    fn send_owned(&self, to: Rank, tag: Tag, message: Vec<u8>) -> Result<()> {
        self.check_rank(to)?;
        match self.nearby(to) {
            Some((node, to)) => self.on_node(node.send_owned(to, tag, message)),
            None => {
                self.count_sent(to, message.len());
                self.link().send_owned(self.context(), to, tag, message)
            }
        }
    }

    fn receive(&self, from: Rank, tag: Tag) -> Result<Vec<u8>> {
        self.check_rank(from)?;
        if let Some((node, from)) = self.nearby(from) {
            return self.on_node(node.receive(from, tag));
        }
        let mut message = None;
        self.wait_until(&mut || {
            message = self.link().take(self.context(), from, tag)?;
            Ok(message.is_some())
        })?;
        Ok(message.expect("the wait is over when there is one"))
    }

    fn try_receive(&self, from: Rank, tag: Tag) -> Result<Option<Vec<u8>>> {
        self.check_rank(from)?;
        match self.nearby(from) {
            Some((node, from)) => self.on_node(node.try_receive(from, tag)),
            None => {
                let link = self.link();
                link.progress_once();
                link.take(self.context(), from, tag)
            }
        }
    }

    fn try_receive_any(&self, tag: Tag) -> Result<Option<(Rank, Vec<u8>)>> {
        if let Some(node) = &self.node
            && let Some((from, message)) = self.on_node(node.try_receive_any(tag))?
        {
            return Ok(Some((self.group.rank_on_node(from), message)));
        }
        match &self.group.link {
            Some(link) => link.take_any(self.context(), tag),
            None => Ok(None),
        }
    }

    fn post_receive(
        &self,
        from: Rank,
        tag: DataTag,
        memory: &Segment,
        range: Range<usize>,
    ) -> Result<Posted> {
        self.check_rank(from)?;
        match self.nearby(from) {
            Some((node, from)) => {
                let posted = node.post_receive(from, tag, memory, range);
                Ok(PostedOn::Node(self.on_node(posted)?).encode())
            }
            None => Ok(self.post(Direction::Receive, from, tag, memory, range)),
        }
    }

    fn post_send(
        &self,
        to: Rank,
        tag: DataTag,
        memory: &Segment,
        range: Range<usize>,
    ) -> Result<Posted> {
        self.check_rank(to)?;
        match self.nearby(to) {
            Some((node, to)) => {
                let posted = node.post_send(to, tag, memory, range);
                Ok(PostedOn::Node(self.on_node(posted)?).encode())
            }
            None => Ok(self.post(Direction::Send, to, tag, memory, range)),
        }
    }

    fn is_complete(&self, posted: Posted) -> Result<bool> {
        match (PostedOn::decode(posted), &self.node) {
            (PostedOn::Node(posted), Some(node)) => self.on_node(node.is_complete(posted)),
            (PostedOn::Mpi(id), _) => self.link().is_complete(id),
            (PostedOn::Messages(posted), _) => self.by_messages.is_complete(self, posted),
            (PostedOn::Node(_), None) => panic!("a transfer that was posted on another transport"),
        }
    }

    fn wait_until(&self, ready: &mut dyn FnMut() -> Result<bool>) -> Result<()> {
        // An error of `ready` names ranks of the group, one of the node its own.
        let mut failure = None;
        let mut look = || {
            self.by_messages.progress(self);
            ready().unwrap_or_else(|error| {
                failure = Some(error);
                true
            })
        };
        let mut backoff = self.backoff();
        match (&self.node, &self.group.link) {
            (Some(node), Some(link)) => {
                backoff.looks /= LOOKS_PER_POLL;
                let waited = node.wait_with(backoff, &mut || {
                    link.progress_once();
                    Ok(look())
                });
                self.on_node(waited)?;
            }
            (Some(node), None) => self.on_node(node.wait_with(backoff, &mut || Ok(look())))?,
            (None, Some(link)) => link.wait_until(backoff, &mut look)?,
            (None, None) => while !look() {},
        }
        failure.map_or(Ok(()), Err)
    }

    fn wake(&self) {
        match (&self.group.link, &self.node) {
            (Some(link), _) => link.wake(),
            (None, Some(node)) => node.wake(),
            (None, None) => {}
        }
    }

    fn traffic(&self) -> Traffic {
        let node = self.node.as_ref().map(Transport::traffic);
        self.group.sent.traffic() + node.unwrap_or_default()
    }

    fn progress(&self) -> Result<()> {
        match (&self.node, &self.group.link) {
            (Some(node), _) => self.on_node(node.progress()),
            (None, Some(link)) => {
                link.progress();
                link.check()
            }
            (None, None) => Ok(()),
        }
    }

    fn backoff(&self) -> Backoff {
        let node = self.node.as_ref();
        node.map_or(mpi_endpoint::BACKOFF, |node| node.backoff())
    }

    fn check(&self, rank: Rank) -> Result<()> {
        self.check_rank(rank)?;
        if let Some((node, rank)) = self.nearby(rank) {
            self.on_node(node.check(rank))?;
        }
        self.group.link.as_ref().map_or(Ok(()), |link| link.check())
    }

    fn barrier(&self) -> Result<()> {
        match self.all_nearby() {
            Some(node) => node.barrier(),
            None => gather::barrier(self),
        }
    }

    fn broadcast(&self, root: Rank, bytes: Vec<u8>) -> Result<Vec<u8>> {
        self.check_rank(root)?;
        match self.all_nearby() {
            Some(node) => node.broadcast(root, bytes),
            None => generic::broadcast(self, root, bytes),
        }
    }

    fn all_gather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        match self.all_nearby() {
            Some(node) => node.all_gather(mine),
            None => gather::all_gather(self, mine),
        }
    }

    fn all_gather_into(&self, mine: &[u8], all: &mut Gathered) -> Result<()> {
        match self.all_nearby() {
            Some(node) => node.all_gather_into(mine, all),
            None => {
                all.set(&gather::all_gather(self, mine)?);
                Ok(())
            }
        }
    }

    fn all_gather_unless_same(&self, mine: &[u8], all: &mut Gathered) -> Result<bool> {
        match self.all_nearby() {
            Some(node) => node.all_gather_unless_same(mine, all),
            None => self.all_gather_into(mine, all).map(|()| false),
        }
    }

    fn duplicates(&self, count: usize) -> Result<Vec<Arc<dyn Transport>>> {
        let offer = match self.rank() {
            CHOOSER => self.offer_duplicates(count),
            _ => Vec::new(),
        };
        let offer = self.broadcast(CHOOSER, offer)?;
        let duplicates = self.accept_duplicates(count, &offer)?;
        Ok(duplicates.into_iter().map(|it| it as _).collect())
    }

    fn scratch(&self) -> Option<Segment> {
        self.all_nearby()?.scratch()
    }

    fn segment(&self, bytes: usize) -> Result<Option<Segment>> {
        match &self.node {
            Some(node) => self.on_node(node.segment(bytes)),
            None => generic::segment(self, bytes),
        }
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
