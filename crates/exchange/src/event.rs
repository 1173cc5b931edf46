//! The input of a machine.

use std::sync::Arc;

use crate::{Buffer, Entry, Job, Kind, Message, Progress, Rank, Span};

/// How a file transfer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The first requested byte that was not moved, if any, because of an
    /// error or the end of the file.
    pub stop: Option<u64>,
    /// The error, in the form in which it travels.
    pub error: Option<Arc<[u8]>>,
}

impl Outcome {
    /// Everything was moved.
    pub const ALL: Outcome = Outcome {
        stop: None,
        error: None,
    };
}

/// An event.
#[derive(Debug)]
pub enum Event<A> {
    /// The program made the call.
    Entered(Entry),
    /// The program made a call that the ranks have planned already: the
    /// machine starts with the exchange.
    Started {
        /// This rank's data bytes.
        bytes: u64,
        /// The plan.
        accesses: Arc<A>,
    },
    /// The answer to [`Action::Plan`](crate::Action::Plan).
    Planned(Arc<A>),
    /// The other answer, on all ranks: the plan needs no exchange, and this
    /// rank has moved its data so far. What remains is to agree.
    MovedAlone(Progress),
    /// A control message or a note arrived. Those of one call may arrive in
    /// any order.
    Message {
        /// Its sender.
        from: Rank,
        /// The message.
        message: Message,
        /// Its payload, if it has one: the spans themselves if the sender is
        /// of the same group, else one of a buffer of kind
        /// [`Arrival`](Kind::Arrival), which is this machine's until it
        /// releases it.
        payload: Vec<Span>,
    },
    /// The data of a posted receive is in its place.
    Received {
        /// The receive.
        job: Job,
        /// The length of the message.
        bytes: u64,
    },
    /// The bytes of a send may be overwritten.
    Sent(Job),
    /// A copy is complete that no other rank takes part in.
    Copied(Job),
    /// This rank's data is copied between its memory and a buffer.
    CopiedOwn {
        /// The copy.
        job: Job,
        /// Whether all other ranks that were asked for theirs were done before.
        is_last: bool,
    },
    /// A file transfer is over.
    Transferred {
        /// The transfer.
        job: Job,
        /// How it ended.
        outcome: Outcome,
    },
    /// One more buffer of a kind, as requested.
    Acquired(Kind),
    /// There is no other buffer of a kind at present.
    Refused(Kind),
    /// Buffers that were refused may be requested again.
    SpaceFreed,
    /// A rank has exited or been killed. Every machine of the communicator
    /// gets this event.
    PeerLost(Rank),
}

impl<A> Event<A> {
    /// A message without payload.
    pub fn message(from: Rank, message: Message) -> Event<A> {
        let payload = Vec::new();
        Event::Message {
            from,
            message,
            payload,
        }
    }
}

/// How a call ended on this rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finished {
    /// All ranks agreed on this result. A rank's count is the number of its data bytes
    /// below the stop.
    Agreed(Progress),
    /// A rank has exited or been killed.
    Lost {
        /// Which.
        rank: Rank,
        /// The buffers that a request or another rank may still access. They
        /// must stay allocated and unused.
        parked: Vec<Buffer>,
    },
}
