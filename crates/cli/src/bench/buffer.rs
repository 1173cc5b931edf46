//! Memory that starts at a chosen distance from a page.
//!
//! The distance matters: on some processors the kernel's copies to memory that starts 16 bytes into
//! a page, as large blocks of malloc do, take several times as long as those to its start.

use crate::failure::Failure;

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;

/// Bytes of room besides those asked for: the start of a page and any distance from it are there.
const AROUND: usize = 2 * PAGE;

/// Bytes of memory, without data at first.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    /// The bytes and what lies before them.
    room: Vec<u8>,
    /// Where the bytes start. The room is never moved, so that the distance stays.
    origin: usize,
}

impl Buffer {
    /// So many bytes of that value, `offset` bytes behind the start of a page.
    pub(crate) fn new(bytes: u64, value: u8, offset: usize) -> Result<Self, Failure> {
        let too_much = || {
            Failure::Arguments(format!(
                "there is no memory for a buffer of {bytes} bytes: choose smaller sizes"
            ))
        };
        let length = usize::try_from(bytes).map_err(|_| too_much())?;
        let with_pages = length.checked_add(AROUND).ok_or_else(too_much)?;
        let mut room = Vec::new();
        room.try_reserve_exact(with_pages).map_err(|_| too_much())?;
        let pointer: *const u8 = room.as_ptr();
        let origin = pointer.align_offset(PAGE) + offset % PAGE;
        room.resize(origin + length, value);
        Ok(Buffer { room, origin })
    }

    /// Memory that a buffer of so many bytes takes.
    pub(crate) fn footprint(bytes: u64) -> u64 {
        bytes.saturating_add(AROUND as u64)
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.room[self.origin..]
    }

    /// The bytes.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.room[self.origin..]
    }

    /// The room and where the bytes start in it, for a call that takes them.
    pub(crate) fn take(&mut self) -> (Vec<u8>, usize) {
        (std::mem::take(&mut self.room), self.origin)
    }

    /// Puts the room back.
    pub(crate) fn restore(&mut self, room: Vec<u8>) {
        self.room = room;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_start_where_they_should() {
        for offset in [0, 16, 100, PAGE - 1] {
            let mut buffer = Buffer::new(1000, 7, offset).unwrap();
            assert_eq!(buffer.bytes(), [7; 1000]);
            assert_eq!(buffer.bytes().as_ptr().addr() % PAGE, offset);
            let (room, origin) = buffer.take();
            assert_eq!(room.len() - origin, 1000);
            buffer.restore(room);
            assert_eq!(buffer.bytes_mut().as_ptr().addr() % PAGE, offset);
        }
    }

    #[test]
    fn too_much_memory_is_refused() {
        for bytes in [1 << 62, u64::MAX] {
            let failure = Buffer::new(bytes, 0, 0).unwrap_err();
            assert!(failure.to_string().contains("smaller sizes"));
        }
    }
}
