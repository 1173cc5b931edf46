//! The transport over an MPI.
//!
//! Ranks of a node talk through shared memory ([`pario_transport::node`]); the
//! MPI is needed only to find each other. Ranks of different nodes, or of a
//! node that cannot share memory, talk by messages over a private duplicate of
//! the communicator ([`bridge`]). Whoever waits keeps the MPI's progress
//! moving, and sleeps in between.

mod attachment;
mod gather;
mod host_progress;
mod meeting;
mod mpi_endpoint;
mod mpi_point_to_point;
mod permission;
mod placement;
mod point_to_point;
mod process_group;
mod progress;
mod registry;
mod retired;

use std::ops::Range;
use std::sync::Arc;

use pario_transport::{
    Backoff, DataTag, Gathered, Node, Posted, Rank, Result, Segment, Tag, Traffic, Transport,
    TransportError, generic, node,
};

pub use meeting::Met;
pub use mpi_endpoint::Moved;
pub use permission::{Callers, InsideCall, end};
pub use placement::PRETENDED_NODES;
pub use progress::{ProgressRegistration, is_weak, progress_registered};

use meeting::CHOOSER;
use mpi_endpoint::MpiEndpoint;
use process_group::ProcessGroup;

use crate::{Comm, Group, Host};

/// The ranks of an MPI communicator, as pario sees them.
#[derive(Debug)]
pub struct MpiTransport {
    group: Arc<ProcessGroup>,
    context: u64,
    /// The ranks of this node, if they share memory.
    node: Option<Arc<dyn Transport>>,
    posted: generic::PostedByMessages,
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

    /// The transport of a number that all ranks of the group agreed on.
    fn numbered(group: &Arc<ProcessGroup>, number: u64, reserved: node::Reserved) -> MpiTransport {
        let node = group.node.as_ref();
        let node = node.map(|node| node.numbered(number, reserved));
        MpiTransport {
            group: Arc::clone(group),
            context: number,
            node: node.map(|node| Arc::new(node) as _),
            posted: generic::PostedByMessages::default(),
        }
    }

    /// What one rank tells the others so that all have as many duplicates: the
    /// first number, and what it has reserved for each.
    fn offer_duplicates(&self, count: usize) -> Vec<u8> {
        let mut words = vec![self.group.take_contexts(count)];
        let node = self.group.node.as_ref().filter(|_| self.is_one_node());
        words.extend((0..count).map(|_| node.map_or(0, |node| node.reserve().0)));
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    /// The duplicates that were offered.
    fn accept_duplicates(&self, count: usize, offer: &[u8]) -> Result<Vec<Arc<MpiTransport>>> {
        let (words, _) = offer.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        match words.split_first() {
            Some((first, reserved)) if reserved.len() == count => {
                let each = (*first..).zip(reserved).map(|(number, reserved)| {
                    let reserved = node::Reserved(*reserved);
                    Arc::new(MpiTransport::numbered(&self.group, number, reserved))
                });
                Ok(each.collect())
            }
            _ => Err(TransportError::Malformed {
                rank: CHOOSER,
                operation: "a duplication",
            }),
        }
    }

    /// Carries messages of background operations on, if the calling thread may
    /// call the MPI. Keeps the progress of the MPI itself moving, too.
    pub fn make_progress(&self) -> Moved {
        match &self.group.link {
            Some(link) => link.progress(),
            None => {
                self.group.progress.make();
                Moved::Nothing
            }
        }
    }

    /// Sees to it that messages of a background operation that starts now move
    /// on while the program is in other functions of the MPI, as far as this
    /// MPI lets others do that ([`is_weak`]). `None` where nothing needs to be
    /// done. The calling thread may call the MPI.
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

    /// What the ranks of this transport use to talk, for reports.
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
    fn nearby(&self, rank: Rank) -> Option<(&dyn Transport, Rank)> {
        let node = self.node.as_deref()?;
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
    fn all_nearby(&self) -> Option<&dyn Transport> {
        let one = self.group.placement.nodes() == 1;
        self.node.as_deref().filter(|_| one)
    }

    /// A result of the ranks of this node.
    fn on_node<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| self.group.translate(error))
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

    fn send(&self, to: Rank, tag: Tag, bytes: &[u8]) -> Result<()> {
        self.check_rank(to)?;
        match self.nearby(to) {
            Some((node, to)) => self.on_node(node.send(to, tag, bytes)),
            None => self.link().send(self.context, to, tag, bytes),
        }
    }

    fn try_send(&self, to: Rank, tag: Tag, bytes: &[u8]) -> Result<bool> {
        self.check_rank(to)?;
        match self.nearby(to) {
            Some((node, to)) => self.on_node(node.try_send(to, tag, bytes)),
            // It is buffered.
            None => self
                .link()
                .send(self.context, to, tag, bytes)
                .map(|()| true),
        }
    }

    fn send_owned(&self, to: Rank, tag: Tag, message: Vec<u8>) -> Result<()> {
        self.check_rank(to)?;
        match self.nearby(to) {
            Some((node, to)) => self.on_node(node.send_owned(to, tag, message)),
            None => self.link().send_owned(self.context, to, tag, message),
        }
    }

    fn receive(&self, from: Rank, tag: Tag) -> Result<Vec<u8>> {
        self.check_rank(from)?;
        if let Some((node, from)) = self.nearby(from) {
            return self.on_node(node.receive(from, tag));
        }
        let progress = || match &self.node {
            Some(node) => self.on_node(node.progress()),
            None => Ok(()),
        };
        let backoff = self.backoff();
        self.link()
            .receive(self.context, from, tag, backoff, progress)
    }

    fn try_receive(&self, from: Rank, tag: Tag) -> Result<Option<Vec<u8>>> {
        self.check_rank(from)?;
        match self.nearby(from) {
            Some((node, from)) => self.on_node(node.try_receive(from, tag)),
            None => self.link().try_receive(self.context, from, tag),
        }
    }

    fn try_receive_any(&self, tag: Tag) -> Result<Option<(Rank, Vec<u8>)>> {
        if let Some(node) = &self.node
            && let Some((from, message)) = self.on_node(node.try_receive_any(tag))?
        {
            return Ok(Some((self.group.rank_on_node(from), message)));
        }
        match &self.group.link {
            Some(link) => link.try_receive_any(self.context, tag),
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
        Ok(self.posted.receive(from, tag, memory, range))
    }

    fn post_send(
        &self,
        to: Rank,
        tag: DataTag,
        memory: &Segment,
        range: Range<usize>,
    ) -> Result<Posted> {
        self.check_rank(to)?;
        let posted = self.posted.send(to, tag, memory, range);
        self.posted.progress(self);
        Ok(posted)
    }

    fn is_complete(&self, posted: Posted) -> Result<bool> {
        self.posted.is_complete(self, posted)
    }

    fn wait_until(&self, ready: &mut dyn FnMut() -> Result<bool>) -> Result<()> {
        // An error of `ready` already names ranks of the group.
        let mut failure = None;
        let mut look = || {
            if let Some(link) = &self.group.link {
                link.progress_once();
            }
            self.posted.progress(self);
            ready().unwrap_or_else(|error| {
                failure = Some(error);
                true
            })
        };
        match (&self.node, &self.group.link) {
            (Some(node), _) => self.on_node(node.wait_until(&mut || Ok(look())))?,
            (None, Some(link)) => link.wait_until(self.backoff(), &mut look)?,
            (None, None) => while !look() {},
        }
        failure.map_or(Ok(()), Err)
    }

    fn wake(&self) {
        match (&self.node, &self.group.link) {
            (Some(node), _) => node.wake(),
            (None, Some(link)) => link.wake(),
            (None, None) => {}
        }
    }

    fn traffic(&self) -> Traffic {
        let node = self.node.as_ref().map(|node| node.traffic());
        let [messages, bytes] = self.group.link.as_ref().map_or([0; 2], |link| link.sent());
        Traffic {
            messages_between_nodes: messages,
            bytes_between_nodes: bytes,
            ..node.unwrap_or_default()
        }
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
        if let Some(link) = &self.group.link {
            link.close(self.context);
        }
    }
}
