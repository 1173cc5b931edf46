//! Mappings, and non-temporal stores into them.
//!
//! One of the files that may contain `unsafe`: a mapped file may change under its mapping, and the
//! stores are instructions of the processor.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;

use memmap2::{MmapMut, MmapOptions};

/// The first bytes of a file, shared with it. The file is at least that long. Touching a page for
/// which there is no space raises SIGBUS, or is EFAULT in a system call.
pub(super) fn map_file(file: &File, length: usize) -> io::Result<MmapMut> {
    // SAFETY: no other process truncates or writes the file: it is in our own directory.
    unsafe { MmapOptions::new().len(length).map_mut(file) }
}

/// Private memory without pages.
pub(super) fn untouched(length: usize) -> io::Result<MmapMut> {
    MmapMut::map_anon(length)
}

/// Bytes of a non-temporal store.
#[cfg(target_arch = "x86_64")]
const STORE: usize = 16;

/// Copies with stores that bypass the cache. Bytes that do not fill an aligned store are copied
/// normally.
#[cfg(target_arch = "x86_64")]
pub(super) fn copy_non_temporal(to: &mut [u8], from: &[u8]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

    assert_eq!(to.len(), from.len(), "both sides have the same length");
    let head = to.as_ptr().align_offset(STORE).min(to.len());
    let (to_head, to) = to.split_at_mut(head);
    let (from_head, from) = from.split_at(head);
    to_head.copy_from_slice(from_head);
    let mut stores = to.chunks_exact_mut(STORE);
    let loads = from.chunks_exact(STORE);
    let from_tail = loads.remainder();
    for (to, from) in stores.by_ref().zip(loads) {
        // SAFETY: both chunks have the 16 bytes of a store; `to` starts at a multiple of them, and
        // every x86-64 processor has these instructions.
        unsafe {
            let bytes = _mm_loadu_si128(from.as_ptr().cast::<__m128i>());
            _mm_stream_si128(to.as_mut_ptr().cast::<__m128i>(), bytes);
        }
    }
    stores.into_remainder().copy_from_slice(from_tail);
    // SAFETY: every x86-64 processor has it. Non-temporal stores are unordered before it.
    unsafe { _mm_sfence() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_in_the_file() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(10_000).unwrap();
        let mut mapping = map_file(&file, 10_000).unwrap();
        mapping[9_990..].fill(7);
        drop(mapping);
        let mut found = [0; 20];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut found, 9_980).unwrap();
        assert_eq!((&found[..10], &found[10..]), (&[0; 10][..], &[7; 10][..]));
    }

    #[test]
    fn untouched_memory_is_zero() {
        let mut mapping = untouched(5000).unwrap();
        assert!(mapping.iter().all(|byte| *byte == 0));
        mapping[4999] = 1;
        assert_eq!(mapping[4999], 1);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn non_temporal_copies_copy_every_byte() {
        let from: Vec<u8> = (0..200u8).collect();
        for start in 0..40 {
            for end in start..100 {
                let mut to = vec![0; 200];
                copy_non_temporal(&mut to[start..end], &from[start + 3..end + 3]);
                let mut expected = vec![0; 200];
                expected[start..end].copy_from_slice(&from[start + 3..end + 3]);
                assert_eq!(to, expected, "{start}..{end}");
            }
        }
    }
}
