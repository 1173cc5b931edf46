//! The progress engine: moves messages and data between an endpoint and its
//! MPI. One thread at a time runs it.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ffi::c_int;

use pario_transport::{Rank, Result, TransportError};

use super::mpi_endpoint::Incoming;
use super::packets;
use super::point_to_point::{Arriving, Data, MESSAGE_BYTES_MAX, Pending, PointToPoint};

/// How many messages to take before looking at what they bring.
const ARRIVALS_AT_ONCE: usize = 64;

/// What an endpoint wants to be started, in this order: a receive of data has
/// been posted when a message that was sent after it leaves.
#[derive(Debug)]
pub(super) enum Command {
    /// Send a packet.
    Send(Rank, Vec<u8>),
    /// Start a posted transfer.
    Transfer(Transfer),
}

/// A posted transfer.
#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) id: u64,
    pub(super) direction: Direction,
    pub(super) peer: Rank,
    pub(super) tag: c_int,
    pub(super) data: Data,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Send,
    Receive,
}

/// Whether messages or data moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// Something has.
    Something,
    /// Nothing has.
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

/// The requests under way.
#[derive(Debug, Default)]
pub(super) struct Engine {
    sends: Vec<Box<dyn Pending>>,
    /// In the order in which they were matched.
    receives: VecDeque<Arriving>,
    /// By the number of the transfer; long ones have several requests.
    transfers: Vec<(u64, Vec<Box<dyn Pending>>)>,
}

impl Engine {
    /// Whether everything that was started has left.
    pub(super) fn has_sent_all(&self) -> bool {
        self.sends.is_empty()
    }

    pub(super) fn start(&mut self, mpi: &dyn PointToPoint, command: Command) -> Result<()> {
        match command {
            Command::Send(to, packet) => self.sends.push(mpi.isend(to, packet)?),
            Command::Transfer(transfer) => {
                let id = transfer.id;
                // What has been started is kept, even if the rest fails.
                self.transfers.push((id, Vec::new()));
                let (_, requests) = self.transfers.last_mut().expect("just added");
                transfer.start(mpi, requests)?;
            }
        }
        Ok(())
    }

    /// Completes what can be completed. Looks for messages so many times if
    /// there is none.
    pub(super) fn poll(
        &mut self,
        mpi: &dyn PointToPoint,
        idle_polls: usize,
        incoming: &mut dyn FnMut(Event) -> Result<()>,
    ) -> Result<Moved> {
        let mut moved = Moved::Nothing;
        let (mut looks, mut arrivals) = (0, 0);
        while looks < idle_polls && arrivals < ARRIVALS_AT_ONCE {
            match mpi.poll_receive()? {
                Some(arriving) => {
                    arrivals += 1;
                    self.receives.push_back(arriving);
                }
                None if arrivals > 0 => break,
                None => looks += 1,
            }
        }
        moved = moved.or(self.finish_receives(incoming)?);
        retain_pending(&mut self.sends)?;
        moved = moved.or(self.finish_transfers(incoming)?);
        Ok(moved)
    }

    /// Hands complete messages over, those of each sender in order.
    fn finish_receives(&mut self, incoming: &mut dyn FnMut(Event) -> Result<()>) -> Result<Moved> {
        let mut moved = Moved::Nothing;
        let mut incomplete: VecDeque<Arriving> = VecDeque::new();
        while let Some(mut arriving) = self.receives.pop_front() {
            let from = arriving.from;
            let is_next = incomplete.iter().all(|earlier| earlier.from != from);
            let packet = match is_next {
                true => arriving.message.try_finish()?,
                false => None,
            };
            match packet {
                Some(packet) => {
                    moved = Moved::Something;
                    incoming(Event::Packet(from, packet))?;
                }
                None => incomplete.push_back(arriving),
            }
        }
        self.receives = incomplete;
        Ok(moved)
    }

    fn finish_transfers(&mut self, incoming: &mut dyn FnMut(Event) -> Result<()>) -> Result<Moved> {
        let mut moved = Moved::Nothing;
        let mut place = 0;
        while place < self.transfers.len() {
            let (id, requests) = &mut self.transfers[place];
            retain_pending(requests)?;
            if requests.is_empty() {
                incoming(Event::Complete(*id))?;
                self.transfers.swap_remove(place);
                moved = Moved::Something;
            } else {
                place += 1;
            }
        }
        Ok(moved)
    }

    /// Forgets requests that are not over, with their memory, which the MPI may
    /// still touch.
    pub(super) fn abandon(&mut self, may_call: bool) {
        let transfers = std::mem::take(&mut self.transfers);
        let transfers = transfers.into_iter().flat_map(|(_, requests)| requests);
        for mut pending in std::mem::take(&mut self.sends).into_iter().chain(transfers) {
            if !(may_call && pending.is_over().unwrap_or(false)) {
                std::mem::forget(pending);
            }
        }
        std::mem::forget(std::mem::take(&mut self.receives));
    }
}

/// Something that the engine reports.
#[derive(Debug)]
pub(super) enum Event {
    /// A packet of a message has arrived.
    Packet(Rank, Vec<u8>),
    /// A transfer is complete.
    Complete(u64),
}

impl Transfer {
    /// One request per slice; slices of one transfer arrive in order.
    fn start(self, mpi: &dyn PointToPoint, requests: &mut Vec<Box<dyn Pending>>) -> Result<()> {
        let mut rest = self.data.range.clone();
        loop {
            let end = rest.end.min(rest.start + MESSAGE_BYTES_MAX);
            let data = Data {
                memory: self.data.memory.clone(),
                range: rest.start..end,
            };
            requests.push(match self.direction {
                Direction::Send => mpi.isend_data(self.peer, self.tag, data)?,
                Direction::Receive => mpi.irecv_data(self.peer, self.tag, data)?,
            });
            rest.start = end;
            if rest.is_empty() {
                return Ok(());
            }
        }
    }
}

/// Drops what is over. After an error, the request that failed is gone.
fn retain_pending(requests: &mut Vec<Box<dyn Pending>>) -> Result<()> {
    let mut failed = Ok(());
    requests.retain_mut(|request| {
        let is_over = request.is_over().unwrap_or_else(|error| {
            failed = Err(error);
            true
        });
        !is_over
    });
    failed
}

impl Incoming {
    /// Puts a packet where it belongs; the message of a loss that it is.
    pub(super) fn push_packet(&mut self, from: Rank, packet: Vec<u8>) -> Result<()> {
        let malformed = TransportError::Malformed {
            rank: from,
            operation: "a message of pario",
        };
        let (header, payload) = packets::parse(packet).ok_or_else(|| malformed.clone())?;
        if header.context == super::mpi_endpoint::LOSSES {
            return self.learn_of_loss(&payload).ok_or(malformed);
        }
        self.queue.push(from, header, Cow::Owned(payload));
        Ok(())
    }
}
