//! GPFS (Storage Scale): which range of a file a node accesses, told in advance by
//! `gpfs_fcntl`, so that the tokens of its blocks come in one piece and go before
//! another node asks for them.
//!
//! The structures are those of the header `gpfs_fcntl.h`, version 1. Not tried on a
//! real GPFS.

pub(crate) mod library;

use std::os::fd::BorrowedFd;

use crate::{Advice, Direction, control::Control, posix::sys};

/// `GPFS_FCNTL_CURRENT_VERSION`
const VERSION: i32 = 1;
const ACCESS_RANGE: i32 = 1001;
const FREE_RANGE: i32 = 1002;
/// `gpfsFcntlHeader_t`
const HEADER_BYTES: usize = 16;

/// Passes advice on. GPFS may ignore it, and failures do not matter.
pub(crate) fn advise(control: &Control, file: BorrowedFd<'_>, advice: Advice) {
    match hint(advice) {
        Some(hint) => drop(control.gpfs_fcntl(file, &mut with_header(&hint))),
        None => sys::advise(file, advice),
    }
}

/// `gpfsAccessRange_t` or `gpfsFreeRange_t`, if the advice is about a range.
fn hint(advice: Advice) -> Option<Vec<u8>> {
    match advice {
        Advice::AccessRange {
            start,
            end,
            direction,
        } => {
            let is_write = i32::from(direction == Direction::Write);
            let padding = 0;
            Some(
                [
                    range(ACCESS_RANGE, 32, start, end)?,
                    words(&[is_write, padding]),
                ]
                .concat(),
            )
        }
        Advice::FreeRange { start, end } => range(FREE_RANGE, 24, start, end),
        Advice::Sequential | Advice::Random | Advice::NoReuse => None,
    }
}

/// The common start of both structures. A length of 0 would mean the rest of the file.
fn range(kind: i32, structure_bytes: i32, start: u64, end: u64) -> Option<Vec<u8>> {
    let length = end.checked_sub(start).filter(|length| *length > 0)?;
    let mut bytes = words(&[structure_bytes, kind]);
    bytes.extend(start.to_ne_bytes());
    bytes.extend(length.to_ne_bytes());
    Some(bytes)
}

fn with_header(hint: &[u8]) -> Vec<u8> {
    let total = HEADER_BYTES + hint.len();
    let (error_offset, reserved) = (0, 0);
    let header = words(&[total as i32, VERSION, error_offset, reserved]);
    [&header, hint].concat()
}

fn words(words: &[i32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_those_of_the_header() {
        let advice = Advice::AccessRange {
            start: 1 << 40,
            end: (1 << 40) + 4096,
            direction: Direction::Write,
        };
        let bytes = with_header(&hint(advice).unwrap());
        let word = |at: usize| i32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        let long = |at: usize| i64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
        assert_eq!(bytes.len(), 48);
        assert_eq!([word(0), word(4), word(8), word(12)], [48, 1, 0, 0]);
        assert_eq!([word(16), word(20)], [32, 1001]);
        assert_eq!([long(24), long(32)], [1 << 40, 4096]);
        assert_eq!([word(40), word(44)], [1, 0]);

        let bytes = with_header(&hint(Advice::FreeRange { start: 8, end: 24 }).unwrap());
        let word = |at: usize| i32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!(bytes.len(), 40);
        assert_eq!([word(0), word(16), word(20)], [40, 24, 1002]);
    }

    #[test]
    fn an_empty_range_is_not_the_rest_of_the_file() {
        assert_eq!(hint(Advice::FreeRange { start: 8, end: 8 }), None);
        assert_eq!(hint(Advice::FreeRange { start: 8, end: 4 }), None);
    }
}
