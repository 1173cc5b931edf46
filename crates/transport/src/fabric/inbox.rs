//! What has arrived at a rank and has not been received yet.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use super::flags::Flags;
use super::ring::Consumer;
use crate::{Rank, Tag};

/// The number of a private world of messages: a duplicate. Never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ContextId(pub(super) u64);

impl ContextId {
    /// The context in which a world starts.
    pub(super) const FIRST: ContextId = ContextId(0);

    /// The context of a number from elsewhere. The world's own numbers never
    /// get so large.
    pub(super) fn numbered(number: u64) -> ContextId {
        ContextId(Self::FIRST_NUMBERED + number)
    }

    const FIRST_NUMBERED: u64 = 1 << 63;
}

/// What stands before a message in a ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Envelope {
    pub(super) context: ContextId,
    pub(super) tag: Tag,
    pub(super) bytes: u64,
}

impl Envelope {
    pub(super) const BYTES: usize = 24;

    pub(super) fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.context.0.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.bytes.to_ne_bytes());
        bytes[16..20].copy_from_slice(&self.tag.0.to_ne_bytes());
        bytes
    }

    fn decode(bytes: &[u8; Self::BYTES]) -> Self {
        let (words, _) = bytes.as_chunks::<8>();
        let [tag, _] = bytes[16..].as_chunks::<4>().0 else {
            unreachable!("the last word of an envelope has two halves");
        };
        Envelope {
            context: ContextId(u64::from_ne_bytes(words[0])),
            bytes: u64::from_ne_bytes(words[1]),
            tag: Tag(u32::from_ne_bytes(*tag)),
        }
    }
}

/// A message that has arrived whole.
#[derive(Debug)]
pub(super) enum Arrival {
    Message(Vec<u8>),
    /// There was no memory for a message of this length.
    Dropped(u64),
}

/// A message of which the rest is still to come.
#[derive(Debug)]
struct Partial {
    envelope: Envelope,
    /// `None` if there is no memory for the message, or no one to receive it.
    body: Option<Vec<u8>>,
    missing: u64,
}

/// The incoming stream of one sender.
#[derive(Debug)]
struct Stream {
    consumer: Consumer,
    partial: Option<Partial>,
}

/// A message that has come to its end; one for a closed context is dropped.
struct Step {
    envelope: Envelope,
    arrival: Option<Arrival>,
}

/// All that has arrived at a rank, and the streams in which it arrives.
#[derive(Debug)]
pub(super) struct Inbox {
    flags: Flags,
    streams: Vec<Stream>,
    queues: HashMap<(ContextId, Rank, Tag), VecDeque<Arrival>>,
    contexts: Contexts,
}

impl Inbox {
    /// An inbox fed by one ring from each rank.
    pub(super) fn new(flags: Flags, consumers: impl Iterator<Item = Consumer>) -> Self {
        let streams = consumers.map(|consumer| Stream {
            consumer,
            partial: None,
        });
        Inbox {
            flags,
            streams: streams.collect(),
            queues: HashMap::new(),
            contexts: Contexts::default(),
        }
    }

    pub(super) fn open(&mut self, context: ContextId) {
        self.contexts.open(context);
    }

    /// Drops what has arrived in a context and what may still arrive.
    pub(super) fn close(&mut self, context: ContextId) {
        self.contexts.open.remove(&context);
        self.queues.retain(|(of, _, _), _| *of != context);
    }

    /// Takes the next message of a sender with a tag.
    pub(super) fn take(&mut self, context: ContextId, from: Rank, tag: Tag) -> Option<Arrival> {
        let key = (context, from, tag);
        let queue = self.queues.get_mut(&key)?;
        let arrival = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(&key);
        }
        arrival
    }

    /// Takes the next message of some sender with a tag.
    pub(super) fn take_any(&mut self, context: ContextId, tag: Tag) -> Option<(Rank, Arrival)> {
        let mut keys = self.queues.keys();
        let key = keys.find(|(of, _, its)| *of == context && *its == tag)?;
        let from = key.1;
        let arrival = self.take(context, from, tag)?;
        Some((from, arrival))
    }

    /// Adds a message that did not come through a ring.
    pub(super) fn deposit(&mut self, context: ContextId, from: Rank, tag: Tag, arrival: Arrival) {
        let queue = self.queues.entry((context, from, tag)).or_default();
        queue.push_back(arrival);
    }

    /// Moves what has arrived out of the rings; returns the senders who wait
    /// for the room that was made.
    pub(super) fn harvest(&mut self) -> Vec<Rank> {
        let mut starved = Vec::new();
        for group in 0..self.flags.groups() {
            for from in self.flags.take(group) {
                starved.extend(self.harvest_from(from));
            }
        }
        starved
    }

    /// The same for one ring, without its flag: a sender that was killed may
    /// not have come to raise it.
    pub(super) fn harvest_from(&mut self, from: Rank) -> Option<Rank> {
        let stream = &mut self.streams[from.index()];
        // What arrives from here on is left for the next time: a busy sender
        // must not keep the caller here.
        let mut budget = stream.consumer.available();
        while let Some(step) = stream.advance(&self.contexts, &mut budget) {
            if let Some(arrival) = step.arrival {
                let key = (step.envelope.context, from, step.envelope.tag);
                self.queues.entry(key).or_default().push_back(arrival);
            }
        }
        stream.consumer.release().then_some(from)
    }
}

impl Stream {
    /// Reads until a message is complete or the budget is used up. An envelope
    /// is always published whole.
    fn advance(&mut self, contexts: &Contexts, budget: &mut usize) -> Option<Step> {
        let mut partial = match self.partial.take() {
            Some(partial) => partial,
            None if *budget < Envelope::BYTES => return None,
            None => {
                *budget -= Envelope::BYTES;
                let envelope = Envelope::decode(&self.consumer.read_array());
                Partial {
                    envelope,
                    body: contexts.body_for(&envelope),
                    missing: envelope.bytes,
                }
            }
        };
        let limit =
            usize::try_from(partial.missing).map_or(*budget, |missing| missing.min(*budget));
        let read = match &mut partial.body {
            Some(body) => self.consumer.read_into(body, limit),
            None => self.consumer.skip(limit),
        };
        *budget -= read;
        partial.missing -= read as u64;
        if partial.missing > 0 {
            self.partial = Some(partial);
            return None;
        }
        let envelope = partial.envelope;
        let arrival = match partial.body {
            _ if contexts.is_closed(envelope.context) => None,
            Some(body) => Some(Arrival::Message(body)),
            None => Some(Arrival::Dropped(envelope.bytes)),
        };
        Some(Step { envelope, arrival })
    }
}

/// Which contexts this rank has opened and closed. A message for a context that
/// was never opened here is early: another rank has already made the duplicate.
#[derive(Debug, Default)]
struct Contexts {
    open: HashSet<ContextId>,
    /// Of the world's own numbers, and of those from elsewhere.
    seen: [Seen; 2],
}

/// Which numbers of a row have been seen, most of them in order.
#[derive(Debug, Default)]
struct Seen {
    /// All below this one.
    below: u64,
    /// Those above that have been seen too.
    beyond: BTreeSet<u64>,
}

impl Contexts {
    /// The row that a context is in, and its number there.
    fn place(context: ContextId) -> (usize, u64) {
        match context.0.checked_sub(ContextId::FIRST_NUMBERED) {
            None => (0, context.0),
            Some(number) => (1, number),
        }
    }

    fn open(&mut self, context: ContextId) {
        self.open.insert(context);
        let (row, number) = Self::place(context);
        let seen = &mut self.seen[row];
        seen.beyond.insert(number);
        while seen.beyond.remove(&seen.below) {
            seen.below += 1;
        }
    }

    fn is_closed(&self, context: ContextId) -> bool {
        let (row, number) = Self::place(context);
        let seen = &self.seen[row];
        let is_seen = number < seen.below || seen.beyond.contains(&number);
        is_seen && !self.open.contains(&context)
    }

    /// Memory for a message, if it is wanted and can be had.
    fn body_for(&self, envelope: &Envelope) -> Option<Vec<u8>> {
        if self.is_closed(envelope.context) {
            return None;
        }
        let mut body = Vec::new();
        let length = usize::try_from(envelope.bytes).ok()?;
        body.try_reserve_exact(length).ok()?;
        Some(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Segment;
    use crate::fabric::ring::Producer;

    #[test]
    fn envelopes_survive_the_way() {
        let envelope = Envelope {
            context: ContextId(u64::MAX - 1),
            tag: Tag(0xffff_0001),
            bytes: 1 << 40,
        };
        let decoded = Envelope::decode(&envelope.encode());
        assert_eq!(decoded.context, envelope.context);
        assert_eq!(decoded.tag, envelope.tag);
        assert_eq!(decoded.bytes, envelope.bytes);
    }

    #[test]
    fn contexts_are_early_then_open_then_closed() {
        let mut contexts = Contexts::default();
        contexts.open(ContextId(0));
        // Two threads may open their duplicates in any order.
        contexts.open(ContextId(2));
        assert!(!contexts.is_closed(ContextId(1)), "1 may still come");
        contexts.open.remove(&ContextId(2));
        assert!(contexts.is_closed(ContextId(2)));
        assert!(!contexts.is_closed(ContextId(1)));
        contexts.open(ContextId(1));
        assert!(!contexts.is_closed(ContextId(0)));
        assert!(contexts.seen[0].beyond.is_empty(), "nothing to remember");
    }

    #[test]
    fn no_memory_is_asked_for_impossible_lengths() {
        let contexts = Contexts::default();
        let envelope = Envelope {
            context: ContextId(0),
            tag: Tag(0),
            bytes: u64::MAX,
        };
        assert_eq!(contexts.body_for(&envelope), None);
    }

    const CAPACITY: usize = 1024;

    /// An inbox with one sender, and the sender's ends.
    fn inbox() -> (Inbox, Producer, Flags) {
        let memory = Segment::anonymous(8192).expect("two pages of memory");
        let flags = || Flags::new(memory.clone(), 4096, 1);
        let consumer = Consumer::new(memory.clone(), 0, CAPACITY);
        let producer = Producer::new(memory.clone(), 0, CAPACITY);
        (
            Inbox::new(flags(), [consumer].into_iter()),
            producer,
            flags(),
        )
    }

    #[test]
    fn what_arrives_for_a_closed_context_is_forgotten() {
        let (mut inbox, mut producer, flags) = inbox();
        let mut publish = |bytes: &[u8]| {
            assert_eq!(producer.write(bytes), bytes.len());
            producer.publish();
            flags.raise(Rank(0));
        };
        let envelope = |context| Envelope {
            context: ContextId(context),
            tag: Tag(0),
            bytes: 8,
        };
        for context in [0, 1] {
            inbox.open(ContextId(context));
        }
        // One that is complete, one of which the half is there, one to come.
        publish(&envelope(1).encode());
        publish(&[1; 8]);
        publish(&envelope(1).encode());
        publish(&[2; 4]);
        inbox.harvest();
        assert_eq!(inbox.queues.len(), 1);
        inbox.close(ContextId(1));
        publish(&[2; 4]);
        publish(&envelope(1).encode());
        publish(&[3; 8]);
        inbox.harvest();
        assert!(inbox.queues.is_empty());
        // The stream goes on behind them.
        publish(&envelope(0).encode());
        publish(&[4; 8]);
        inbox.harvest();
        let arrival = inbox.take(ContextId(0), Rank(0), Tag(0));
        assert!(matches!(arrival, Some(Arrival::Message(bytes)) if bytes == [4; 8]));
        assert!(inbox.queues.is_empty());
    }
}
