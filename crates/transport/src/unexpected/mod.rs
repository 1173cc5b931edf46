//! The unexpected-message queue: messages that have arrived at a rank and have
//! not been received, and messages of which a part has arrived.
//!
//! A transport takes packets from its network and [pushes](UnexpectedQueue::push)
//! them; long messages are put together here. Whoever receives
//! [takes](UnexpectedQueue::take) a message by sender and tag, or by tag alone.
//! Messages of a [context](ContextId) that has been closed are dropped.

mod contexts;

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

pub use contexts::ContextId;
use contexts::Contexts;

use crate::{BuildNumberHasher, Rank, Result, Tag, TransportError};

/// What a packet belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHeader {
    /// The context of the message.
    pub context: ContextId,
    /// The tag of the message.
    pub tag: Tag,
    /// The bytes of the message in packets that follow this one.
    pub left: u64,
}

/// A message, or the length of one for which there was no memory.
type Arrival = std::result::Result<Vec<u8>, u64>;

/// A message of which the rest is to come.
#[derive(Debug)]
struct Incomplete {
    /// `None` if there is no memory for it, or no one to receive it.
    body: Option<Vec<u8>>,
    bytes: u64,
}

/// The messages with one tag, in order of arrival.
type Channel = VecDeque<(Rank, Arrival)>;

/// How many empty channels to keep for their memory.
const SPARE_CHANNELS: usize = 16;

/// The unexpected-message queue of a rank.
///
/// A look-up by tag takes constant time; one by sender and tag also passes over
/// the messages of other senders with that tag.
#[derive(Debug, Default)]
pub struct UnexpectedQueue {
    contexts: Contexts,
    channels: HashMap<(ContextId, Tag), Channel, BuildNumberHasher>,
    /// By sender, whose messages arrive one after the other.
    incomplete: HashMap<Rank, Incomplete, BuildNumberHasher>,
    spare: Vec<Channel>,
}

impl UnexpectedQueue {
    /// Opens a context.
    pub fn open(&mut self, context: ContextId) {
        self.contexts.open(context);
    }

    /// Drops what has arrived in a context, and what will.
    pub fn close(&mut self, context: ContextId) {
        self.contexts.close(context);
        self.channels.retain(|(of, _), _| *of != context);
    }

    /// Whether a context has been open and is no longer.
    #[must_use]
    pub fn is_closed(&self, context: ContextId) -> bool {
        self.contexts.is_closed(context)
    }

    /// The next message of a sender with a tag. Fails if there was no memory
    /// for it.
    pub fn take(&mut self, context: ContextId, from: Rank, tag: Tag) -> Result<Option<Vec<u8>>> {
        let taken = self.take_where(context, tag, |sender| sender == from)?;
        Ok(taken.map(|(_, message)| message))
    }

    /// The next message with a tag, and its sender. Fails if there was no
    /// memory for it.
    pub fn take_any(&mut self, context: ContextId, tag: Tag) -> Result<Option<(Rank, Vec<u8>)>> {
        self.take_where(context, tag, |_| true)
    }

    fn take_where(
        &mut self,
        context: ContextId,
        tag: Tag,
        is_wanted: impl Fn(Rank) -> bool,
    ) -> Result<Option<(Rank, Vec<u8>)>> {
        if self.channels.is_empty() {
            // Most looks of a rank that waits: not worth a hash.
            return Ok(None);
        }
        let key = (context, tag);
        let Some(channel) = self.channels.get_mut(&key) else {
            return Ok(None);
        };
        let place = channel.iter().position(|(from, _)| is_wanted(*from));
        let taken = place.and_then(|place| channel.remove(place));
        if channel.is_empty()
            && let Some(channel) = self.channels.remove(&key)
            && self.spare.len() < SPARE_CHANNELS
        {
            self.spare.push(channel);
        }
        match taken {
            None => Ok(None),
            Some((from, Ok(message))) => Ok(Some((from, message))),
            Some((_, Err(bytes))) => Err(TransportError::TooLarge { bytes }),
        }
    }

    /// Adds a packet of a sender. Packets of its message arrive in order, and no
    /// packet of another message of the same sender between them. Returns
    /// whether a message is complete with it.
    pub fn push(&mut self, from: Rank, header: PacketHeader, payload: Cow<'_, [u8]>) -> bool {
        // Most messages are one packet.
        let begun = match self.incomplete.is_empty() {
            true => None,
            false => self.incomplete.remove(&from),
        };
        let bytes = match &begun {
            Some(begun) => begun.bytes,
            None => payload.len() as u64 + header.left,
        };
        let is_wanted = !self.contexts.is_closed(header.context);
        let body = match begun {
            _ if !is_wanted => None,
            Some(begun) => begun.body.map(|mut body| {
                body.extend_from_slice(&payload);
                body
            }),
            None => begin(payload, bytes),
        };
        if header.left > 0 {
            self.incomplete.insert(from, Incomplete { body, bytes });
            return false;
        }
        if is_wanted {
            let key = (header.context, header.tag);
            let channel = self.channels.entry(key);
            let channel = channel.or_insert_with(|| self.spare.pop().unwrap_or_default());
            channel.push_back((from, body.ok_or(bytes)));
        }
        is_wanted
    }

    /// Whether anything is kept.
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.channels.is_empty() && self.incomplete.is_empty()
    }
}

/// The first packet of a message of so many bytes, in memory for all of it, if
/// there is as much.
fn begin(payload: Cow<'_, [u8]>, bytes: u64) -> Option<Vec<u8>> {
    let bytes = usize::try_from(bytes).ok()?;
    let mut body = match payload {
        Cow::Owned(body) => body,
        Cow::Borrowed(payload) => {
            let mut body = Vec::new();
            body.try_reserve_exact(bytes).ok()?;
            body.extend_from_slice(payload);
            body
        }
    };
    body.try_reserve_exact(bytes - body.len()).ok()?;
    Some(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: ContextId = ContextId(0);
    const TAG: Tag = Tag(5);

    fn header(context: ContextId, left: u64) -> PacketHeader {
        PacketHeader {
            context,
            tag: TAG,
            left,
        }
    }

    fn queue() -> UnexpectedQueue {
        let mut queue = UnexpectedQueue::default();
        queue.open(HERE);
        queue
    }

    #[test]
    fn messages_are_taken_by_sender_or_in_order_of_arrival() {
        let mut queue = queue();
        for (from, byte) in [(1, 10), (2, 20), (1, 11), (3, 30)] {
            let is_complete = queue.push(Rank(from), header(HERE, 0), Cow::Owned(vec![byte]));
            assert!(is_complete);
        }
        assert_eq!(queue.take(HERE, Rank(2), TAG), Ok(Some(vec![20])));
        assert_eq!(queue.take(HERE, Rank(2), TAG), Ok(None));
        assert_eq!(queue.take_any(HERE, Tag(6)), Ok(None));
        for (from, byte) in [(1, 10), (1, 11), (3, 30)] {
            let expected = Some((Rank(from), vec![byte]));
            assert_eq!(queue.take_any(HERE, TAG), Ok(expected));
        }
        assert_eq!(queue.take_any(HERE, TAG), Ok(None));
        assert!(queue.is_empty());
    }

    #[test]
    fn packets_of_several_senders_become_messages() {
        let mut queue = queue();
        for (from, left, bytes) in [(1, 3, b"ab"), (2, 2, b"AB"), (1, 1, b"cd"), (2, 0, b"CD")] {
            let is_complete = queue.push(Rank(from), header(HERE, left), Cow::Borrowed(bytes));
            assert_eq!(is_complete, left == 0);
        }
        assert_eq!(queue.take(HERE, Rank(1), TAG), Ok(None));
        assert_eq!(queue.take(HERE, Rank(2), TAG), Ok(Some(b"ABCD".to_vec())));
        queue.push(Rank(1), header(HERE, 0), Cow::Borrowed(b"e"));
        assert_eq!(queue.take(HERE, Rank(1), TAG), Ok(Some(b"abcde".to_vec())));
        assert!(queue.is_empty());
    }

    #[test]
    fn what_arrives_for_a_closed_context_is_dropped() {
        let mut queue = queue();
        let closed = ContextId(1);
        queue.open(closed);
        // One that is complete, one of which a half has arrived, one to come.
        queue.push(Rank(0), header(closed, 0), Cow::Borrowed(&[1; 8]));
        queue.push(Rank(0), header(closed, 4), Cow::Borrowed(&[2; 4]));
        queue.close(closed);
        assert!(!queue.push(Rank(0), header(closed, 0), Cow::Borrowed(&[2; 4])));
        assert!(!queue.push(Rank(0), header(closed, 0), Cow::Borrowed(&[3; 8])));
        assert!(queue.is_empty());
        queue.push(Rank(0), header(HERE, 0), Cow::Borrowed(&[4; 8]));
        assert_eq!(queue.take(HERE, Rank(0), TAG), Ok(Some(vec![4; 8])));
    }

    #[test]
    fn a_message_without_memory_is_an_error_of_its_receiver() {
        let mut queue = queue();
        queue.push(Rank(0), header(HERE, u64::MAX / 2), Cow::Borrowed(&[0; 1]));
        queue.push(Rank(0), header(HERE, 0), Cow::Borrowed(&[0; 1]));
        let bytes = u64::MAX / 2 + 1;
        let too_large = TransportError::TooLarge { bytes };
        assert_eq!(queue.take(HERE, Rank(0), TAG), Err(too_large));
        assert!(queue.is_empty());
    }
}
