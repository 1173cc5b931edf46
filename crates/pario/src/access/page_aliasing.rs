//! Copies whose target lies just behind their source, counted within a page.
//!
//! Processors tell by the low bits of addresses whether a load may pass an
//! earlier store. If the target trails the source by a few bytes within a page,
//! every load seems to need what has just been stored, though page and memory
//! are far apart, and the copy runs at half the speed or less. Large blocks of
//! `malloc` start 16 bytes behind a page, so this is what a program meets that
//! reads a file from a page's start on.

use pario_driver::Direction;

/// Addresses that are equal within this many bytes look alike.
pub(super) const PAGE_BYTES: usize = 4096;
/// From this distance on the target does not hinder the copy.
const CLEAR_BYTES: u64 = 32;
/// Shorter copies are over before it matters.
const LONG_BYTES: u64 = 1024;

/// Whether the kernel's copy between a byte of the file and memory is slowed
/// down so much that a copy more, through a buffer elsewhere, is faster.
pub(super) fn aliases(direction: Direction, file: u64, memory: usize, len: u64) -> bool {
    let (source, target) = match direction {
        Direction::Read => (file, memory as u64),
        Direction::Write => (memory as u64, file),
    };
    let distance = target.wrapping_sub(source) % PAGE_BYTES as u64;
    len >= LONG_BYTES && (1..CLEAR_BYTES).contains(&distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_malloc_trails_a_page_that_is_read() {
        let (page, malloced) = (5 << 12, (7 << 12) + 16);
        assert!(aliases(Direction::Read, page, malloced, 4096));
        assert!(!aliases(Direction::Read, page, malloced, 100));
        assert!(!aliases(Direction::Read, page + 16, malloced, 4096));
        assert!(!aliases(Direction::Read, page, malloced + 48, 4096));
        assert!(!aliases(Direction::Write, page, malloced, 4096));
        assert!(aliases(Direction::Write, page + 24, malloced, 4096));
    }
}
