//! Memory at a chosen offset from a page boundary.
//!
//! The offset matters: on some processors the kernel's copies to memory that starts 16 bytes past a
//! page boundary, as large blocks from malloc do, take several times as long as to aligned memory.

use crate::failure::Failure;

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;

/// Extra bytes, enough for the start of a page and any offset from it.
const AROUND: usize = 2 * PAGE;

/// Bytes of memory, initially without data.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    /// The bytes and the padding before them; never moved, so that the offset stays the same.
    memory: Vec<u8>,
    /// Where the bytes start.
    origin: usize,
}

impl Buffer {
    /// Bytes of one value, `offset` bytes past a page boundary.
    pub(crate) fn new(bytes: u64, value: u8, offset: usize) -> Result<Self, Failure> {
        let too_much = || {
            Failure::Arguments(format!(
                "cannot allocate a buffer of {bytes} bytes: choose smaller sizes"
            ))
        };
        let length = usize::try_from(bytes).map_err(|_| too_much())?;
        let with_pages = length.checked_add(AROUND).ok_or_else(too_much)?;
        let mut memory = Vec::new();
        memory
            .try_reserve_exact(with_pages)
            .map_err(|_| too_much())?;
        let pointer: *const u8 = memory.as_ptr();
        let origin = pointer.align_offset(PAGE) + offset % PAGE;
        memory.resize(origin + length, value);
        Ok(Buffer { memory, origin })
    }

    /// Memory that a buffer of this size needs.
    pub(crate) fn footprint(bytes: u64) -> u64 {
        bytes.saturating_add(AROUND as u64)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory[self.origin..]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.origin..]
    }

    /// Takes the memory, and where the bytes start in it, for a call that owns them.
    pub(crate) fn take(&mut self) -> (Vec<u8>, usize) {
        (std::mem::take(&mut self.memory), self.origin)
    }

    pub(crate) fn restore(&mut self, memory: Vec<u8>) {
        self.memory = memory;
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
            let (memory, origin) = buffer.take();
            assert_eq!(memory.len() - origin, 1000);
            buffer.restore(memory);
            assert_eq!(buffer.bytes_mut().as_ptr().addr() % PAGE, offset);
        }
    }

    #[test]
    fn too_much_memory_is_rejected() {
        for bytes in [1 << 62, u64::MAX] {
            let failure = Buffer::new(bytes, 0, 0).unwrap_err();
            assert!(failure.to_string().contains("smaller sizes"));
        }
    }
}
