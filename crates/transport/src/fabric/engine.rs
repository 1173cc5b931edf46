//! The progress engine of a rank, shared by all its threads and duplicates:
//! takes packets from its queue, and puts packets into the queues of others.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::packet_queue::{Consumer, Header, Next, PAYLOAD_BYTES, PacketQueue, Payload};
use super::process_watch::ProcessWatch;
use super::progress_hook::ProgressHook;
use super::transfers::{Data, Key, PostedReceives, PostedSend, PostedSends, Status};
use super::waiting_senders::WaitingSenders;
use super::world::World;
use crate::posted::Sent;
use crate::unexpected::{ContextId, PacketHeader, UnexpectedQueue};
use crate::{Backoff, Loss, Posted, Rank, Result, Tag, TransportError, Waiter};

/// The queue that leads to another rank.
#[derive(Debug)]
struct Outgoing {
    queue: PacketQueue,
    waiting: WaitingSenders,
    /// Held for a whole message: messages of a rank do not mix. Has the reason
    /// why one was left unfinished: nothing can follow it.
    broken: Mutex<Option<TransportError>>,
}

/// The queue that leads to this rank, and what has arrived through it.
#[derive(Debug)]
struct Incoming {
    consumer: Consumer,
    arrived: Arrived,
}

/// What has arrived.
#[derive(Debug, Default)]
struct Arrived {
    queue: UnexpectedQueue,
    receives: PostedReceives,
    /// A transfer that no one had posted a receive for.
    violation: Option<TransportError>,
}

/// How far a look into the queue came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drained {
    /// Everything that had arrived was taken.
    All,
    /// There may be more.
    Part,
}

/// A rank's part of a world, in its own memory.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) world: World,
    pub(super) rank: Rank,
    backoff: Backoff,
    progress_hook: ProgressHook,
    processes: OnceLock<ProcessWatch>,
    incoming: Mutex<Incoming>,
    /// The senders that wait for this rank.
    waiting: WaitingSenders,
    outgoing: Vec<Outgoing>,
    sends: Mutex<PostedSends>,
    /// How many sends are under way, to know without the lock.
    sends_under_way: AtomicUsize,
    next_posted: AtomicU64,
    pub(super) sent: Sent,
}

/// Locks state that a panic in another thread leaves intact: the rank is lost
/// then, and the world knows.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Engine {
    pub(super) fn new(
        world: World,
        rank: Rank,
        backoff: Backoff,
        progress_hook: ProgressHook,
    ) -> Self {
        let outgoing = (0..world.ranks).map(|to| Outgoing {
            queue: world.queue(Rank(to)),
            waiting: world.waiting_senders(Rank(to)),
            broken: Mutex::default(),
        });
        let incoming = Incoming {
            consumer: Consumer::new(world.queue(rank)),
            arrived: Arrived::default(),
        };
        Engine {
            outgoing: outgoing.collect(),
            incoming: Mutex::new(incoming),
            waiting: world.waiting_senders(rank),
            rank,
            backoff,
            progress_hook,
            processes: OnceLock::new(),
            sends: Mutex::default(),
            sends_under_way: AtomicUsize::new(0),
            next_posted: AtomicU64::new(0),
            sent: Sent::default(),
            world,
        }
    }

    pub(super) fn open(&self, context: ContextId) {
        lock(&self.incoming).arrived.queue.open(context);
    }

    pub(super) fn close(&self, context: ContextId) {
        let mut incoming = lock(&self.incoming);
        incoming.arrived.queue.close(context);
        incoming.arrived.receives.close(context);
        drop(incoming);
        lock(&self.sends).close(context);
    }

    /// Has the processes of the other ranks watched while this one waits.
    pub(super) fn watch(&self, processes: ProcessWatch) {
        // A second watch would see the same.
        let _ = self.processes.set(processes);
    }

    /// What a rank does before it sleeps. Fails if another has been lost.
    pub(super) fn progress(&self) -> Result<()> {
        self.progress_hook.call()?;
        if let Some(processes) = self.processes.get()
            && let Some(rank) = processes.find_ended()
        {
            self.world.leave(rank, Loss::Ended);
        }
        self.world.check()
    }

    /// Waits on the rank's event.
    pub(super) fn wait<T>(&self, ready: impl FnMut() -> Result<Option<T>>) -> Result<T> {
        self.wait_with(self.backoff, ready)
    }

    pub(super) fn wait_with<T>(
        &self,
        backoff: Backoff,
        ready: impl FnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        let progress = || self.progress();
        Waiter::new(&progress)
            .backoff(backoff)
            .wait(self.world.event(self.rank), ready)
    }

    /// Wakes the threads of this rank.
    pub(super) fn wake(&self) {
        self.world.event(self.rank).notify();
    }

    /// Sends a message if its first packet finds space, and no other thread is
    /// sending to that rank.
    pub(super) fn try_send(
        &self,
        to: Rank,
        context: ContextId,
        tag: Tag,
        bytes: &[u8],
    ) -> Result<bool> {
        if to == self.rank {
            self.send_to_self(context, tag, bytes);
            return Ok(true);
        }
        let Ok(mut broken) = self.outgoing[to.index()].broken.try_lock() else {
            return Ok(false);
        };
        self.check_open(to, &broken)?;
        let first = &bytes[..bytes.len().min(PAYLOAD_BYTES)];
        let left = (bytes.len() - first.len()) as u64;
        let header = Header::Message(PacketHeader { context, tag, left });
        if !self.try_push_or_be_woken(to, header, &Payload::Slice(first)) {
            return Ok(false);
        }
        let sent = self.send_rest(to, context, tag, &bytes[first.len()..]);
        *broken = sent.as_ref().err().cloned();
        sent.map(|()| true)
    }

    pub(super) fn send(&self, to: Rank, context: ContextId, tag: Tag, bytes: &[u8]) -> Result<()> {
        if to == self.rank {
            self.send_to_self(context, tag, bytes);
            return Ok(());
        }
        let mut broken = lock(&self.outgoing[to.index()].broken);
        self.check_open(to, &broken)?;
        let sent = match bytes {
            [] => self.send_packet(to, context, tag, 0, &[]),
            _ => self.send_rest(to, context, tag, bytes),
        };
        *broken = sent.as_ref().err().cloned();
        sent
    }

    fn send_to_self(&self, context: ContextId, tag: Tag, bytes: &[u8]) {
        let header = PacketHeader {
            context,
            tag,
            left: 0,
        };
        let bytes = Cow::Borrowed(bytes);
        lock(&self.incoming)
            .arrived
            .queue
            .push(self.rank, header, bytes);
        self.wake();
    }

    /// Fails if messages to a rank can no longer be sent.
    fn check_open(&self, to: Rank, broken: &Option<TransportError>) -> Result<()> {
        let error = broken.clone().or_else(|| self.world.absence(to));
        error.map_or(Ok(()), Err)
    }

    /// Sends the last bytes of a message.
    fn send_rest(&self, to: Rank, context: ContextId, tag: Tag, bytes: &[u8]) -> Result<()> {
        let mut left = bytes.len();
        for packet in bytes.chunks(PAYLOAD_BYTES) {
            left -= packet.len();
            self.send_packet(to, context, tag, left as u64, packet)?;
        }
        Ok(())
    }

    /// Sends a packet, and waits for space if there is none.
    fn send_packet(
        &self,
        to: Rank,
        context: ContextId,
        tag: Tag,
        left: u64,
        packet: &[u8],
    ) -> Result<()> {
        let header = Header::Message(PacketHeader { context, tag, left });
        let payload = Payload::Slice(packet);
        if self.try_push(to, header, &payload) {
            return Ok(());
        }
        self.wait(|| {
            if self.try_push_or_be_woken(to, header, &payload) {
                return Ok(Some(()));
            }
            self.poll();
            match self.world.absence(to) {
                Some(lost) => Err(lost),
                None => Ok(None),
            }
        })
    }

    fn try_push(&self, to: Rank, header: Header, payload: &Payload<'_>) -> bool {
        let queue = &self.outgoing[to.index()].queue;
        let is_pushed = queue.try_push(self.rank, header, payload);
        if is_pushed {
            self.world.event(to).notify();
        }
        is_pushed
    }

    /// The same. If there is no space, this rank is woken when there is.
    fn try_push_or_be_woken(&self, to: Rank, header: Header, payload: &Payload<'_>) -> bool {
        if self.try_push(to, header, payload) {
            return true;
        }
        self.outgoing[to.index()].waiting.add(self.rank);
        self.try_push(to, header, payload)
    }

    pub(super) fn receive(&self, context: ContextId, from: Rank, tag: Tag) -> Result<Vec<u8>> {
        self.wait(|| self.try_receive(context, from, tag))
    }

    /// The next message of a rank if it is there; an error if it cannot come.
    pub(super) fn try_receive(
        &self,
        context: ContextId,
        from: Rank,
        tag: Tag,
    ) -> Result<Option<Vec<u8>>> {
        // Asked first: what a rank sent before it left is in the queue by the
        // time its absence is seen.
        let absence = self.world.absence(from).filter(|_| from != self.rank);
        self.push_sends();
        self.take(absence, |queue| queue.take(context, from, tag))
    }

    /// The next message of any rank with a tag.
    pub(super) fn try_receive_any(
        &self,
        context: ContextId,
        tag: Tag,
    ) -> Result<Option<(Rank, Vec<u8>)>> {
        let loss = self.world.check().err();
        self.push_sends();
        self.take(loss, |queue| queue.take_any(context, tag))
    }

    /// Takes a message if it has arrived. Fails with `lost` if it has not, and
    /// nothing more will come.
    fn take<T>(
        &self,
        lost: Option<TransportError>,
        take: impl Fn(&mut UnexpectedQueue) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let mut incoming = lock(&self.incoming);
        let found = take(&mut incoming.arrived.queue)?;
        if found.is_some() {
            return Ok(found);
        }
        let drained = self.poll_queue(&mut incoming);
        match (take(&mut incoming.arrived.queue)?, lost) {
            (None, Some(lost)) if drained == Drained::All => Err(lost),
            (found, _) => Ok(found),
        }
    }

    /// Posts a receive.
    pub(super) fn post_receive(&self, key: Key, data: Data) -> Posted {
        let posted = Posted(2 * self.next_posted.fetch_add(1, Ordering::Relaxed));
        lock(&self.incoming)
            .arrived
            .receives
            .post(posted, key, data);
        posted
    }

    /// Posts a send, and sends as much as there is space for; only a note if the
    /// bytes are in place.
    pub(super) fn post_send(&self, key: Key, data: Data, is_in_place: bool) -> Posted {
        let posted = Posted(2 * self.next_posted.fetch_add(1, Ordering::Relaxed) + 1);
        {
            let mut sends = lock(&self.sends);
            sends.post(posted, key, data, is_in_place);
            self.sends_under_way.store(sends.len(), Ordering::Release);
        }
        self.push_sends();
        posted
    }

    /// Whether a transfer is complete; if so it is forgotten.
    pub(super) fn is_complete(&self, posted: Posted) -> Result<bool> {
        let ask = || match posted.0 % 2 {
            0 => lock(&self.incoming).arrived.receives.ask(posted),
            _ => lock(&self.sends).ask(posted),
        };
        let Status::UnderWay(peer) = ask() else {
            return Ok(true);
        };
        let absence = self.world.absence(peer).filter(|_| peer != self.rank);
        let lost = absence.or_else(|| self.world.check().err());
        let drained = self.poll();
        if ask() == Status::Complete {
            return Ok(true);
        }
        if let Some(violation) = &lock(&self.incoming).arrived.violation {
            return Err(violation.clone());
        }
        match lost {
            Some(lost) if drained == Drained::All => Err(lost),
            _ => Ok(false),
        }
    }

    /// Makes progress: sends what was posted, and takes what has arrived.
    pub(super) fn poll(&self) -> Drained {
        self.push_sends();
        // Not a mere attempt: the thread that has the lock may have looked
        // before the last packet came, and no one would look again.
        self.poll_queue(&mut lock(&self.incoming))
    }

    fn poll_queue(&self, incoming: &mut Incoming) -> Drained {
        let Incoming { consumer, arrived } = incoming;
        let mut taken = 0;
        // Packets that come while these are taken are left for the next time: a
        // busy sender must not keep the caller here.
        let drained = loop {
            if taken == consumer.capacity() {
                break Drained::Part;
            }
            match consumer.take(|from, header, payload| arrived.accept(from, header, payload)) {
                Next::Taken => {}
                Next::Unfinished(from) if self.world.is_ended(from) => {
                    consumer.skip_unfinished(from);
                }
                Next::Unfinished(_) => break Drained::Part,
                Next::Nothing => break Drained::All,
            }
            taken += 1;
        };
        if taken > 0 {
            self.announce_space();
        }
        drained
    }

    /// Wakes senders that wait for space. (Threads of this rank that
    /// wait for the messages need no wake-up here: the senders have notified the
    /// event on which all of them sleep.)
    fn announce_space(&self) {
        for sender in self.waiting.take() {
            self.world.event(sender).notify();
        }
    }

    /// Sends what was posted as far as there is space. If there is not enough,
    /// this rank is woken when there is more.
    fn push_sends(&self) {
        if self.sends_under_way.load(Ordering::Acquire) == 0 {
            return;
        }
        // Whoever has the lock pushes all of them, or knows to be woken.
        let mut sends = lock(&self.sends);
        sends.advance(|send| self.push_send(send));
        self.sends_under_way.store(sends.len(), Ordering::Release);
    }

    /// Moves a send on; whether it can be forgotten.
    fn push_send(&self, send: &mut PostedSend) -> bool {
        let to = send.to();
        if to == self.rank {
            self.deliver_to_self(send);
            return true;
        }
        while !send.is_over() {
            let slice = send.slice(PAYLOAD_BYTES);
            let header = Header::Data {
                context: slice.context,
                tag: slice.tag,
                left: slice.left,
            };
            let bytes = slice.range.len();
            let payload = Payload::Memory(slice.memory, slice.range);
            if !self.try_push_or_be_woken(to, header, &payload) {
                // A send to a rank that has left is never complete.
                return self.world.absence(to).is_some();
            }
            send.advance(bytes);
        }
        true
    }

    fn deliver_to_self(&self, send: &mut PostedSend) {
        let slice = send.slice(usize::MAX);
        let mut bytes = vec![0; slice.range.len()];
        slice.copy_to(&mut bytes);
        let header = Header::Data {
            context: slice.context,
            tag: slice.tag,
            left: slice.left,
        };
        send.advance(bytes.len());
        lock(&self.incoming)
            .arrived
            .accept(self.rank, header, &bytes);
        self.wake();
    }
}

impl Arrived {
    /// Puts a packet where it belongs.
    fn accept(&mut self, from: Rank, header: Header, payload: &[u8]) {
        match header {
            Header::Message(header) => {
                self.queue.push(from, header, Cow::Borrowed(payload));
            }
            Header::Data { context, tag, left } => {
                let peer = from;
                let key = Key { context, peer, tag };
                let is_accepted = self.receives.accept(key, left, payload);
                if !is_accepted && !self.queue.is_closed(context) {
                    self.violation.get_or_insert(TransportError::Malformed {
                        rank: from,
                        operation: "a posted transfer",
                    });
                }
            }
        }
    }
}
