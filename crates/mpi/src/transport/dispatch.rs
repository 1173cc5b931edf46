//! Each function of the transport through shared memory where the ranks are on this node, over the
//! MPI where they are not.

use std::{ops::Range, sync::Arc};

use pario_transport::{
    Backoff, DataTag, Gathered, MemoryRuns, Node, Posted, Rank, Result, Segment, Tag, Traffic,
    Transport, generic,
};

use super::{
    MpiTransport,
    engine::Direction,
    gather,
    meeting::CHOOSER,
    mpi_endpoint::{self, LOOKS_PER_POLL},
};

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

/// Who moves a posted transfer.
pub(super) enum PostedOn {
    Node(Posted),
    Mpi(u64),
    Messages(Posted),
}

impl PostedOn {
    const KINDS: u64 = 3;

    pub(super) fn encode(self) -> Posted {
        let (id, kind) = match self {
            PostedOn::Node(Posted(id)) => (id, 0),
            PostedOn::Mpi(id) => (id, 1),
            PostedOn::Messages(Posted(id)) => (id, 2),
        };
        Posted(id * Self::KINDS + kind)
    }

    pub(super) fn decode(posted: Posted) -> PostedOn {
        let id = posted.0 / Self::KINDS;
        match posted.0 % Self::KINDS {
            0 => PostedOn::Node(Posted(id)),
            1 => PostedOn::Mpi(id),
            _ => PostedOn::Messages(Posted(id)),
        }
    }
}
