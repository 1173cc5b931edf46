//! Posted transfers made of messages.
#![allow(unsafe_code)] // copies between segments and messages

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{DataTag, Posted, Rank, Result, Segment, Tag, Transport, TransportError};

/// The bytes per message: less than the smallest queue.
const SLICE_BYTES: usize = 8 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Send,
    Receive,
}

/// A transfer under way.
#[derive(Debug)]
struct Transfer {
    posted: Posted,
    direction: Direction,
    peer: Rank,
    tag: Tag,
    memory: Segment,
    /// What is still to move.
    range: Range<usize>,
    /// Whether a message has been moved: an empty transfer has one, too.
    has_begun: bool,
    failure: Option<TransportError>,
}

#[derive(Debug, Default)]
struct Transfers {
    next: u64,
    under_way: Vec<Transfer>,
}

/// The transfers that were posted on one transport.
#[derive(Debug, Default)]
pub struct PostedByMessages {
    transfers: Mutex<Transfers>,
}

impl PostedByMessages {
    fn lock(&self) -> MutexGuard<'_, Transfers> {
        self.transfers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a transfer to `peer`.
    pub fn send(&self, peer: Rank, tag: DataTag, memory: &Segment, range: Range<usize>) -> Posted {
        self.post(Direction::Send, peer, tag, memory, range)
    }

    /// Notes a transfer from `peer`.
    pub fn receive(
        &self,
        peer: Rank,
        tag: DataTag,
        memory: &Segment,
        range: Range<usize>,
    ) -> Posted {
        self.post(Direction::Receive, peer, tag, memory, range)
    }

    fn post(
        &self,
        direction: Direction,
        peer: Rank,
        tag: DataTag,
        memory: &Segment,
        range: Range<usize>,
    ) -> Posted {
        assert!(tag.0 < DataTag::BOUND, "{tag:?} is too large");
        assert!(
            range.start <= range.end && range.end <= memory.bytes(),
            "{range:?} is not within a segment of {} bytes",
            memory.bytes()
        );
        let mut transfers = self.lock();
        transfers.next += 1;
        let posted = Posted(transfers.next);
        transfers.under_way.push(Transfer {
            posted,
            direction,
            peer,
            tag: Tag(Tag::FIRST_DATA.0 + u32::from(tag.0)),
            memory: memory.clone(),
            range,
            has_begun: false,
            failure: None,
        });
        posted
    }

    /// Moves what can be moved without waiting.
    pub fn progress(&self, transport: &dyn Transport) {
        let mut transfers = self.lock();
        // Transfers with the same peer and tag are moved one after the other.
        let mut blocked: Vec<(Direction, Rank, Tag)> = Vec::new();
        for transfer in &mut transfers.under_way {
            let way = (transfer.direction, transfer.peer, transfer.tag);
            if transfer.is_over() || blocked.contains(&way) {
                continue;
            }
            match transfer.advance(transport) {
                Ok(()) if !transfer.is_over() => blocked.push(way),
                Ok(()) => {}
                Err(error) => transfer.failure = Some(error),
            }
        }
    }

    /// Whether a transfer is complete; if so it is forgotten.
    ///
    /// # Panics
    /// If it was not posted, or was complete before.
    pub fn is_complete(&self, transport: &dyn Transport, posted: Posted) -> Result<bool> {
        self.progress(transport);
        let mut transfers = self.lock();
        let place = transfers
            .under_way
            .iter()
            .position(|it| it.posted == posted);
        let place = place.expect("a transfer that was posted and is not complete");
        match &transfers.under_way[place] {
            Transfer {
                failure: Some(error),
                ..
            } => Err(error.clone()),
            transfer if transfer.is_over() => {
                transfers.under_way.remove(place);
                Ok(true)
            }
            _ => {
                drop(transfers);
                transport.progress().map(|()| false)
            }
        }
    }
}

impl Transfer {
    fn is_over(&self) -> bool {
        self.failure.is_some() || (self.has_begun && self.range.is_empty())
    }

    fn advance(&mut self, transport: &dyn Transport) -> Result<()> {
        while !self.is_over() {
            let moved = match self.direction {
                Direction::Send => self.send_slice(transport)?,
                Direction::Receive => self.receive_slice(transport)?,
            };
            let Some(bytes) = moved else { break };
            self.has_begun = true;
            self.range.start += bytes;
        }
        Ok(())
    }

    fn send_slice(&self, transport: &dyn Transport) -> Result<Option<usize>> {
        let mut slice = vec![0; self.range.len().min(SLICE_BYTES)];
        let target = slice.as_mut_ptr();
        // SAFETY: whoever posted the transfer leaves the range alone until it
        // is complete; the slice has the length.
        unsafe { self.memory.copy_out(self.range.start, target, slice.len()) };
        let is_sent = transport.try_send(self.peer, self.tag, &slice)?;
        Ok(is_sent.then_some(slice.len()))
    }

    fn receive_slice(&self, transport: &dyn Transport) -> Result<Option<usize>> {
        let Some(slice) = transport.try_receive(self.peer, self.tag)? else {
            return Ok(None);
        };
        if slice.len() > self.range.len() {
            return Err(TransportError::Malformed {
                rank: self.peer,
                operation: "a posted transfer",
            });
        }
        // SAFETY: as above.
        unsafe {
            self.memory
                .copy_in(self.range.start, slice.as_ptr(), slice.len());
        };
        Ok(Some(slice.len()))
    }
}
