//! Posted transfers within a world.
#![allow(unsafe_code)] // copies from packets into posted memory

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use crate::unexpected::ContextId;
use crate::{DataTag, Posted, Rank, Segment};

/// What stands for the bytes left of a transfer whose bytes are in place, because
/// the sender has put them there.
pub(super) const IN_PLACE: u64 = u64::MAX;

/// A range of memory that is to be sent or received.
#[derive(Clone, Debug)]
pub(super) struct Data {
    memory: Segment,
    range: Range<usize>,
}

impl Data {
    /// # Panics
    /// If the range is not within the memory.
    pub(super) fn new(memory: &Segment, range: Range<usize>) -> Data {
        assert!(
            range.start <= range.end && range.end <= memory.bytes(),
            "{range:?} is not within a segment of {} bytes",
            memory.bytes()
        );
        let memory = memory.clone();
        Data { memory, range }
    }

    pub(super) fn len(&self) -> usize {
        self.range.len()
    }

    /// Copies the bytes of a send to this receive.
    ///
    /// # Panics
    /// If the lengths differ.
    pub(super) fn copy_from(&self, source: &Data) {
        assert_eq!(self.len(), source.len(), "a transfer has one length");
        // SAFETY: the range is within the memory of the send, which no one writes
        // to until the send is complete, by the contract of `post_send`.
        let from = unsafe { source.memory.as_ptr().add(source.range.start) };
        // SAFETY: no one else touches the range of the receive until it is
        // complete, by the contract of `post_receive`.
        unsafe { self.memory.copy_in(self.range.start, from, self.len()) };
    }
}

/// The transfer of a context between this rank and another under a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) context: ContextId,
    pub(super) peer: Rank,
    pub(super) tag: DataTag,
}

/// What became of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Complete,
    UnderWay(Rank),
}

/// The transfers of one direction whose owner has not learnt that they are
/// complete.
#[derive(Debug, Default)]
struct Unclaimed {
    transfers: HashMap<Posted, (Key, bool)>,
}

impl Unclaimed {
    fn complete(&mut self, posted: Posted) {
        // It is not there if its context has been closed.
        if let Some((_, is_complete)) = self.transfers.get_mut(&posted) {
            *is_complete = true;
        }
    }

    /// Asks for a transfer, which is forgotten if it is complete.
    fn ask(&mut self, posted: Posted) -> Status {
        let found = self.transfers.get(&posted);
        let (key, is_complete) = found.expect("a transfer that was posted and is not complete");
        if !is_complete {
            return Status::UnderWay(key.peer);
        }
        self.transfers.remove(&posted);
        Status::Complete
    }

    fn close(&mut self, context: ContextId) {
        self.transfers.retain(|_, (key, _)| key.context != context);
    }
}

/// The receives of a rank.
#[derive(Debug, Default)]
pub(super) struct PostedReceives {
    /// In the order in which they were posted.
    under_way: HashMap<Key, VecDeque<(Posted, Data)>>,
    unclaimed: Unclaimed,
}

impl PostedReceives {
    pub(super) fn post(&mut self, posted: Posted, key: Key, data: Data) {
        let queue = self.under_way.entry(key).or_default();
        queue.push_back((posted, data));
        self.unclaimed.transfers.insert(posted, (key, false));
    }

    pub(super) fn ask(&mut self, posted: Posted) -> Status {
        self.unclaimed.ask(posted)
    }

    pub(super) fn close(&mut self, context: ContextId) {
        self.under_way.retain(|key, _| key.context != context);
        self.unclaimed.close(context);
    }

    /// Copies the next bytes of a transfer to their place; whether there is a
    /// receive that has space for them.
    pub(super) fn accept(&mut self, key: Key, left: u64, payload: &[u8]) -> bool {
        let Some(queue) = self.under_way.get_mut(&key) else {
            return false;
        };
        let Some((posted, data)) = queue.front_mut() else {
            return false;
        };
        if left != IN_PLACE && payload.len() as u64 + left != data.range.len() as u64 {
            return false;
        }
        // SAFETY: no one else touches the range until the transfer is complete,
        // by the contract of `post_receive`; the range is within the memory.
        unsafe {
            let source = payload.as_ptr();
            data.memory.copy_in(data.range.start, source, payload.len());
        }
        data.range.start += payload.len();
        if left == 0 || left == IN_PLACE {
            self.unclaimed.complete(*posted);
            queue.pop_front();
            if queue.is_empty() {
                self.under_way.remove(&key);
            }
        }
        true
    }
}

/// A send of which a part is still to be written to the receiver's queue.
#[derive(Debug)]
pub(super) struct PostedSend {
    posted: Posted,
    key: Key,
    data: Data,
    /// An empty transfer is one packet, too.
    has_begun: bool,
    /// Whether the bytes are where the receiver wants them.
    is_in_place: bool,
}

impl PostedSend {
    pub(super) fn to(&self) -> Rank {
        self.key.peer
    }

    pub(super) fn is_over(&self) -> bool {
        self.has_begun && (self.is_in_place || self.data.range.is_empty())
    }
}

/// A packet of a posted send.
#[derive(Debug)]
pub(super) struct Slice<'a> {
    pub(super) context: ContextId,
    pub(super) tag: DataTag,
    pub(super) left: u64,
    pub(super) memory: &'a Segment,
    pub(super) range: Range<usize>,
}

impl Slice<'_> {
    /// Copies the bytes.
    ///
    /// # Panics
    /// If `target` is of another length.
    pub(super) fn copy_to(&self, target: &mut [u8]) {
        assert_eq!(
            target.len(),
            self.range.len(),
            "a slice is copied as a whole"
        );
        let start = self.range.start;
        // SAFETY: no one writes to the range until the transfer is complete, by
        // the contract of `post_send`; the target has the length.
        unsafe {
            self.memory
                .copy_out(start, target.as_mut_ptr(), target.len())
        };
    }
}

impl PostedSend {
    /// The next packet of at most so many bytes.
    pub(super) fn slice(&self, bytes: usize) -> Slice<'_> {
        let Range { start, end } = self.data.range;
        let (stop, left) = match self.is_in_place {
            true => (start, IN_PLACE),
            false => {
                let stop = end.min(start.saturating_add(bytes));
                (stop, (end - stop) as u64)
            }
        };
        Slice {
            context: self.key.context,
            tag: self.key.tag,
            left,
            memory: &self.data.memory,
            range: start..stop,
        }
    }

    /// Notes that so many bytes have left.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.data.range.start += bytes;
        self.has_begun = true;
    }
}

/// The sends of a rank.
#[derive(Debug, Default)]
pub(super) struct PostedSends {
    under_way: VecDeque<PostedSend>,
    unclaimed: Unclaimed,
}

impl PostedSends {
    pub(super) fn post(&mut self, posted: Posted, key: Key, data: Data, is_in_place: bool) {
        self.unclaimed.transfers.insert(posted, (key, false));
        self.under_way.push_back(PostedSend {
            posted,
            key,
            data,
            has_begun: false,
            is_in_place,
        });
    }

    pub(super) fn ask(&mut self, posted: Posted) -> Status {
        self.unclaimed.ask(posted)
    }

    /// Forgets whose transfers these were. They are still sent: the receiver may
    /// have a part of them.
    pub(super) fn close(&mut self, context: ContextId) {
        self.unclaimed.close(context);
    }

    pub(super) fn len(&self) -> usize {
        self.under_way.len()
    }

    /// Moves sends on, the ones to each rank in order, until there is no space
    /// for more. `advance` moves one on as far as possible and returns whether it
    /// can be forgotten, because it is over or will never be.
    pub(super) fn advance(&mut self, mut advance: impl FnMut(&mut PostedSend) -> bool) {
        let mut blocked: Vec<Rank> = Vec::new();
        for _ in 0..self.under_way.len() {
            let Some(mut send) = self.under_way.pop_front() else {
                break;
            };
            let to = send.to();
            if !blocked.contains(&to) && advance(&mut send) {
                if send.is_over() {
                    self.unclaimed.complete(send.posted);
                }
                continue;
            }
            blocked.push(to);
            self.under_way.push_back(send);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key {
        context: ContextId(1),
        peer: Rank(2),
        tag: DataTag(3),
    };

    fn memory() -> Segment {
        Segment::anonymous(64).expect("a page of memory")
    }

    #[test]
    fn receives_take_packets_in_the_order_in_which_they_were_posted() {
        let (memory, mut receives) = (memory(), PostedReceives::default());
        receives.post(Posted(0), KEY, Data::new(&memory, 0..4));
        receives.post(Posted(1), KEY, Data::new(&memory, 8..8));
        receives.post(Posted(2), KEY, Data::new(&memory, 16..18));
        assert!(receives.accept(KEY, 2, b"ab"));
        assert_eq!(receives.ask(Posted(0)), Status::UnderWay(KEY.peer));
        assert!(receives.accept(KEY, 0, b"cd"));
        assert!(receives.accept(KEY, 0, b""));
        assert_eq!(receives.ask(Posted(1)), Status::Complete);
        assert_eq!(receives.ask(Posted(0)), Status::Complete);
        assert!(receives.accept(KEY, 0, b"ef"));
        let mut bytes = [0; 18];
        memory.load_bytes(0, &mut bytes);
        assert_eq!(&bytes, b"abcd\0\0\0\0\0\0\0\0\0\0\0\0ef");
    }

    #[test]
    fn packets_that_fit_no_receive_are_refused() {
        let (memory, mut receives) = (memory(), PostedReceives::default());
        assert!(!receives.accept(KEY, 0, b"none is posted"));
        receives.post(Posted(0), KEY, Data::new(&memory, 0..4));
        assert!(!receives.accept(KEY, 0, b"long!"));
        assert!(!receives.accept(KEY, 1, b"ab"));
        receives.close(KEY.context);
        assert!(!receives.accept(KEY, 0, b"abcd"));
    }

    #[test]
    fn sends_to_one_rank_leave_in_order() {
        let (memory, mut sends) = (memory(), PostedSends::default());
        let other = Key {
            peer: Rank(3),
            ..KEY
        };
        sends.post(Posted(0), KEY, Data::new(&memory, 0..4), false);
        sends.post(Posted(1), KEY, Data::new(&memory, 0..0), false);
        sends.post(Posted(2), other, Data::new(&memory, 0..1), false);
        let mut left = Vec::new();
        // There is space for half of the first one, and for the last.
        sends.advance(|send| {
            let bytes = send.slice(2).range.len();
            left.push((send.posted, bytes));
            send.advance(bytes);
            send.is_over()
        });
        assert_eq!(left, [(Posted(0), 2), (Posted(2), 1)]);
        assert_eq!(sends.ask(Posted(2)), Status::Complete);
        sends.advance(|send| {
            let bytes = send.slice(2).range.len();
            send.advance(bytes);
            send.is_over()
        });
        assert_eq!(sends.ask(Posted(0)), Status::Complete);
        assert_eq!(sends.ask(Posted(1)), Status::Complete);
        assert_eq!(sends.len(), 0);
    }
}
