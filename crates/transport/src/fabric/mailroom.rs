//! The ends of a rank's rings, shared by all its threads and duplicates.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::flags::Flags;
use super::inbox::{Arrival, ContextId, Envelope, Inbox};
use super::process_watch::ProcessWatch;
use super::progress_hook::ProgressHook;
use super::ring::{Consumer, Producer};
use super::world::World;
use crate::posted::Sent;
use crate::{Backoff, Loss, Rank, Result, Tag, TransportError, Waiter};

/// How much of a long message is written before the receiver sees it: small
/// enough that both copy at the same time.
const BURST_BYTES: usize = 64 << 10;

/// The room that is worth going on for with a long message; less than the
/// smallest ring.
const ROOM_BYTES: usize = 8 << 10;

/// The outgoing end of a ring.
#[derive(Debug)]
struct Outgoing {
    to: Rank,
    producer: Producer,
    /// The receiver's.
    flags: Flags,
    /// Why a message was left unfinished: nothing can follow it.
    broken: Option<TransportError>,
}

/// What a rank keeps in its own memory.
#[derive(Debug)]
pub(super) struct Mailroom {
    pub(super) world: World,
    pub(super) rank: Rank,
    backoff: Backoff,
    progress_hook: ProgressHook,
    processes: OnceLock<ProcessWatch>,
    inbox: Mutex<Inbox>,
    outgoing: Vec<Mutex<Outgoing>>,
    pub(super) sent: Sent,
}

/// Locks what stays in good order when a thread panics while it holds the lock:
/// the rank is lost then, and the world says so.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Mailroom {
    pub(super) fn new(
        world: World,
        rank: Rank,
        backoff: Backoff,
        progress_hook: ProgressHook,
    ) -> Self {
        let geometry = world.geometry;
        let capacity = geometry.ring_bytes;
        let ranks = world.ranks as usize;
        let memory = &world.memory;
        let consumers = (0..ranks).map(|from| {
            let base = geometry.ring(from, rank.index());
            Consumer::new(memory.clone(), base, capacity)
        });
        let flags = |of| Flags::new(memory.clone(), geometry.flags(of), world.ranks);
        let producers = (0..ranks).map(|to| {
            let base = geometry.ring(rank.index(), to);
            Mutex::new(Outgoing {
                to: Rank(to as u32),
                producer: Producer::new(memory.clone(), base, capacity),
                flags: flags(to),
                broken: None,
            })
        });
        Mailroom {
            inbox: Mutex::new(Inbox::new(flags(rank.index()), consumers)),
            outgoing: producers.collect(),
            rank,
            backoff,
            progress_hook,
            processes: OnceLock::new(),
            world,
            sent: Sent::default(),
        }
    }

    pub(super) fn open(&self, context: ContextId) {
        lock(&self.inbox).open(context);
    }

    pub(super) fn close(&self, context: ContextId) {
        lock(&self.inbox).close(context);
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

    /// Waits on the rank's bell.
    pub(super) fn wait<T>(&self, ready: impl FnMut() -> Result<Option<T>>) -> Result<T> {
        let progress = || self.progress();
        Waiter::new(&progress)
            .backoff(self.backoff)
            .wait(self.world.bell(self.rank), ready)
    }

    /// Sends if there is space for the whole message and no one else is sending
    /// to that rank.
    pub(super) fn try_send(&self, to: Rank, envelope: Envelope, bytes: &[u8]) -> Result<bool> {
        if to != self.rank {
            let Ok(outgoing) = self.outgoing[to.index()].try_lock() else {
                return Ok(false);
            };
            let bytes = Envelope::BYTES + bytes.len();
            if outgoing.producer.room() < bytes {
                outgoing.producer.ask_for_room();
                if outgoing.producer.room() < bytes {
                    return match self.world.absence(to) {
                        Some(lost) => Err(lost),
                        None => Ok(false),
                    };
                }
            }
        }
        self.send(to, envelope, bytes).map(|()| true)
    }

    /// The next message of any rank with a tag.
    pub(super) fn try_receive_any(
        &self,
        context: ContextId,
        tag: Tag,
    ) -> Result<Option<(Rank, Vec<u8>)>> {
        let loss = self.world.check();
        let mut inbox = lock(&self.inbox);
        let mut arrival = inbox.take_any(context, tag);
        if arrival.is_none() {
            let starved = inbox.harvest();
            self.announce_room(&starved);
            arrival = inbox.take_any(context, tag);
        }
        match arrival {
            Some((from, Arrival::Message(bytes))) => Ok(Some((from, bytes))),
            Some((_, Arrival::Dropped(bytes))) => Err(TransportError::TooLarge { bytes }),
            None => loss.map(|()| None),
        }
    }

    /// Wakes the threads of this rank.
    pub(super) fn wake(&self) {
        self.world.bell(self.rank).notify();
    }

    pub(super) fn send(&self, to: Rank, envelope: Envelope, bytes: &[u8]) -> Result<()> {
        if to == self.rank {
            let arrival = Arrival::Message(bytes.to_vec());
            lock(&self.inbox).deposit(envelope.context, to, envelope.tag, arrival);
            self.world.bell(to).notify();
            return Ok(());
        }
        let mut outgoing = lock(&self.outgoing[to.index()]);
        if let Some(error) = &outgoing.broken {
            return Err(error.clone());
        }
        if let Some(lost) = self.world.absence(to) {
            return Err(lost);
        }
        let sent = self.stream(&mut outgoing, &envelope.encode(), bytes);
        outgoing.broken = sent.as_ref().err().cloned();
        sent
    }

    fn stream(&self, outgoing: &mut Outgoing, envelope: &[u8], mut bytes: &[u8]) -> Result<()> {
        self.wait_for_room(outgoing, envelope.len())?;
        outgoing.producer.write(envelope);
        loop {
            let burst = &bytes[..bytes.len().min(BURST_BYTES)];
            let written = outgoing.producer.write(burst);
            bytes = &bytes[written..];
            outgoing.producer.publish();
            outgoing.flags.raise(self.rank);
            self.world.bell(outgoing.to).notify();
            if bytes.is_empty() {
                return Ok(());
            }
            // Not for each byte that gets free.
            self.wait_for_room(outgoing, bytes.len().min(ROOM_BYTES))?;
        }
    }

    fn wait_for_room(&self, outgoing: &Outgoing, bytes: usize) -> Result<()> {
        let producer = &outgoing.producer;
        if producer.room() >= bytes {
            return Ok(());
        }
        self.wait(|| {
            producer.ask_for_room();
            if producer.room() >= bytes {
                return Ok(Some(()));
            }
            self.harvest();
            match self.world.absence(outgoing.to) {
                Some(lost) => Err(lost),
                None => Ok(None),
            }
        })
    }

    pub(super) fn receive(&self, context: ContextId, from: Rank, tag: Tag) -> Result<Vec<u8>> {
        self.wait(|| self.try_receive(context, from, tag))
    }

    /// The next message if it is there; an error if it cannot come any more.
    pub(super) fn try_receive(
        &self,
        context: ContextId,
        from: Rank,
        tag: Tag,
    ) -> Result<Option<Vec<u8>>> {
        // Asked first: what a rank has sent before it left is in the ring by
        // the time its absence is seen.
        let absence = self.world.absence(from).filter(|_| from != self.rank);
        let mut inbox = lock(&self.inbox);
        let mut arrival = inbox.take(context, from, tag);
        if arrival.is_none() {
            let mut starved = inbox.harvest();
            if absence.is_some() {
                starved.extend(inbox.harvest_from(from));
            }
            self.announce_room(&starved);
            arrival = inbox.take(context, from, tag);
        }
        match (arrival, absence) {
            (Some(Arrival::Message(bytes)), _) => Ok(Some(bytes)),
            (Some(Arrival::Dropped(bytes)), _) => Err(TransportError::TooLarge { bytes }),
            (None, Some(lost)) => Err(lost),
            (None, None) => Ok(None),
        }
    }

    /// Takes in what has arrived.
    pub(super) fn harvest(&self) {
        // Not a mere attempt: the thread that has the lock may have looked
        // before the last flag went up, and no one would look again.
        let starved = lock(&self.inbox).harvest();
        self.announce_room(&starved);
    }

    /// Wakes senders who wait for room. (No one need be told of the messages
    /// that were taken in: their senders ring this rank's bell for all of its
    /// threads, after the message is in the ring.)
    fn announce_room(&self, starved: &[Rank]) {
        for sender in starved {
            self.world.bell(*sender).notify();
        }
    }
}
