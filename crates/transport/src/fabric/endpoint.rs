//! A rank's transport over a world.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::collective_slots::{CollectiveSlots, Contribution};
use super::direct_receives::DirectReceives;
use super::engine::Engine;
use super::geometry::INLINE_BYTES;
use super::operations::Wakes;
use super::process_watch::ProcessWatch;
use super::progress_hook::ProgressHook;
use super::transfers::{Data, Key};
use super::world::World;
use crate::sharing::{self, Backing};
use crate::unexpected::ContextId;
use crate::{
    Backoff, DataTag, Gathered, Node, Posted, Process, Rank, Result, Segment, Tag, Traffic,
    Transport, TransportError, collectives,
};

/// What [`Endpoint::reserve`] took, as a number that can be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reserved(pub u64);

impl Reserved {
    fn slots(self) -> Option<CollectiveSlots> {
        let set = self.0.checked_sub(1)?;
        Some(CollectiveSlots(set as usize))
    }
}

/// Wakes the threads of a rank that wait in its transport.
#[derive(Clone, Debug)]
pub struct WakeUp(Arc<Engine>);

impl WakeUp {
    /// Wakes them, to look again.
    pub fn wake(&self) {
        self.0.wake();
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
    /// The posted receives, if ranks are threads of one process.
    pub(crate) direct_receives: Option<DirectReceives>,
    /// What a rank does besides while it waits.
    pub(crate) progress_hook: ProgressHook,
}

/// The transport of one rank, or a duplicate of it.
#[derive(Debug)]
pub struct Endpoint {
    kind: Arc<Kind>,
    engine: Arc<Engine>,
    context: ContextId,
    slots: Option<CollectiveSlots>,
    /// The collectives that were called with the slots.
    operations: Mutex<u64>,
    /// The process that is the rank: a child that it forks is not.
    process: Process,
}

impl Endpoint {
    /// Joins a world; once per rank.
    pub(crate) fn join(world: World, rank: Rank, kind: Arc<Kind>) -> Self {
        let hook = kind.progress_hook.clone();
        let engine = Arc::new(Engine::new(world, rank, kind.backoff, hook));
        let slots = Some(CollectiveSlots::FIRST);
        Self::new(kind, engine, ContextId::FIRST, slots)
    }

    fn new(
        kind: Arc<Kind>,
        engine: Arc<Engine>,
        context: ContextId,
        slots: Option<CollectiveSlots>,
    ) -> Self {
        engine.open(context);
        Endpoint {
            kind,
            engine,
            context,
            slots,
            operations: Mutex::new(0),
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

    /// A posted transfer between this rank and another.
    fn key(&self, peer: Rank, tag: DataTag) -> Key {
        assert!(
            tag < DataTag(DataTag::BOUND),
            "{tag:?} is not below {}",
            DataTag::BOUND
        );
        let context = self.context;
        Key { context, peer, tag }
    }

    fn count_sent(&self, to: Rank, bytes: usize) {
        let is_within_node = self.node_of(to) == self.node_of(self.rank());
        self.engine.sent.count(bytes, is_within_node);
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

    /// Gathers with slots, and by messages what is too long for them: the slots
    /// tell every rank who sends.
    fn gather_in(&self, slots: CollectiveSlots, mine: &[u8], all: &mut Gathered) -> Result<()> {
        let operation = self.contribute(slots, mine)?;
        self.collect(slots, operation, mine, all)
    }

    /// As [`gather_in`](Self::gather_in), unless all ranks gave the same byte; whether they did.
    fn gather_unless_same_in(
        &self,
        slots: CollectiveSlots,
        mine: &[u8],
        all: &mut Gathered,
    ) -> Result<bool> {
        let operation = self.contribute(slots, mine)?;
        if let [byte] = mine
            && slots.have_all_given(&self.engine, *byte, operation)
        {
            all.clear();
            return Ok(true);
        }
        self.collect(slots, operation, mine, all)?;
        Ok(false)
    }

    /// Enters the next operation with a contribution and waits for those of all ranks; the
    /// operation.
    fn contribute(&self, slots: CollectiveSlots, mine: &[u8]) -> Result<u64> {
        let operation = self.next_operation();
        slots.enter(&self.engine, operation, mine, Wakes::Last)?;
        slots.await_all(&self.engine, operation)?;
        Ok(operation)
    }

    fn collect(
        &self,
        slots: CollectiveSlots,
        operation: u64,
        mine: &[u8],
        all: &mut Gathered,
    ) -> Result<()> {
        let (me, size) = (self.rank(), self.size());
        if mine.len() > INLINE_BYTES {
            for distance in 1..size {
                let to = Rank((me.0 + distance) % size);
                self.send(to, Tag::ALL_GATHER, mine)?;
            }
        }
        all.clear();
        for rank in (0..size).map(Rank) {
            let is_inline = slots.push_contribution(&self.engine.world, rank, operation, all);
            match is_inline {
                true => {}
                false if rank == me => all.push(mine),
                false => all.push(&self.receive(rank, Tag::ALL_GATHER)?),
            }
        }
        Ok(())
    }

    fn broadcast_in(&self, slots: CollectiveSlots, root: Rank, bytes: Vec<u8>) -> Result<Vec<u8>> {
        let operation = self.next_operation();
        let is_root = root == self.rank();
        let (mine, wakes) = match is_root {
            true => (bytes.as_slice(), Wakes::This),
            false => (&[][..], Wakes::Last),
        };
        slots.enter(&self.engine, operation, mine, wakes)?;
        slots.await_one(&self.engine, root, operation)?;
        match slots.contribution(&self.engine.world, root, operation) {
            Contribution::Inline(_) if is_root => Ok(bytes),
            Contribution::Inline(bytes) => Ok(bytes),
            Contribution::Elsewhere => collectives::broadcast(self, root, bytes),
        }
    }

    /// Takes slots with which the collectives of a duplicate are fast. One rank
    /// does, and tells the others what it got; nothing if all are taken.
    #[must_use]
    pub fn reserve(&self) -> Reserved {
        Reserved(CollectiveSlots::take(&self.engine.world).map_or(0, |slots| slots.0 as u64 + 1))
    }

    /// Gives back what no rank has made a duplicate with.
    pub fn give_back(&self, reserved: Reserved) {
        if let Some(slots) = reserved.slots() {
            slots.give_back(&self.engine.world);
        }
    }

    /// The duplicate of a number that all ranks agreed on in some other way, as
    /// on what one of them reserved. No other duplicate ever had the number.
    #[must_use]
    pub fn numbered(&self, number: u64, reserved: Reserved) -> Endpoint {
        Self::new(
            Arc::clone(&self.kind),
            Arc::clone(&self.engine),
            ContextId::assigned(number),
            reserved.slots(),
        )
    }

    /// Wakes the threads of this rank that wait, whatever becomes of the
    /// endpoint.
    #[must_use]
    pub fn wake_up(&self) -> WakeUp {
        WakeUp(Arc::clone(&self.engine))
    }

    /// As [`wait_until`](Transport::wait_until), with another backoff.
    pub fn wait_with(
        &self,
        backoff: Backoff,
        ready: &mut dyn FnMut() -> Result<bool>,
    ) -> Result<()> {
        self.engine.wait_with(backoff, || {
            self.engine.poll();
            Ok(ready()?.then_some(()))
        })
    }

    /// Watches the processes of the ranks from now on. Collective.
    pub(crate) fn watch_processes(&self) -> Result<()> {
        let all = self.all_gather(&ProcessWatch::introduce())?;
        self.engine.watch(ProcessWatch::new(self.rank(), &all));
        Ok(())
    }

    /// A context and perhaps slots for each duplicate, as one message.
    fn offer_duplicates(&self, count: usize) -> Vec<u8> {
        let world = &self.engine.world;
        let offers = (0..count).flat_map(|_| [world.take_context().0, self.reserve().0]);
        offers.flat_map(u64::to_le_bytes).collect()
    }
}

impl Transport for Endpoint {
    fn name(&self) -> &'static str {
        self.kind.name
    }

    fn rank(&self) -> Rank {
        self.engine.rank
    }

    fn size(&self) -> u32 {
        self.engine.world.ranks
    }

    fn node_of(&self, rank: Rank) -> Node {
        self.kind.nodes[rank.index()]
    }

    fn spans_processes(&self) -> bool {
        self.kind.spans_processes
    }

    fn send(&self, to: Rank, tag: Tag, bytes: &[u8]) -> Result<()> {
        self.check_rank(to)?;
        self.engine.send(to, self.context, tag, bytes)?;
        self.count_sent(to, bytes.len());
        Ok(())
    }

    fn try_send(&self, to: Rank, tag: Tag, bytes: &[u8]) -> Result<bool> {
        self.check_rank(to)?;
        let is_sent = self.engine.try_send(to, self.context, tag, bytes)?;
        if is_sent {
            self.count_sent(to, bytes.len());
        }
        Ok(is_sent)
    }

    fn receive(&self, from: Rank, tag: Tag) -> Result<Vec<u8>> {
        self.check_rank(from)?;
        self.engine.receive(self.context, from, tag)
    }

    fn try_receive(&self, from: Rank, tag: Tag) -> Result<Option<Vec<u8>>> {
        self.check_rank(from)?;
        self.engine.try_receive(self.context, from, tag)
    }

    fn try_receive_any(&self, tag: Tag) -> Result<Option<(Rank, Vec<u8>)>> {
        self.engine.try_receive_any(self.context, tag)
    }

    fn post_receive(
        &self,
        from: Rank,
        tag: DataTag,
        memory: &Segment,
        range: Range<usize>,
    ) -> Result<Posted> {
        self.check_rank(from)?;
        let (key, data) = (self.key(from, tag), Data::new(memory, range));
        if let Some(direct) = &self.kind.direct_receives {
            direct.post(self.rank(), key, data.clone());
        }
        Ok(self.engine.post_receive(key, data))
    }

    fn post_send(
        &self,
        to: Rank,
        tag: DataTag,
        memory: &Segment,
        range: Range<usize>,
    ) -> Result<Posted> {
        self.check_rank(to)?;
        self.count_sent(to, range.len());
        let (key, data) = (self.key(to, tag), Data::new(memory, range));
        let receive = self.key(self.rank(), tag);
        let direct = self.kind.direct_receives.as_ref();
        let is_in_place = direct.is_some_and(|direct| direct.fill(to, receive, &data));
        Ok(self.engine.post_send(key, data, is_in_place))
    }

    fn is_complete(&self, posted: Posted) -> Result<bool> {
        self.engine.is_complete(posted)
    }

    fn wait_until(&self, ready: &mut dyn FnMut() -> Result<bool>) -> Result<()> {
        self.wait_with(self.kind.backoff, ready)
    }

    fn wake(&self) {
        self.engine.wake();
    }

    fn traffic(&self) -> Traffic {
        self.engine.sent.traffic()
    }

    fn progress(&self) -> Result<()> {
        self.engine.poll();
        self.engine.progress()
    }

    fn backoff(&self) -> Backoff {
        self.kind.backoff
    }

    fn check(&self, rank: Rank) -> Result<()> {
        self.check_rank(rank)?;
        match self.engine.world.absence(rank) {
            Some(lost) => Err(lost),
            None => Ok(()),
        }
    }

    fn barrier(&self) -> Result<()> {
        let Some(slots) = self.slots else {
            return collectives::barrier(self);
        };
        let operation = self.next_operation();
        slots.enter(&self.engine, operation, &[], Wakes::Last)?;
        slots.await_all(&self.engine, operation)
    }

    fn broadcast(&self, root: Rank, bytes: Vec<u8>) -> Result<Vec<u8>> {
        self.check_rank(root)?;
        match self.slots {
            Some(slots) => self.broadcast_in(slots, root, bytes),
            None => collectives::broadcast(self, root, bytes),
        }
    }

    fn all_gather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        match self.slots {
            Some(slots) => {
                let mut all = Gathered::default();
                self.gather_in(slots, mine, &mut all)?;
                Ok(all.to_vecs())
            }
            None => collectives::all_gather(self, mine),
        }
    }

    fn all_gather_into(&self, mine: &[u8], all: &mut Gathered) -> Result<()> {
        match self.slots {
            Some(slots) => self.gather_in(slots, mine, all),
            None => {
                all.set(&collectives::all_gather(self, mine)?);
                Ok(())
            }
        }
    }

    fn all_gather_unless_same(&self, mine: &[u8], all: &mut Gathered) -> Result<bool> {
        match self.slots {
            Some(slots) => self.gather_unless_same_in(slots, mine, all),
            None => self.all_gather_into(mine, all).map(|()| false),
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
        let duplicate = |&[context, slots]: &[[u8; 8]; 2]| -> Arc<dyn Transport> {
            Arc::new(Self::new(
                Arc::clone(&self.kind),
                Arc::clone(&self.engine),
                ContextId(u64::from_le_bytes(context)),
                Reserved(u64::from_le_bytes(slots)).slots(),
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
        let slots = self.slots.filter(|_| one_node);
        slots.map(|slots| slots.scratch(&self.engine.world))
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
        self.engine.close(self.context);
        if let Some(direct) = &self.kind.direct_receives {
            direct.close(self.rank(), self.context);
        }
        if let Some(slots) = self.slots {
            slots.release(&self.engine.world);
        }
    }
}
