//! Copies whose target is a few bytes past their source, modulo the page size.
//!
//! Processors use the low bits of addresses to decide whether a load may be
//! reordered before an earlier store. If, modulo the page size, the target starts
//! a few bytes past the source, every load appears to depend on a recent store,
//! although the addresses are far apart, and the copy runs at half the speed or
//! less ("4K aliasing"). Large blocks of `malloc` start 16 bytes past a page
//! boundary, so reading a file from a page boundary into such a block is affected.

use pario_driver::Direction;
use pario_hints::Hints;

use crate::machine::stages_aliases;

/// Addresses that are equal modulo this many bytes alias.
pub(super) const PAGE_BYTES: usize = 4096;
/// From this distance on, the copy is not slowed down.
const CLEAR_BYTES: u64 = 32;
/// For shorter copies the effect is negligible.
const LONG_BYTES: u64 = 1024;

/// Whether aliasing slows down the kernel's copy between the file and memory so
/// much that an additional copy through another buffer is faster.
#[inline]
pub(crate) fn is_staged(
    hints: &Hints,
    direction: Direction,
    file: u64,
    memory: usize,
    len: u64,
) -> bool {
    aliases(direction, file, memory, len) && stages_aliases(hints)
}

/// Whether a copy between the file and memory is subject to aliasing.
#[inline]
fn aliases(direction: Direction, file: u64, memory: usize, len: u64) -> bool {
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
    fn large_blocks_of_malloc_alias_pages_that_are_read() {
        let (page, malloced) = (5 << 12, (7 << 12) + 16);
        assert!(aliases(Direction::Read, page, malloced, 4096));
        assert!(!aliases(Direction::Read, page, malloced, 100));
        assert!(!aliases(Direction::Read, page + 16, malloced, 4096));
        assert!(!aliases(Direction::Read, page, malloced + 48, 4096));
        assert!(!aliases(Direction::Write, page, malloced, 4096));
        assert!(aliases(Direction::Write, page + 24, malloced, 4096));
    }
}
