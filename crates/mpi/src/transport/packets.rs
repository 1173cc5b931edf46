//! Control messages as they go over the MPI: in packets that end with a
//! trailer.

use pario_transport::unexpected::{ContextId, PacketHeader};
use pario_transport::{Result, SEND_HEADROOM, Tag, TransportError};

use super::point_to_point::MESSAGE_BYTES_MAX;

/// The context, the tag, and how many bytes of the message are still to come.
/// It is at the end so that a packet becomes the message without being moved.
const TRAILER_BYTES: usize = 8 + 4 + 8;
const _: () = assert!(TRAILER_BYTES <= SEND_HEADROOM);

const PAYLOAD_BYTES_MAX: usize = MESSAGE_BYTES_MAX - TRAILER_BYTES;

fn append_trailer(packet: &mut Vec<u8>, header: PacketHeader) {
    packet.extend(header.context.0.to_le_bytes());
    packet.extend(header.tag.0.to_le_bytes());
    packet.extend(header.left.to_le_bytes());
}

/// The packets of a message.
pub(super) fn split(context: ContextId, tag: Tag, message: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut left = message.len();
    let mut packets = Vec::new();
    let mut payloads = message.chunks(PAYLOAD_BYTES_MAX);
    loop {
        let payload = payloads.next().unwrap_or(&[]);
        left -= payload.len();
        let mut packet = Vec::new();
        reserve(&mut packet, payload.len() + TRAILER_BYTES)?;
        packet.extend(payload);
        let left = left as u64;
        append_trailer(&mut packet, PacketHeader { context, tag, left });
        packets.push(packet);
        if left == 0 {
            return Ok(packets);
        }
    }
}

/// The packets of a message whose bytes stay where they are, if they are one
/// packet.
pub(super) fn split_owned(
    context: ContextId,
    tag: Tag,
    mut message: Vec<u8>,
) -> Result<Vec<Vec<u8>>> {
    if message.len() > PAYLOAD_BYTES_MAX {
        return split(context, tag, &message);
    }
    reserve(&mut message, TRAILER_BYTES)?;
    let left = 0;
    append_trailer(&mut message, PacketHeader { context, tag, left });
    Ok(vec![message])
}

/// A packet without its trailer.
pub(super) fn parse(mut packet: Vec<u8>) -> Option<(PacketHeader, Vec<u8>)> {
    let (_, trailer) = packet.split_last_chunk::<TRAILER_BYTES>()?;
    let (context, rest) = trailer.split_first_chunk()?;
    let (tag, left) = rest.split_first_chunk()?;
    let header = PacketHeader {
        context: ContextId(u64::from_le_bytes(*context)),
        tag: Tag(u32::from_le_bytes(*tag)),
        left: u64::from_le_bytes(left.try_into().ok()?),
    };
    packet.truncate(packet.len() - TRAILER_BYTES);
    Some((header, packet))
}

fn reserve(packet: &mut Vec<u8>, bytes: usize) -> Result<()> {
    let total = (packet.len() + bytes) as u64;
    let too_large = |_| TransportError::TooLarge { bytes: total };
    packet.try_reserve_exact(bytes).map_err(too_large)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_parsed() {
        let (context, tag) = (ContextId(3), Tag(9));
        for message in [&b""[..], b"x", b"hello"] {
            for packets in [
                split(context, tag, message).unwrap(),
                split_owned(context, tag, message.to_vec()).unwrap(),
            ] {
                let [packet] = <[_; 1]>::try_from(packets).expect("one packet");
                let left = 0;
                let header = PacketHeader { context, tag, left };
                assert_eq!(parse(packet), Some((header, message.to_vec())));
            }
        }
        assert_eq!(parse(vec![0; TRAILER_BYTES - 1]), None);
    }
}
