//! Parts of a message, each after its length.

/// Bytes after their number.
pub(super) fn with_length(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_le_bytes()[..], bytes].concat()
}

/// The bytes whose number comes first, and those after them.
pub(super) fn split_at_length(message: &[u8]) -> (&[u8], &[u8]) {
    let len = message[..4].try_into().map_or(0, u32::from_le_bytes) as usize;
    message[4..].split_at(len)
}
