//! Memory that one rank offers to others in a single message, however that reaches them.

use super::backing::{Backing, Offer, Secret};
use crate::Segment;

/// The bytes of a message that describes memory.
pub const OFFER_BYTES: usize = 64;

/// Memory that others can attach as long as this exists.
pub struct OfferedSegment {
    segment: Segment,
    offer: Offer,
}

impl OfferedSegment {
    /// Zeroed memory in a nameless file; `None` if there is not enough.
    #[must_use]
    pub fn create(bytes: usize) -> Option<OfferedSegment> {
        let (segment, offer) = Backing::Memfd.create(bytes).ok()?;
        Some(OfferedSegment { segment, offer })
    }

    /// The message: a secret number, the length of what follows, and where the memory is.
    #[must_use]
    pub fn message(&self) -> [u8; OFFER_BYTES] {
        let Offer {
            secret, locator, ..
        } = &self.offer;
        let mut message = [0; OFFER_BYTES];
        let (first, rest) = message.split_at_mut(secret.len());
        first.copy_from_slice(secret);
        rest[0] = locator.len() as u8;
        rest[1..=locator.len()].copy_from_slice(locator);
        message
    }

    /// The memory, once nobody else needs to find it.
    #[must_use]
    pub fn into_segment(self) -> Segment {
        self.segment
    }
}

/// Maps the memory that a message describes; `None` if it cannot be found, for example because
/// the message is empty.
#[must_use]
pub fn attach_offered(bytes: usize, message: &[u8; OFFER_BYTES]) -> Option<Segment> {
    let (secret, rest) = message.split_first_chunk::<{ size_of::<Secret>() }>()?;
    let (length, rest) = rest.split_first()?;
    let locator = rest.get(..usize::from(*length))?;
    Backing::Memfd.attach(bytes, secret, locator).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_offered_is_found_until_the_offer_ends() {
        let offered = OfferedSegment::create(8192).expect("there is memory for that");
        let message = offered.message();
        let found = attach_offered(8192, &message).expect("it is offered");
        found.store_bytes(104, b"here");
        assert!(attach_offered(4096, &message).is_none(), "another length");
        let mut other = message;
        other[0] ^= 1;
        assert!(attach_offered(8192, &other).is_none(), "another secret");
        assert!(attach_offered(8192, &[0; OFFER_BYTES]).is_none());
        let segment = offered.into_segment();
        let mut text = [0; 4];
        segment.load_bytes(104, &mut text);
        assert_eq!(&text, b"here");
        assert!(attach_offered(8192, &message).is_none(), "it has ended");
    }
}
