//! Messages over the MPI, for all contexts of a transport and all threads.
//!
//! Senders leave messages in the outbox, receivers look into the inbox. Whoever
//! may call the MPI and has time carries messages between them and the wire: a
//! rank that waits, a progress thread, a hook of the MPI. So threads that may
//! not call the MPI communicate too, as long as someone who may comes by.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pario_transport::{Backoff, Loss, Process, Rank, Result, SEND_HEADROOM, Tag, TransportError};

use super::permission::Callers;
use super::point_to_point::{MESSAGE_BYTES_MAX, PendingSend, PointToPoint};
use super::progress;
use crate::Host;

/// After each piece of a message: its context and tag, and how many bytes of
/// the message are still to come. At the end, so that what arrives need not be
/// moved to become the message.
const TRAILER_BYTES: usize = 8 + 4 + 8;
const PIECE_BYTES_MAX: usize = MESSAGE_BYTES_MAX - TRAILER_BYTES;
const _: () = assert!(TRAILER_BYTES <= SEND_HEADROOM);

/// The context of what concerns every context.
const CONTROL: u64 = u64::MAX;
/// In that context: a rank is lost, and how.
const LOSS: Tag = Tag(0);

/// How many messages to take in before looking at what they bring.
const ARRIVALS_AT_ONCE: usize = 64;

/// How many times to look for messages when nothing comes: long messages of
/// the program itself move on by one piece a look in some MPIs.
const IDLE_POLLS: usize = 8;

/// Looking into an MPI takes as long as so many looks into shared memory.
const LOOKS_PER_POLL: u32 = 4;

/// How ranks wait while an MPI needs their attention: never asleep for long.
pub(super) const BACKOFF: Backoff = Backoff {
    looks: Backoff::DEFAULT.looks,
    yield_for: Duration::from_micros(50),
    first_sleep: Duration::from_micros(200),
    longest_sleep: Duration::from_millis(1),
    give_up_after: None,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Address {
    context: u64,
    from: Rank,
    tag: Tag,
}

impl Address {
    /// Ends a piece of a message by what it is about and how much is to follow.
    fn append_trailer(self, piece: &mut Vec<u8>, left: u64) {
        piece.extend(self.context.to_le_bytes());
        piece.extend(self.tag.0.to_le_bytes());
        piece.extend(left.to_le_bytes());
    }
}

#[derive(Debug, Default)]
struct Inbox {
    messages: HashMap<Address, VecDeque<Vec<u8>>>,
    /// Long messages of which more is to come, by sender.
    partial: HashMap<Rank, Vec<u8>>,
    /// Why no more messages will come.
    broken: Option<TransportError>,
    /// Threads that sleep until something comes.
    sleepers: usize,
    /// How often there was a reason to look again.
    events: u64,
}

/// Whether messages were taken from or to the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// At least one.
    Something,
    /// None.
    Nothing,
}

impl Moved {
    /// Something if either is.
    #[must_use]
    pub fn or(self, other: Moved) -> Moved {
        match self {
            Moved::Something => self,
            Moved::Nothing => other,
        }
    }
}

/// What only the thread that carries messages touches.
#[derive(Debug, Default)]
struct ProgressState {
    pending_sends: Vec<Box<dyn PendingSend>>,
}

/// The messages of one private communicator.
#[derive(Debug)]
pub(super) struct MpiEndpoint {
    point_to_point: Box<dyn PointToPoint>,
    callers: Callers,
    /// The process whose MPI it is: a child that it forks has none.
    process: Process,
    outbox: Mutex<VecDeque<(Rank, Vec<u8>)>>,
    inbox: Mutex<Inbox>,
    arrival: Condvar,
    progress_state: Mutex<ProgressState>,
    /// Messages and bytes sent.
    sent: [AtomicU64; 2],
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MpiEndpoint {
    pub(super) fn new(point_to_point: Box<dyn PointToPoint>, callers: Callers) -> Self {
        MpiEndpoint {
            point_to_point,
            callers,
            process: Process::this(),
            outbox: Mutex::default(),
            inbox: Mutex::default(),
            arrival: Condvar::new(),
            progress_state: Mutex::default(),
            sent: Default::default(),
        }
    }

    /// The messages and the bytes that this rank has sent.
    pub(super) fn sent(&self) -> [u64; 2] {
        self.sent.each_ref().map(|it| it.load(Ordering::Relaxed))
    }

    fn count_sent(&self, bytes: usize) {
        self.sent[0].fetch_add(1, Ordering::Relaxed);
        self.sent[1].fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Wakes the threads in [`wait_until`](Self::wait_until).
    pub(super) fn wake(&self) {
        lock(&self.inbox).events += 1;
        self.arrival.notify_all();
    }

    /// Returns when `ready` does, or fails with the wire.
    pub(super) fn wait_until(
        &self,
        backoff: Backoff,
        ready: &mut dyn FnMut() -> bool,
    ) -> Result<()> {
        for _ in 0..backoff.looks / LOOKS_PER_POLL {
            if ready() {
                return Ok(());
            }
        }
        let start = Instant::now();
        let mut sleep = backoff.first_sleep;
        loop {
            let seen = lock(&self.inbox).events;
            self.progress();
            if ready() {
                return Ok(());
            }
            if start.elapsed() < backoff.yield_for {
                thread::yield_now();
                continue;
            }
            self.check()?;
            progress::progress_registered();
            let is_idle = |inbox: &mut Inbox| inbox.broken.is_none() && inbox.events == seen;
            let mut inbox = lock(&self.inbox);
            inbox.sleepers += 1;
            let waited = self.arrival.wait_timeout_while(inbox, sleep, is_idle);
            let (mut inbox, _) = waited.unwrap_or_else(PoisonError::into_inner);
            inbox.sleepers -= 1;
            drop(inbox);
            sleep = (sleep * 2).min(backoff.longest_sleep);
        }
    }

    /// The next message of any rank, if it has arrived.
    pub(super) fn try_receive_any(
        &self,
        context: u64,
        tag: Tag,
    ) -> Result<Option<(Rank, Vec<u8>)>> {
        let find = || {
            let inbox = lock(&self.inbox);
            let mut addresses = inbox.messages.keys();
            addresses
                .find(|address| address.context == context && address.tag == tag)
                .copied()
        };
        let found = find().or_else(|| {
            self.progress_once();
            find()
        });
        let Some(address) = found else {
            return self.check().map(|()| None);
        };
        let message = self.take(address)?;
        Ok(message.map(|message| (address.from, message)))
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

    /// The MPI, unless the wire is of another kind.
    pub(super) fn host(&self) -> Option<&'static Host> {
        self.point_to_point.host()
    }

    /// The address of what this rank sends.
    fn address(&self, context: u64, tag: Tag) -> Address {
        let from = self.rank();
        Address { context, from, tag }
    }

    /// Sends a message; its bytes are copied.
    pub(super) fn send(&self, context: u64, to: Rank, tag: Tag, bytes: &[u8]) -> Result<()> {
        let address = self.address(context, tag);
        if to == self.rank() {
            self.deliver(address, bytes.to_vec());
            return Ok(());
        }
        self.count_sent(bytes.len());
        let mut left = bytes.len();
        let mut pieces = bytes.chunks(PIECE_BYTES_MAX);
        let mut outbox = lock(&self.outbox);
        loop {
            let piece = pieces.next().unwrap_or(&[]);
            left -= piece.len();
            let mut message = Vec::new();
            let bytes = piece.len() + TRAILER_BYTES;
            let too_large = |_| TransportError::TooLarge {
                bytes: bytes as u64,
            };
            message.try_reserve_exact(bytes).map_err(too_large)?;
            message.extend(piece);
            address.append_trailer(&mut message, left as u64);
            outbox.push_back((to, message));
            if left == 0 {
                break;
            }
        }
        drop(outbox);
        self.progress_once();
        self.check()
    }

    /// Sends a message whose bytes stay where they are, if they fit one piece.
    pub(super) fn send_owned(
        &self,
        context: u64,
        to: Rank,
        tag: Tag,
        mut message: Vec<u8>,
    ) -> Result<()> {
        if message.len() > PIECE_BYTES_MAX {
            return self.send(context, to, tag, &message);
        }
        let address = self.address(context, tag);
        if to == self.rank() {
            self.deliver(address, message);
            return Ok(());
        }
        self.count_sent(message.len());
        let bytes = (message.len() + TRAILER_BYTES) as u64;
        let too_large = |_| TransportError::TooLarge { bytes };
        message
            .try_reserve_exact(TRAILER_BYTES)
            .map_err(too_large)?;
        address.append_trailer(&mut message, 0);
        lock(&self.outbox).push_back((to, message));
        self.progress_once();
        self.check()
    }

    /// The next message if it has arrived.
    pub(super) fn try_receive(
        &self,
        context: u64,
        from: Rank,
        tag: Tag,
    ) -> Result<Option<Vec<u8>>> {
        let address = Address { context, from, tag };
        if let Some(message) = self.take(address)? {
            return Ok(Some(message));
        }
        self.progress();
        self.take(address)
    }

    /// The next message. `progress` is called now and then.
    pub(super) fn receive(
        &self,
        context: u64,
        from: Rank,
        tag: Tag,
        backoff: Backoff,
        progress: impl Fn() -> Result<()>,
    ) -> Result<Vec<u8>> {
        let address = Address { context, from, tag };
        for _ in 0..backoff.looks / LOOKS_PER_POLL {
            self.progress_once();
            if let Some(message) = self.take(address)? {
                return Ok(message);
            }
        }
        let start = Instant::now();
        let mut sleep = backoff.first_sleep;
        loop {
            self.progress();
            if let Some(message) = self.take(address)? {
                return Ok(message);
            }
            if start.elapsed() < backoff.yield_for {
                thread::yield_now();
                continue;
            }
            progress()?;
            progress::progress_registered();
            let missing = |inbox: &mut Inbox| {
                inbox.broken.is_none() && !inbox.messages.contains_key(&address)
            };
            let mut inbox = lock(&self.inbox);
            inbox.sleepers += 1;
            let waited = self.arrival.wait_timeout_while(inbox, sleep, missing);
            let (mut inbox, _) = waited.unwrap_or_else(PoisonError::into_inner);
            inbox.sleepers -= 1;
            drop(inbox);
            sleep = (sleep * 2).min(backoff.longest_sleep);
        }
    }

    /// Returns when everything that was sent has left, which it does: the
    /// receivers wait for it.
    pub(super) fn finish_sending(&self) -> Result<()> {
        loop {
            self.progress_once();
            self.check()?;
            if lock(&self.outbox).is_empty() && lock(&self.progress_state).pending_sends.is_empty()
            {
                return Ok(());
            }
            thread::yield_now();
        }
    }

    /// Ends all waits, here and on other nodes, because a rank has been lost
    /// that they would not notice. Only the first loss is told.
    pub(super) fn announce_loss(&self, rank: Rank, reason: Loss) {
        {
            let mut inbox = lock(&self.inbox);
            if inbox.broken.is_some() {
                return;
            }
            inbox.broken = Some(TransportError::PeerLost { rank, reason });
        }
        self.arrival.notify_all();
        let about = self.address(CONTROL, LOSS);
        let others = (0..self.size()).map(Rank);
        for to in others.filter(|to| *to != rank && *to != self.rank()) {
            let mut message = rank.0.to_le_bytes().to_vec();
            message.extend(reason.code().to_le_bytes());
            about.append_trailer(&mut message, 0);
            lock(&self.outbox).push_back((to, message));
        }
        self.progress_once();
    }

    /// Another rank has told of a loss.
    fn learn_of_loss(&self, message: &[u8]) -> Option<()> {
        let (rank, reason) = message.split_first_chunk()?;
        let reason = u32::from_le_bytes(reason.try_into().ok()?);
        let lost = TransportError::PeerLost {
            rank: Rank(u32::from_le_bytes(*rank)),
            reason: Loss::from_code(reason)?,
        };
        lock(&self.inbox).broken.get_or_insert(lost);
        self.arrival.notify_all();
        Some(())
    }

    /// Forgets the messages of a context that no one uses any more.
    pub(super) fn close(&self, context: u64) {
        let keep = |address: &Address| address.context != context;
        lock(&self.inbox)
            .messages
            .retain(|address, _| keep(address));
    }

    /// Fails if the wire has.
    pub(super) fn check(&self) -> Result<()> {
        match &lock(&self.inbox).broken {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    fn take(&self, address: Address) -> Result<Option<Vec<u8>>> {
        let mut inbox = lock(&self.inbox);
        let Some(queue) = inbox.messages.get_mut(&address) else {
            return match &inbox.broken {
                Some(error) => Err(error.clone()),
                None => Ok(None),
            };
        };
        let message = queue.pop_front();
        if queue.is_empty() {
            inbox.messages.remove(&address);
        }
        Ok(message)
    }

    fn deliver(&self, address: Address, message: Vec<u8>) {
        let mut inbox = lock(&self.inbox);
        inbox.events += 1;
        let queue = inbox.messages.entry(address).or_default();
        queue.push_back(message);
        // Waking costs a system call, even of nobody.
        if inbox.sleepers > 0 {
            self.arrival.notify_all();
        }
    }

    /// Carries messages between boxes and wire, if this thread may call the
    /// MPI and no other is at it.
    pub(super) fn progress(&self) -> Moved {
        self.progress_polling(IDLE_POLLS)
    }

    /// As [`progress`](Self::progress) for those who come by often.
    pub(super) fn progress_once(&self) -> Moved {
        self.progress_polling(1)
    }

    fn progress_polling(&self, idle_polls: usize) -> Moved {
        if !self.callers.include_me() || !self.process.is_this() {
            return Moved::Nothing;
        }
        let mut moved = Moved::Nothing;
        loop {
            // Whoever has the lock does the work; a hook of the MPI may bring
            // the same thread here again.
            let Ok(mut progress_state) = self.progress_state.try_lock() else {
                return moved;
            };
            let carried = self.progress_with(&mut progress_state, idle_polls);
            drop(progress_state);
            moved = moved.or(carried.unwrap_or_else(|error| {
                lock(&self.inbox).broken.get_or_insert(error);
                self.arrival.notify_all();
                Moved::Something
            }));
            // Whoever found the lock taken has left its message to us.
            if lock(&self.outbox).is_empty() {
                return moved;
            }
        }
    }

    fn progress_with(
        &self,
        progress_state: &mut ProgressState,
        idle_polls: usize,
    ) -> Result<Moved> {
        let mut moved = Moved::Nothing;
        loop {
            // Not while the MPI is called: a hook may want to send.
            let Some((to, bytes)) = lock(&self.outbox).pop_front() else {
                break;
            };
            progress_state
                .pending_sends
                .push(self.point_to_point.isend(to, bytes)?);
            moved = Moved::Something;
        }
        let mut looks = 0;
        let mut arrivals = 0;
        while looks < idle_polls && arrivals < ARRIVALS_AT_ONCE {
            match self.point_to_point.poll_receive()? {
                Some((from, message)) => {
                    arrivals += 1;
                    moved = Moved::Something;
                    self.sort(from, message)?;
                }
                None if arrivals > 0 => break,
                None => looks += 1,
            }
        }
        let mut failed = Ok(());
        progress_state.pending_sends.retain_mut(|pending_send| {
            let over = pending_send.is_over();
            !over.unwrap_or_else(|error| {
                failed = Err(error);
                true
            })
        });
        failed.map(|()| moved)
    }

    /// Puts a piece where it belongs.
    fn sort(&self, from: Rank, mut piece: Vec<u8>) -> Result<()> {
        let malformed = TransportError::Malformed {
            rank: from,
            operation: "a message of pario",
        };
        let trailer = piece.split_last_chunk::<TRAILER_BYTES>();
        let (_, trailer) = trailer.ok_or_else(|| malformed.clone())?;
        let [c0, c1, c2, c3, c4, c5, c6, c7, t0, t1, t2, t3, left @ ..] = *trailer;
        let context = u64::from_le_bytes([c0, c1, c2, c3, c4, c5, c6, c7]);
        let tag = Tag(u32::from_le_bytes([t0, t1, t2, t3]));
        let left = u64::from_le_bytes(left);
        piece.truncate(piece.len() - TRAILER_BYTES);
        let begun = lock(&self.inbox).partial.remove(&from);
        let message = match begun {
            None => piece,
            Some(mut message) => {
                message.extend_from_slice(&piece);
                message
            }
        };
        if context == CONTROL {
            return self.learn_of_loss(&message).ok_or(malformed);
        }
        if left == 0 {
            self.deliver(Address { context, from, tag }, message);
            return Ok(());
        }
        let mut message = message;
        let bytes = message.len() as u64 + left;
        let too_large = |_| TransportError::TooLarge { bytes };
        let room = usize::try_from(left).unwrap_or(usize::MAX);
        message.try_reserve_exact(room).map_err(too_large)?;
        lock(&self.inbox).partial.insert(from, message);
        Ok(())
    }
}

impl Drop for MpiEndpoint {
    fn drop(&mut self) {
        let may_call = self.callers.include_me() && self.process.is_this();
        let progress_state = self.progress_state.get_mut();
        let progress_state = progress_state.unwrap_or_else(PoisonError::into_inner);
        for mut pending_send in progress_state.pending_sends.drain(..) {
            // What is still on its way must not lose its memory under the MPI.
            if !(may_call && pending_send.is_over().unwrap_or(false)) {
                std::mem::forget(pending_send);
            }
        }
    }
}
