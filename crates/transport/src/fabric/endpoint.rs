//! A rank's transport over a world.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::board::{Board, Contribution};
use super::geometry::INLINE_BYTES;
use super::inbox::{ContextId, Envelope};
use super::mailroom::Mailroom;
use super::process_watch::ProcessWatch;
use super::progress_hook::ProgressHook;
use super::world::World;
use crate::posted_by_messages::PostedByMessages;
use crate::sharing::{self, Backing};
use crate::{
    Backoff, DataTag, Gathered, Node, Posted, Process, Rank, Result, Segment, Tag, Traffic,
    Transport, TransportError, collectives,
};

/// What [`Endpoint::reserve`] took, as a number that can be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reserved(pub u64);

impl Reserved {
    fn board(self) -> Option<Board> {
        self.0.checked_sub(1).map(|board| Board(board as usize))
    }
}

/// What differs between the transports over a world.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) spans_processes: bool,
    /// By rank.
    pub(crate) nodes: Vec<Node>,
    /// How ranks wait for each other.
    pub(crate) backoff: Backoff,
    /// The kinds of memory to try for a segment, in this order.
    pub(crate) backings: Vec<Backing>,
    /// What a rank does besides while it waits.
    pub(crate) progress_hook: ProgressHook,
}

/// The transport of one rank, or a duplicate of it.
#[derive(Debug)]
pub struct Endpoint {
    kind: Arc<Kind>,
    room: Arc<Mailroom>,
    context: ContextId,
    board: Option<Board>,
    /// The collectives that were called on the board.
    operations: Mutex<u64>,
    posted: PostedByMessages,
    /// The process that is the rank: a child that it forks is not.
    process: Process,
}

impl Endpoint {
    /// Joins a world; once a rank.
    pub(crate) fn join(world: World, rank: Rank, kind: Arc<Kind>) -> Self {
        let room = Arc::new(Mailroom::new(
            world,
            rank,
            kind.backoff,
            kind.progress_hook.clone(),
        ));
        Self::new(kind, room, ContextId::FIRST, Some(Board::FIRST))
    }

    fn new(kind: Arc<Kind>, room: Arc<Mailroom>, context: ContextId, board: Option<Board>) -> Self {
        room.open(context);
        Endpoint {
            kind,
            room,
            context,
            board,
            operations: Mutex::new(0),
            posted: PostedByMessages::default(),
            process: Process::this(),
        }
    }

    fn check_rank(&self, rank: Rank) -> Result<()> {
        let size = self.size();
        if rank.0 < size {
            Ok(())
        } else {
            Err(TransportError::BadRank { rank, size })
        }
    }

    fn count_sent(&self, to: Rank, bytes: usize) {
        let is_within_node = self.node_of(to) == self.node_of(self.rank());
        self.room.sent.count(bytes, is_within_node);
    }

    /// The number of the collective that begins now.
    fn next_operation(&self) -> u64 {
        let mut operations = self
            .operations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *operations += 1;
        *operations
    }

    /// Gathers on the board, and by messages what is too long for it: the
    /// board tells every rank who sends and who does not.
    fn gather_on(&self, board: Board, mine: &[u8], all: &mut Gathered) -> Result<()> {
        let operation = self.next_operation();
        board.enter(&self.room, operation, mine)?;
        board.await_all(&self.room, operation)?;
        let (me, size) = (self.rank(), self.size());
        if mine.len() > INLINE_BYTES {
            for distance in 1..size {
                let to = Rank((me.0 + distance) % size);
                self.send(to, Tag::ALL_GATHER, mine)?;
            }
        }
        all.clear();
        for rank in (0..size).map(Rank) {
            let is_inline = board.push_contribution(&self.room.world, rank, operation, all);
            match is_inline {
                true => {}
                false if rank == me => all.push(mine),
                false => all.push(&self.receive(rank, Tag::ALL_GATHER)?),
            }
        }
        Ok(())
    }

    fn broadcast_on(&self, board: Board, root: Rank, bytes: Vec<u8>) -> Result<Vec<u8>> {
        let operation = self.next_operation();
        let is_root = root == self.rank();
        let mine = if is_root { bytes.as_slice() } else { &[] };
        board.enter(&self.room, operation, mine)?;
        board.await_one(&self.room, root, operation)?;
        match board.contribution(&self.room.world, root, operation) {
            Contribution::Inline(_) if is_root => Ok(bytes),
            Contribution::Inline(bytes) => Ok(bytes),
            Contribution::Elsewhere => collectives::broadcast(self, root, bytes),
        }
    }

    /// Takes the memory with which the collectives of a duplicate are fast. One
    /// rank does, and tells the others what it got; nothing where all is taken.
    #[must_use]
    pub fn reserve(&self) -> Reserved {
        Reserved(Board::take(&self.room.world).map_or(0, |Board(board)| board as u64 + 1))
    }

    /// Gives back what no rank has made a duplicate with.
    pub fn give_back(&self, reserved: Reserved) {
        if let Some(board) = reserved.board() {
            board.give_back(&self.room.world);
        }
    }

    /// The duplicate of a number that all ranks agreed on in some other way, as
    /// on what one of them reserved. No other duplicate ever had the number.
    #[must_use]
    pub fn numbered(&self, number: u64, reserved: Reserved) -> Endpoint {
        Self::new(
            Arc::clone(&self.kind),
            Arc::clone(&self.room),
            ContextId::numbered(number),
            reserved.board(),
        )
    }

    /// Watches the processes of the ranks from now on. Collective.
    pub(crate) fn watch_processes(&self) -> Result<()> {
        let all = self.all_gather(&ProcessWatch::introduce())?;
        self.room.watch(ProcessWatch::new(self.rank(), &all));
        Ok(())
    }

    /// A context and perhaps a board for each duplicate, as one message.
    fn offer_duplicates(&self, count: usize) -> Vec<u8> {
        let world = &self.room.world;
        let offers = (0..count).flat_map(|_| [world.take_context().0, self.reserve().0]);
        offers.flat_map(u64::to_le_bytes).collect()
    }
}

impl Transport for Endpoint {
    fn name(&self) -> &'static str {
        self.kind.name
    }

    fn rank(&self) -> Rank {
        self.room.rank
    }

    fn size(&self) -> u32 {
        self.room.world.ranks
    }

    fn node_of(&self, rank: Rank) -> Node {
        self.kind.nodes[rank.index()]
    }

    fn spans_processes(&self) -> bool {
        self.kind.spans_processes
    }

    fn send(&self, to: Rank, tag: Tag, bytes: &[u8]) -> Result<()> {
        self.check_rank(to)?;
        let envelope = Envelope {
            context: self.context,
            tag,
            bytes: bytes.len() as u64,
        };
        self.room.send(to, envelope, bytes)?;
        self.count_sent(to, bytes.len());
        Ok(())
    }

    fn try_send(&self, to: Rank, tag: Tag, bytes: &[u8]) -> Result<bool> {
        self.check_rank(to)?;
        let envelope = Envelope {
            context: self.context,
            tag,
            bytes: bytes.len() as u64,
        };
        let is_sent = self.room.try_send(to, envelope, bytes)?;
        if is_sent {
            self.count_sent(to, bytes.len());
        }
        Ok(is_sent)
    }

    fn receive(&self, from: Rank, tag: Tag) -> Result<Vec<u8>> {
        self.check_rank(from)?;
        self.room.receive(self.context, from, tag)
    }

    fn try_receive(&self, from: Rank, tag: Tag) -> Result<Option<Vec<u8>>> {
        self.check_rank(from)?;
        self.room.try_receive(self.context, from, tag)
    }

    fn try_receive_any(&self, tag: Tag) -> Result<Option<(Rank, Vec<u8>)>> {
        self.room.try_receive_any(self.context, tag)
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
        self.room.wait(|| {
            self.room.harvest();
            self.posted.progress(self);
            Ok(ready()?.then_some(()))
        })
    }

    fn wake(&self) {
        self.room.wake();
    }

    fn traffic(&self) -> Traffic {
        self.room.sent.traffic()
    }

    fn progress(&self) -> Result<()> {
        self.room.harvest();
        self.room.progress()
    }

    fn backoff(&self) -> Backoff {
        self.kind.backoff
    }

    fn check(&self, rank: Rank) -> Result<()> {
        self.check_rank(rank)?;
        match self.room.world.absence(rank) {
            Some(lost) => Err(lost),
            None => Ok(()),
        }
    }

    fn barrier(&self) -> Result<()> {
        let Some(board) = self.board else {
            return collectives::barrier(self);
        };
        let operation = self.next_operation();
        board.enter(&self.room, operation, &[])?;
        board.await_all(&self.room, operation)
    }

    fn broadcast(&self, root: Rank, bytes: Vec<u8>) -> Result<Vec<u8>> {
        self.check_rank(root)?;
        match self.board {
            Some(board) => self.broadcast_on(board, root, bytes),
            None => collectives::broadcast(self, root, bytes),
        }
    }

    fn all_gather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        match self.board {
            Some(board) => {
                let mut all = Gathered::default();
                self.gather_on(board, mine, &mut all)?;
                Ok(all.to_vecs())
            }
            None => collectives::all_gather(self, mine),
        }
    }

    fn all_gather_into(&self, mine: &[u8], all: &mut Gathered) -> Result<()> {
        match self.board {
            Some(board) => self.gather_on(board, mine, all),
            None => {
                all.set(&collectives::all_gather(self, mine)?);
                Ok(())
            }
        }
    }

    fn duplicates(&self, count: usize) -> Result<Vec<Arc<dyn Transport>>> {
        const CHOOSER: Rank = Rank(0);
        let offer = if self.rank() == CHOOSER {
            self.offer_duplicates(count)
        } else {
            Vec::new()
        };
        let offer = self.broadcast(CHOOSER, offer)?;
        let (words, rest) = offer.as_chunks::<8>();
        let (pairs, odd) = words.as_chunks::<2>();
        if pairs.len() != count || !odd.is_empty() || !rest.is_empty() {
            return Err(TransportError::Malformed {
                rank: CHOOSER,
                operation: "a duplication",
            });
        }
        let duplicate = |&[context, board]: &[[u8; 8]; 2]| -> Arc<dyn Transport> {
            Arc::new(Self::new(
                Arc::clone(&self.kind),
                Arc::clone(&self.room),
                ContextId(u64::from_le_bytes(context)),
                Reserved(u64::from_le_bytes(board)).board(),
            ))
        };
        Ok(pairs.iter().map(duplicate).collect())
    }

    fn scratch(&self) -> Option<Segment> {
        let one_node = self
            .kind
            .nodes
            .iter()
            .all(|node| *node == self.kind.nodes[0]);
        let board = self.board.filter(|_| one_node);
        board.map(|board| board.scratch(&self.room.world))
    }

    fn segment(&self, bytes: usize) -> Result<Option<Segment>> {
        sharing::share(self, &self.kind.backings, bytes)
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if !self.process.is_this() {
            return;
        }
        self.room.close(self.context);
        if let Some(board) = self.board {
            board.release(&self.room.world);
        }
    }
}
