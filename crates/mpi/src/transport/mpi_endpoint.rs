//! A rank's end of the messages and data that go over the MPI, for all
//! contexts and threads.
//!
//! Senders leave [commands](Command), receivers look into the
//! [unexpected-message queue](UnexpectedQueue). Whoever may call the MPI and
//! comes by runs the [engine](Engine): a rank that waits, a background thread,
//! a hook of the MPI. So threads that may not call the MPI communicate, too, as
//! long as one that may comes by.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use pario_transport::node::WakeUp;
use pario_transport::unexpected::{ContextId, UnexpectedQueue};
use pario_transport::{
    Backoff, BuildNumberHasher, Loss, Process, Rank, Result, Segment, Tag, TransportError,
};

use super::engine::{Command, Direction, Engine, Event, Moved, Transfer};
use super::permission::Callers;
use super::point_to_point::{Data, PointToPoint};
use super::{lock, packets, progress};
use crate::Host;

/// The context of messages that concern every context: a rank is lost.
pub(super) const LOSSES: ContextId = ContextId(u64::MAX);

/// The context of the last messages of all.
const PARTING: ContextId = ContextId(u64::MAX - 1);

/// How many times to look for messages when nothing comes: in some MPIs long
/// messages of the program itself move on by one piece per look.
const IDLE_POLLS: usize = 8;

/// A look into an MPI takes as long as so many looks into shared memory.
pub(super) const LOOKS_PER_POLL: u32 = 4;

/// How ranks wait while an MPI needs their attention: never asleep for long.
pub(super) const BACKOFF: Backoff = Backoff {
    looks: Backoff::DEFAULT.looks,
    yield_for: Duration::from_micros(50),
    first_sleep: Duration::from_micros(200),
    longest_sleep: Duration::from_millis(1),
    give_up_after: None,
};

/// How long a rank yields at least if it waits for messages over an
/// MPI, which wake nobody: as long as another rank takes to fill a window. A sleep
/// of a millisecond per window made calls between two nodes a third slower.
const YIELD_FOR_MESSAGES: Duration = Duration::from_millis(5);

/// How one of so many ranks on a node waits.
pub(super) fn backoff(ranks: u32, has_link: bool) -> Backoff {
    let backoff = BACKOFF.among(ranks);
    match (has_link, Backoff::is_crowded(ranks)) {
        (false, _) => backoff,
        (true, false) => Backoff {
            yield_for: backoff.yield_for.max(YIELD_FOR_MESSAGES),
            ..backoff
        },
        (true, true) => Backoff {
            yield_for: backoff.yield_for.max(YIELD_FOR_MESSAGES),
            first_sleep: BACKOFF.first_sleep,
            longest_sleep: BACKOFF.longest_sleep,
            ..backoff
        },
    }
}

/// What has come in.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    pub(super) queue: UnexpectedQueue,
    /// The transfers that have not been asked for since they were complete.
    transfers: HashMap<u64, TransferState, BuildNumberHasher>,
    /// Why nothing more will come.
    broken: Option<TransportError>,
    /// Threads that sleep until something comes.
    sleepers: usize,
    /// How often there was a reason to look again.
    events: u64,
}

#[derive(Debug)]
struct TransferState {
    context: ContextId,
    is_complete: bool,
}

impl Incoming {
    /// Another rank has reported a loss.
    pub(super) fn learn_of_loss(&mut self, message: &[u8]) -> Option<()> {
        let (rank, reason) = message.split_first_chunk()?;
        let reason = u32::from_le_bytes(reason.try_into().ok()?);
        self.broken.get_or_insert(TransportError::PeerLost {
            rank: Rank(u32::from_le_bytes(*rank)),
            reason: Loss::from_code(reason)?,
        });
        Some(())
    }

    fn check(&self) -> Result<()> {
        self.broken.clone().map_or(Ok(()), Err)
    }
}

/// A rank's end of a pair of private communicators.
#[derive(Debug)]
pub(super) struct MpiEndpoint {
    point_to_point: Box<dyn PointToPoint>,
    callers: Callers,
    /// The process whose MPI it is: a child that it forks has none.
    process: Process,
    commands: Mutex<VecDeque<Command>>,
    incoming: Mutex<Incoming>,
    arrival: Condvar,
    /// Wakes threads of this rank that sleep in shared memory.
    wake_up: OnceLock<WakeUp>,
    engine: Mutex<Engine>,
    next_transfer: AtomicU64,
}

impl MpiEndpoint {
    pub(super) fn new(point_to_point: Box<dyn PointToPoint>, callers: Callers) -> Self {
        MpiEndpoint {
            point_to_point,
            callers,
            process: Process::this(),
            commands: Mutex::default(),
            incoming: Mutex::default(),
            arrival: Condvar::new(),
            wake_up: OnceLock::new(),
            engine: Mutex::default(),
            next_transfer: AtomicU64::new(0),
        }
    }

    pub(super) fn rank(&self) -> Rank {
        self.point_to_point.rank()
    }

    pub(super) fn size(&self) -> u32 {
        self.point_to_point.size()
    }

    /// Which threads may call the MPI.
    pub(super) fn callers(&self) -> Callers {
        self.callers
    }

    /// The MPI, unless messages go in another way.
    pub(super) fn host(&self) -> Option<&'static Host> {
        self.point_to_point.host()
    }

    /// Has arrivals wake threads that sleep in shared memory, too.
    pub(super) fn wake_also(&self, wake_up: WakeUp) {
        // There is one shared memory per group.
        let _ = self.wake_up.set(wake_up);
    }

    pub(super) fn open(&self, context: ContextId) {
        lock(&self.incoming).queue.open(context);
    }

    /// Forgets messages and transfers of a context that no one uses any more;
    /// whether no transfer was under way. The memory of one that was is kept
    /// until the MPI has done with it.
    pub(super) fn close(&self, context: ContextId) -> bool {
        let mut incoming = lock(&self.incoming);
        incoming.queue.close(context);
        let mut is_idle = true;
        incoming.transfers.retain(|_, transfer| {
            is_idle &= transfer.context != context || transfer.is_complete;
            transfer.context != context
        });
        is_idle
    }

    /// Sends a message; its bytes are copied.
    pub(super) fn send(&self, context: ContextId, to: Rank, tag: Tag, bytes: &[u8]) -> Result<()> {
        self.send_packets(to, packets::split(context, tag, bytes)?)
    }

    /// Sends a message; its bytes stay where they are if they are one packet.
    pub(super) fn send_owned(
        &self,
        context: ContextId,
        to: Rank,
        tag: Tag,
        message: Vec<u8>,
    ) -> Result<()> {
        self.send_packets(to, packets::split_owned(context, tag, message)?)
    }

    fn send_packets(&self, to: Rank, packets: Vec<Vec<u8>>) -> Result<()> {
        if to == self.rank() {
            for packet in packets {
                self.accept(Event::Packet(to, packet))?;
            }
            return Ok(());
        }
        let packets = packets.into_iter().map(|packet| Command::Send(to, packet));
        lock(&self.commands).extend(packets);
        self.progress_once();
        self.check()
    }

    /// The next message of a rank if it is in the queue.
    pub(super) fn take(&self, context: ContextId, from: Rank, tag: Tag) -> Result<Option<Vec<u8>>> {
        self.look(|queue| queue.take(context, from, tag))
    }

    /// The next message of any rank if it is in the queue.
    pub(super) fn take_any(&self, context: ContextId, tag: Tag) -> Result<Option<(Rank, Vec<u8>)>> {
        self.look(|queue| queue.take_any(context, tag))
    }

    /// Looks into the queue. Fails if it has nothing and nothing will come.
    fn look<T>(
        &self,
        take: impl FnOnce(&mut UnexpectedQueue) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let mut incoming = lock(&self.incoming);
        match take(&mut incoming.queue)? {
            Some(found) => Ok(Some(found)),
            None => incoming.check().map(|()| None),
        }
    }

    /// Starts a transfer; its number.
    pub(super) fn post(
        &self,
        context: ContextId,
        direction: Direction,
        peer: Rank,
        tag: std::ffi::c_int,
        memory: &Segment,
        range: Range<usize>,
    ) -> u64 {
        assert!(
            range.start <= range.end && range.end <= memory.bytes(),
            "{range:?} is not within a segment of {} bytes",
            memory.bytes()
        );
        let id = self.next_transfer.fetch_add(1, Ordering::Relaxed);
        let is_complete = false;
        let state = TransferState {
            context,
            is_complete,
        };
        lock(&self.incoming).transfers.insert(id, state);
        let memory = memory.clone();
        lock(&self.commands).push_back(Command::Transfer(Transfer {
            id,
            direction,
            peer,
            tag,
            data: Data { memory, range },
        }));
        self.progress_once();
        id
    }

    /// Whether a transfer is complete; if so it is forgotten.
    pub(super) fn is_complete(&self, id: u64) -> Result<bool> {
        let mut incoming = lock(&self.incoming);
        let transfer = incoming.transfers.get(&id);
        let transfer = transfer.expect("a transfer that was posted and is not complete");
        if !transfer.is_complete {
            return incoming.check().map(|()| false);
        }
        incoming.transfers.remove(&id);
        Ok(true)
    }

    /// Returns when `ready` does. Fails if a rank is lost.
    pub(super) fn wait_until(
        &self,
        backoff: Backoff,
        ready: &mut dyn FnMut() -> bool,
    ) -> Result<()> {
        for _ in 0..backoff.looks / LOOKS_PER_POLL {
            self.progress_once();
            if ready() {
                return Ok(());
            }
        }
        let mut state = backoff.start();
        loop {
            let seen = lock(&self.incoming).events;
            self.progress();
            if ready() {
                return Ok(());
            }
            let checked = state.rest(|bound| {
                self.check()?;
                progress::progress_registered();
                self.sleep(bound, seen);
                Ok(())
            });
            if let Some(Err(error)) = checked {
                // What the lost rank did before it was lost still counts.
                return ready().then_some(()).ok_or(error);
            }
        }
    }

    /// Sleeps unless something has happened since `seen`.
    fn sleep(&self, bound: Duration, seen: u64) {
        let mut incoming = lock(&self.incoming);
        incoming.sleepers += 1;
        let is_idle = |incoming: &mut Incoming| incoming.events == seen;
        let waited = self.arrival.wait_timeout_while(incoming, bound, is_idle);
        let (mut incoming, _) = waited.unwrap_or_else(PoisonError::into_inner);
        incoming.sleepers -= 1;
    }

    /// Wakes the threads of this rank that wait, to look again.
    pub(super) fn wake(&self) {
        let mut incoming = lock(&self.incoming);
        incoming.events += 1;
        // A wake-up is a system call even if nobody is asleep.
        if incoming.sleepers > 0 {
            self.arrival.notify_all();
        }
        drop(incoming);
        if let Some(wake_up) = self.wake_up.get() {
            wake_up.wake();
        }
    }

    /// Returns when everything that was sent has left, which it does: the
    /// receivers wait for it.
    pub(super) fn finish_sending(&self) -> Result<()> {
        while self.may_call() {
            self.progress_once();
            self.check()?;
            if lock(&self.commands).is_empty() && lock(&self.engine).has_sent_all() {
                break;
            }
            thread::yield_now();
        }
        Ok(())
    }

    /// Returns when all ranks have called this and nothing is under way. Ranks
    /// exchange messages at doubling distances, so that those who are last part
    /// at the same moment.
    pub(super) fn part(&self) -> Result<()> {
        let (rank, size) = (self.rank().0, self.size());
        let distances = std::iter::successors(Some(1_u32), |distance| distance.checked_mul(2));
        for distance in distances.take_while(|distance| *distance < size) {
            let tag = Tag(distance);
            let to = u64::from(rank) + u64::from(distance);
            let to = Rank((to % u64::from(size)) as u32);
            let from = Rank((rank + size - distance) % size);
            self.send(PARTING, to, tag, &[])?;
            while self.may_call() && self.take(PARTING, from, tag)?.is_none() {
                self.progress_once();
                thread::yield_now();
            }
        }
        self.finish_sending()
    }

    /// Ends all waits, here and on other nodes, because a rank has been lost
    /// that they would not notice. Only the first loss is reported.
    pub(super) fn announce_loss(&self, rank: Rank, reason: Loss) {
        let lost = TransportError::PeerLost { rank, reason };
        if !self.break_with(lost) {
            return;
        }
        let mut message = rank.0.to_le_bytes().to_vec();
        message.extend(reason.code().to_le_bytes());
        let others = (0..self.size()).map(Rank);
        for to in others.filter(|to| *to != rank && *to != self.rank()) {
            // A message of eight bytes is one packet, and there is memory for it.
            let packets = packets::split(LOSSES, Tag(0), &message).unwrap_or_default();
            let packets = packets.into_iter().map(|packet| Command::Send(to, packet));
            lock(&self.commands).extend(packets);
        }
        self.progress_once();
    }

    /// Notes why nothing more will come, and whether that is new.
    fn break_with(&self, error: TransportError) -> bool {
        let is_new = {
            let broken = &mut lock(&self.incoming).broken;
            let is_new = broken.is_none();
            broken.get_or_insert(error);
            is_new
        };
        self.wake();
        is_new
    }

    /// Fails if a rank has been lost or the MPI has failed.
    pub(super) fn check(&self) -> Result<()> {
        lock(&self.incoming).check()
    }

    /// Takes what the engine reports.
    fn accept(&self, event: Event) -> Result<()> {
        {
            let mut incoming = lock(&self.incoming);
            match event {
                Event::Packet(from, packet) => incoming.push_packet(from, packet)?,
                Event::Complete(id) => {
                    if let Some(transfer) = incoming.transfers.get_mut(&id) {
                        transfer.is_complete = true;
                    }
                }
            }
        }
        self.wake();
        Ok(())
    }

    /// Runs the engine, if this thread may call the MPI and no other does.
    pub(super) fn progress(&self) -> Moved {
        self.progress_polling(IDLE_POLLS)
    }

    /// As [`progress`](Self::progress) for those who come by often.
    pub(super) fn progress_once(&self) -> Moved {
        self.progress_polling(1)
    }

    /// Whether the calling thread may call the MPI, which a forked child has none of.
    fn may_call(&self) -> bool {
        self.callers.include_me() && self.process.is_this()
    }

    fn progress_polling(&self, idle_polls: usize) -> Moved {
        if !self.may_call() {
            return Moved::Nothing;
        }
        let mut moved = Moved::Nothing;
        loop {
            // Whoever has the lock does the work; a hook of the MPI may bring
            // the same thread here again.
            let Ok(mut engine) = self.engine.try_lock() else {
                return moved;
            };
            let result = self.run(&mut engine, idle_polls);
            drop(engine);
            moved = moved.or(result.unwrap_or_else(|error| {
                self.break_with(error);
                Moved::Something
            }));
            // Whoever found the lock taken has left its command to us.
            if lock(&self.commands).is_empty() {
                return moved;
            }
        }
    }

    fn run(&self, engine: &mut Engine, idle_polls: usize) -> Result<Moved> {
        let mpi = self.point_to_point.as_ref();
        let mut moved = Moved::Nothing;
        loop {
            // Not locked while the MPI is called: a hook may want to send.
            let command = lock(&self.commands).pop_front();
            let Some(command) = command else { break };
            engine.start(mpi, command)?;
            moved = Moved::Something;
        }
        let polled = engine.poll(mpi, idle_polls, &mut |event| self.accept(event));
        Ok(moved.or(polled?))
    }
}

impl Drop for MpiEndpoint {
    fn drop(&mut self) {
        let may_call = self.may_call();
        let engine = self.engine.get_mut();
        let engine = engine.unwrap_or_else(PoisonError::into_inner);
        engine.abandon(may_call);
    }
}
