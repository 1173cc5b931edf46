//! The trait that every transport serves.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use crate::{
    Backoff, DataTag, Gathered, MemoryRuns, Node, Posted, Rank, Result, Segment, Tag, Traffic,
    collectives, sharing,
};

/// Bytes that [`Transport::send_owned`] may add to a message.
pub const SEND_HEADROOM: usize = 32;

/// How the ranks of one world communicate.
///
/// Messages are bytes. A collective is called by all ranks, in the same order;
/// two threads of one rank may use a transport at the same time for messages,
/// but each thread that calls collectives needs its own [duplicate].
///
/// No call hangs because a rank is gone: when a rank panicked or was killed,
/// every wait of the world that is not yet satisfied ends with
/// [`PeerLost`], naming that rank; when a rank returned in good order, waits
/// for that rank do. What it sent before can still be received.
///
/// [duplicate]: Transport::duplicate
/// [`PeerLost`]: crate::TransportError::PeerLost
pub trait Transport: Send + Sync + Debug {
    /// The name of the transport, for reports.
    fn name(&self) -> &'static str;

    /// The rank of the caller.
    fn rank(&self) -> Rank;

    /// The number of ranks.
    fn size(&self) -> u32;

    /// The node on which `rank` runs.
    ///
    /// # Panics
    /// When there is no such rank.
    fn node_of(&self, rank: Rank) -> Node;

    /// Whether the ranks run on several nodes.
    fn spans_nodes(&self) -> bool {
        let first = (self.size() > 0).then(|| self.node_of(Rank(0)));
        (1..self.size()).any(|rank| Some(self.node_of(Rank(rank))) != first)
    }

    /// Whether ranks may live in different processes, so that pointers mean
    /// nothing to each other.
    fn spans_processes(&self) -> bool;

    /// Sends a message. It is buffered: the call does not wait for the
    /// receive, unless the transport's documented bound is reached. A sender
    /// that waits takes in its own incoming messages, so ranks that first send
    /// to each other and then receive do not deadlock, however long the messages
    /// are.
    fn send(&self, to: Rank, tag: Tag, bytes: &[u8]) -> Result<()>;

    /// Sends a message that the caller no longer needs, which saves a copy if
    /// messages are kept until they leave; and another if the vector has capacity
    /// for [`SEND_HEADROOM`] more bytes.
    fn send_owned(&self, to: Rank, tag: Tag, message: Vec<u8>) -> Result<()> {
        self.send(to, tag, &message)
    }

    /// As [`send`](Transport::send), but false if that would have to wait: then
    /// nothing is sent. For short messages; one that is longer than a packet of
    /// the transport may wait after its first packet.
    fn try_send(&self, to: Rank, tag: Tag, bytes: &[u8]) -> Result<bool> {
        self.send(to, tag, bytes).map(|()| true)
    }

    /// Receives the next message of `from` with this tag.
    fn receive(&self, from: Rank, tag: Tag) -> Result<Vec<u8>>;

    /// Receives the next message of `from` with this tag if it has arrived.
    fn try_receive(&self, from: Rank, tag: Tag) -> Result<Option<Vec<u8>>>;

    /// Receives the next message with this tag from any rank, if one has
    /// arrived. Messages of one sender keep their order. Fails if there is none
    /// and a rank has panicked or been killed; a rank that has returned is not
    /// an error. Need not make progress: meant
    /// for [`wait_until`](Transport::wait_until), which does.
    fn try_receive_any(&self, tag: Tag) -> Result<Option<(Rank, Vec<u8>)>>;

    /// Starts to receive `range.len()` bytes that `from` sends by
    /// [`post_send`](Transport::post_send) with the same tag and length on the
    /// same duplicate. The receive has to be posted before the send: the
    /// sender learns of it by a message, for instance. Transfers with the same
    /// peer and tag are matched in the order in which they were posted.
    ///
    /// Until the transfer is complete, no one else reads or writes the range.
    /// The transport keeps the memory until then, even if the peer is lost or
    /// the transport is dropped.
    ///
    /// # Panics
    /// If the range is not within the memory or the tag not below its bound.
    fn post_receive(
        &self,
        from: Rank,
        tag: DataTag,
        memory: &Segment,
        range: Range<usize>,
    ) -> Result<Posted>;

    /// Starts to send the bytes of a range to a rank that has posted the
    /// receive. Never waits. Until the transfer is complete no one writes the
    /// range.
    ///
    /// # Panics
    /// As [`post_receive`](Transport::post_receive).
    fn post_send(
        &self,
        to: Rank,
        tag: DataTag,
        memory: &Segment,
        range: Range<usize>,
    ) -> Result<Posted>;

    /// Whether a posted transfer is complete; if so it is forgotten. Fails if
    /// it will never be, because the peer has left or a rank was lost. Need not
    /// make progress: meant for [`wait_until`](Transport::wait_until), which does.
    ///
    /// # Panics
    /// If it was not posted on this transport, or was complete before.
    fn is_complete(&self, posted: Posted) -> Result<bool>;

    /// Waits until `ready` returns true: looks, yields and then sleeps as the
    /// [backoff](Transport::backoff) says, making progress all the time. An
    /// arriving message, a completed transfer, [`wake`](Transport::wake) and
    /// the loss of a rank end a sleep. Fails if `ready` does, or if a rank
    /// panicked or was killed.
    fn wait_until(&self, ready: &mut dyn FnMut() -> Result<bool>) -> Result<()>;

    /// Wakes this rank's threads in [`wait_until`](Transport::wait_until), to
    /// look again. Any thread of the rank may call it.
    fn wake(&self);

    /// What this rank has sent, over all duplicates of the transport.
    fn traffic(&self) -> Traffic;

    /// What a rank does now and then while it waits for something that the
    /// transport knows nothing about, such as a word in a [`Segment`]: takes in
    /// messages, keeps the host's progress moving, and fails when a rank
    /// panicked or was killed. Meant for [`Waiter`](crate::Waiter), together
    /// with [`check`](Transport::check): a rank that has returned is not an
    /// error as long as no one waits for it. Long messages to a rank that waits
    /// in this way advance only when it makes progress.
    fn progress(&self) -> Result<()>;

    /// How long to wait in one go for something that the transport knows
    /// nothing about, before the next [`progress`](Transport::progress).
    fn backoff(&self) -> Backoff {
        Backoff::DEFAULT
    }

    /// Fails if a rank has left, in whatever way: it will not do anything any
    /// more. For waits in a [`Segment`] for that rank.
    fn check(&self, rank: Rank) -> Result<()>;

    /// Returns when all ranks have called it.
    fn barrier(&self) -> Result<()> {
        collectives::barrier(self)
    }

    /// Returns the bytes that `root` gave; what the others gave is dropped.
    fn broadcast(&self, root: Rank, bytes: Vec<u8>) -> Result<Vec<u8>> {
        collectives::broadcast(self, root, bytes)
    }

    /// Returns what each rank gave, by rank. Lengths may differ.
    fn all_gather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        collectives::all_gather(self, mine)
    }

    /// As [`all_gather`](Transport::all_gather), into memory that calls reuse.
    fn all_gather_into(&self, mine: &[u8], all: &mut Gathered) -> Result<()> {
        all.set(&self.all_gather(mine)?);
        Ok(())
    }

    /// As [`all_gather_into`](Transport::all_gather_into), for ranks that usually
    /// give the same single byte. Returns whether it was found that all of them
    /// did; `all` is then empty.
    fn all_gather_unless_same(&self, mine: &[u8], all: &mut Gathered) -> Result<bool> {
        self.all_gather_into(mine, all)?;
        Ok(false)
    }

    /// A private world of messages and collectives between the same ranks.
    /// Collective.
    fn duplicate(&self) -> Result<Arc<dyn Transport>> {
        let mut one = self.duplicates(1)?;
        Ok(one.pop().expect("as many duplicates as were asked for"))
    }

    /// Several duplicates for the price of one. Collective; all ranks ask for
    /// the same number.
    fn duplicates(&self, count: usize) -> Result<Vec<Arc<dyn Transport>>>;

    /// Whether all ranks can exchange data in one operation of the host's,
    /// [`all_to_all`](Transport::all_to_all), from the calling thread. The same on
    /// all ranks that make the same call.
    fn has_all_to_all(&self) -> bool {
        false
    }

    /// Sends each rank the bytes of some memory and receives from each rank, all at
    /// once, as `MPI_Alltoallw` does. Both have an entry per rank; what a rank sends
    /// another is as long as what that one expects. Collective.
    ///
    /// # Panics
    /// Without [`has_all_to_all`](Transport::has_all_to_all).
    fn all_to_all(&self, _send: &[MemoryRuns], _receive: &[MemoryRuns]) -> Result<()> {
        unreachable!("this transport has no such operation")
    }

    /// Zeroed memory shared by the ranks of this node. Collective over the
    /// ranks of the node, which all give the same length. `None`, on all of
    /// them, if one of them cannot have it (or it would take more than half of
    /// the memory that is free): then they use messages.
    fn segment(&self, bytes: usize) -> Result<Option<Segment>> {
        sharing::segment(self, bytes)
    }

    /// 256 bytes of memory shared by all ranks and 64 more for each of them,
    /// zeroed when the transport was made, which cost no meeting: the same memory at every call, and no one's
    /// once all ranks have dropped the transport. `None` on all ranks where
    /// there is none: then [`segment`](Transport::segment) may have some.
    fn scratch(&self) -> Option<Segment> {
        None
    }
}
