//! Lock-ahead: locks on exactly the ranges that are about to be written, requested together before
//! the data.
//!
//! Ordinary locks are granted on ranges as long as possible, so that interleaved writers take
//! them from each other at every piece. These are not extended. They are requested asynchronously, and
//! the server refuses those that conflict with others: the write then requests its lock as usual. So
//! nothing depends on them but time. The structures are those of the header `lustre_user.h` of
//! Lustre 2.15; tried on a double only.

use std::{ops::Range, os::fd::BorrowedFd};

use crate::{
    IoctlArgument,
    control::{Control, read_request},
};

/// `LL_IOC_LADVISE`: the argument is a header with advices after it.
const ADVISE: u64 = read_request(b'f', 250, 32);
/// `LADVISE_MAGIC`
const MAGIC: u32 = 0x1adf_1ce0;
/// `LU_LADVISE_LOCKAHEAD`, `MODE_WRITE_USER` and `LF_ASYNC`
const LOCK_AHEAD: u16 = 4;
const WRITE: u16 = 2;
const ASYNCHRONOUS: u32 = 1;
/// Advices per call (`LAH_COUNT_MAX`).
const ADVICES_MAX: usize = 1024;
/// Locks consist of whole pages. Clients with larger ones extend the ranges themselves.
const PAGE_BYTES: u64 = 4096;

/// Requests locks on ranges of a file, which ascend.
pub(crate) fn request(control: &Control, file: BorrowedFd<'_>, ranges: &[Range<u64>]) {
    for some in in_pages(ranges).chunks(ADVICES_MAX) {
        let mut argument = header(some);
        // A client that does not know this will not learn it.
        if control
            .ioctl(file, ADVISE, IoctlArgument::Structure(&mut argument))
            .is_err()
        {
            return;
        }
    }
}

/// The pages of ranges, joined where they are the same or touch.
fn in_pages(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut pages: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges.iter().filter(|range| !range.is_empty()) {
        let start = range.start - range.start % PAGE_BYTES;
        let end = range.end.checked_next_multiple_of(PAGE_BYTES);
        let end = end.unwrap_or(range.end);
        match pages.last_mut() {
            Some(last) if start <= last.end => last.end = last.end.max(end),
            _ => pages.push(start..end),
        }
    }
    pages
}

/// A `llapi_ladvise_hdr` with a `llapi_lu_ladvise` for each range.
fn header(ranges: &[Range<u64>]) -> Vec<u8> {
    let mut bytes = MAGIC.to_ne_bytes().to_vec();
    bytes.extend((ranges.len() as u32).to_ne_bytes());
    bytes.resize(32, 0);
    for range in ranges {
        bytes.extend(LOCK_AHEAD.to_ne_bytes());
        bytes.extend(WRITE.to_ne_bytes());
        bytes.extend(ASYNCHRONOUS.to_ne_bytes());
        bytes.extend(range.start.to_ne_bytes());
        // The last byte.
        bytes.extend((range.end - 1).to_ne_bytes());
        bytes.extend([0; 8]);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_those_of_the_header() {
        assert_eq!(ADVISE, 0x8020_66fa);
        let bytes = header(&[0..4096, 8192..12288]);
        assert_eq!(bytes.len(), 96);
        let long = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!([word(0), word(4)], [MAGIC, 2]);
        assert_eq!([long(8), long(16), long(24)], [0; 3]);
        assert_eq!(bytes[64..68], [4_u16, 2].map(u16::to_ne_bytes).concat());
        assert_eq!(word(68), 1);
        assert_eq!([long(72), long(80), long(88)], [8192, 12287, 0]);
    }

    #[test]
    fn ranges_are_whole_pages() {
        let found = in_pages(&[0..1, 5..10, 4095..4097, 20_000..20_000, 40_960..50_000]);
        assert_eq!(found, [0..8192, 40_960..53_248]);
        let end = u64::MAX - 1;
        assert_eq!(in_pages(std::slice::from_ref(&(end - 1..end))).len(), 1);
    }
}
