//! Shared memory, addressed by offsets.
#![allow(unsafe_code)] // views into a mapping: atomics and raw copies

use std::io;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::{Event, Mapping};

const WORD: usize = size_of::<u64>();

/// Segments start at multiples of a cache line.
const ALIGNMENT: usize = 64;

/// A piece of memory that ranks share: threads, or processes that have it at
/// different addresses. What is kept in it is plain data addressed by offsets.
///
/// Clones refer to the same memory, which is given back with the last of them.
#[derive(Clone, Debug)]
pub struct Segment {
    mapping: Arc<Mapping>,
    /// Where the segment starts in the mapping; a multiple of `ALIGNMENT`.
    start: usize,
    bytes: usize,
}

impl Segment {
    /// Zeroed memory for the threads of this process and the children it forks
    /// later.
    pub fn anonymous(bytes: usize) -> io::Result<Self> {
        // A mapping cannot be empty, a segment can.
        let mapping = Mapping::anonymous(bytes.max(1))?;
        Ok(Self::within(Arc::new(mapping), 0, bytes))
    }

    /// Zeroed memory for the threads of this process, cheap to touch.
    pub fn private(bytes: usize) -> io::Result<Self> {
        let mapping = Mapping::private(bytes.max(1))?;
        Ok(Self::within(Arc::new(mapping), 0, bytes))
    }

    /// A part of a mapping.
    pub(crate) fn within(mapping: Arc<Mapping>, start: usize, bytes: usize) -> Self {
        let end = start.checked_add(bytes);
        assert!(
            end.is_some_and(|end| end <= mapping.bytes()),
            "a segment of {bytes} bytes at {start} does not fit its mapping"
        );
        Segment {
            mapping,
            start,
            bytes,
        }
    }

    /// A part of the segment, as a segment. `start` is a multiple of 64.
    ///
    /// # Panics
    /// When the part is not within the segment or `start` is not aligned.
    #[must_use]
    pub fn part(&self, start: usize, bytes: usize) -> Self {
        assert!(
            start.is_multiple_of(ALIGNMENT),
            "offset {start} is not a multiple of {ALIGNMENT}"
        );
        self.check_range(start, bytes);
        Self::within(Arc::clone(&self.mapping), self.start + start, bytes)
    }

    /// The length of the segment.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The address of the segment in this process. Valid as long as a clone of
    /// the segment lives; access through it follows the contract of
    /// [`copy_in`](Segment::copy_in).
    #[must_use]
    pub fn as_ptr(&self) -> *mut u8 {
        // SAFETY: `start` lies within the mapping.
        unsafe { self.mapping.address().as_ptr().add(self.start) }
    }

    /// The 32-bit word at an offset.
    ///
    /// # Panics
    /// When the offset is not a multiple of 4 or the word is not within the
    /// segment.
    #[must_use]
    pub fn atomic_u32(&self, offset: usize) -> &AtomicU32 {
        let address = self.word(offset, size_of::<u32>());
        // SAFETY: aligned, within the mapping, which outlives the borrow.
        // Accesses that are not atomic keep away by the contract of `copy_in`.
        unsafe { AtomicU32::from_ptr(address.cast()) }
    }

    /// The 64-bit word at an offset.
    ///
    /// # Panics
    /// When the offset is not a multiple of 8 or the word is not within the
    /// segment.
    #[must_use]
    pub fn atomic_u64(&self, offset: usize) -> &AtomicU64 {
        let address = self.word(offset, size_of::<u64>());
        // SAFETY: as in `atomic_u32`.
        unsafe { AtomicU64::from_ptr(address.cast()) }
    }

    /// The event whose two words stand at an offset; they start as zero.
    ///
    /// # Panics
    /// As [`atomic_u32`](Segment::atomic_u32) for the two words.
    #[must_use]
    pub fn event(&self, offset: usize) -> Event<'_> {
        Event::new(
            self.atomic_u32(offset),
            self.atomic_u32(offset + size_of::<u32>()),
        )
    }

    /// Copies bytes into the segment by atomic words: slower than
    /// [`copy_in`](Segment::copy_in), but harmless when others look at the same
    /// time (they may see a mix of old and new words). The rest of the last
    /// word becomes zero.
    ///
    /// # Panics
    /// When the offset is not a multiple of 8 or the words are not within the
    /// segment.
    pub fn store_bytes(&self, offset: usize, bytes: &[u8]) {
        for (i, chunk) in bytes.chunks(WORD).enumerate() {
            let mut word = [0; WORD];
            word[..chunk.len()].copy_from_slice(chunk);
            self.atomic_u64(offset + i * WORD)
                .store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
    }

    /// Copies bytes out of the segment by atomic words.
    ///
    /// # Panics
    /// When the offset is not a multiple of 8 or the words are not within the
    /// segment.
    pub fn load_bytes(&self, offset: usize, bytes: &mut [u8]) {
        for (i, chunk) in bytes.chunks_mut(WORD).enumerate() {
            let word = self.atomic_u64(offset + i * WORD).load(Ordering::Relaxed);
            chunk.copy_from_slice(&word.to_ne_bytes()[..chunk.len()]);
        }
    }

    /// Copies `length` bytes from `source` to an offset of the segment.
    ///
    /// # Safety
    /// `source` is valid for reads of `length` bytes. Until the copy is done no
    /// other thread or process reads or writes these bytes of the segment: the
    /// ranks agree on that by means of atomic words, and no reference to these
    /// bytes exists.
    ///
    /// # Panics
    /// When the range is not within the segment.
    pub unsafe fn copy_in(&self, offset: usize, source: *const u8, length: usize) {
        self.check_range(offset, length);
        // SAFETY: the range is within the mapping; the rest is the caller's
        // promise.
        unsafe { ptr::copy(source, self.as_ptr().add(offset), length) };
    }

    /// Copies `length` bytes from an offset of the segment to `target`.
    ///
    /// # Safety
    /// `target` is valid for writes of `length` bytes. Until the copy is done
    /// no other thread or process writes these bytes of the segment.
    ///
    /// # Panics
    /// When the range is not within the segment.
    pub unsafe fn copy_out(&self, offset: usize, target: *mut u8, length: usize) {
        self.check_range(offset, length);
        // SAFETY: the range is within the mapping; the rest is the caller's
        // promise.
        unsafe { ptr::copy(self.as_ptr().add(offset), target, length) };
    }

    fn word(&self, offset: usize, size: usize) -> *mut u8 {
        assert!(
            offset.is_multiple_of(size),
            "offset {offset} is not a multiple of {size}"
        );
        self.check_range(offset, size);
        // SAFETY: the range has just been checked.
        unsafe { self.as_ptr().add(offset) }
    }

    fn check_range(&self, offset: usize, length: usize) {
        let end = offset.checked_add(length);
        assert!(
            end.is_some_and(|end| end <= self.bytes),
            "{length} bytes at offset {offset} are not within a segment of {} bytes",
            self.bytes
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_in_and_out() {
        let segment = Segment::anonymous(64).expect("a page of memory");
        segment.store_bytes(8, &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let mut bytes = [0; 10];
        segment.load_bytes(8, &mut bytes);
        assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]);
        // SAFETY: no one else has this segment.
        unsafe {
            segment.copy_in(60, [5; 4].as_ptr(), 4);
            segment.copy_out(58, bytes.as_mut_ptr(), 6);
        }
        assert_eq!(bytes[..6], [0, 0, 5, 5, 5, 5]);
        assert_eq!(segment.atomic_u32(60).load(Ordering::Relaxed), 0x0505_0505);
    }

    #[test]
    fn parts_and_clones_share_the_memory() {
        let whole = Segment::anonymous(256).expect("a page of memory");
        let part = whole.part(64, 100);
        assert_eq!(part.bytes(), 100);
        part.atomic_u64(8).store(3, Ordering::Relaxed);
        let clone = whole.clone();
        drop(whole);
        assert_eq!(clone.atomic_u64(72).load(Ordering::Relaxed), 3);
    }

    #[test]
    #[should_panic(expected = "8 bytes at offset 96 are not within a segment of 100 bytes")]
    fn words_stay_within() {
        let segment = Segment::anonymous(100).expect("a page of memory");
        let _ = segment.atomic_u64(96);
    }

    #[test]
    #[should_panic(expected = "offset 12 is not a multiple of 8")]
    fn words_are_aligned() {
        let segment = Segment::anonymous(100).expect("a page of memory");
        let _ = segment.atomic_u64(12);
    }

    #[test]
    #[should_panic(expected = "are not within a segment")]
    fn offsets_do_not_wrap() {
        let segment = Segment::anonymous(100).expect("a page of memory");
        // SAFETY: panics before anything is copied.
        unsafe { segment.copy_in(usize::MAX, [0; 2].as_ptr(), 2) };
    }
}
