//! Whether a file is what a pattern writes.

use std::ops::Range;

use super::pattern::Pattern;
use super::way::first_difference;
use crate::bench::content::WrongByte;
use crate::bench::wrong::{Fault, Place};

/// Compares a file with the pieces of a pattern, and zeroes between them. Mappings end the file with
/// the last gap, calls with the last piece.
pub(super) fn check(found: &[u8], pattern: Pattern, source: &[u8]) -> Result<(), Fault> {
    let span = pattern.span(source.len());
    let mut end = 0;
    for piece in pattern.pieces(0..span) {
        check_gap(found, end..piece.start)?;
        end = piece.end;
        let inside = clipped(piece, found.len());
        let (found, source) = (&found[inside.clone()], &source[inside.clone()]);
        first_difference(found, source, inside.start).map_or(Ok(()), wrong)?;
    }
    check_gap(found, end..span)?;
    match (end..=span).contains(&found.len()) {
        true => Ok(()),
        false => Err(Fault::Length {
            expected: end as u64,
            found: found.len() as u64,
        }),
    }
}

fn check_gap(found: &[u8], gap: Range<usize>) -> Result<(), Fault> {
    let gap = clipped(gap, found.len());
    let Some(at) = found[gap.clone()].iter().position(|byte| *byte != 0) else {
        return Ok(());
    };
    let at = gap.start + at;
    wrong(WrongByte {
        offset: at as u64,
        expected: 0,
        found: found[at],
    })
}

fn clipped(range: Range<usize>, length: usize) -> Range<usize> {
    range.start.min(length)..range.end.min(length)
}

fn wrong(byte: WrongByte) -> Result<(), Fault> {
    let place = Place::File;
    Err(Fault::Byte { place, byte })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATTERN: Pattern = Pattern::holes(2);
    const SOURCE: [u8; 32] = [9; 32];
    const FILE: [u8; 8] = [9, 9, 0, 0, 9, 9, 0, 0];

    #[test]
    fn the_last_gap_may_be_there_or_not() {
        for length in 6..=8 {
            assert_eq!(check(&FILE[..length], PATTERN, &SOURCE), Ok(()), "{length}");
        }
    }

    #[test]
    fn any_wrong_byte_is_named() {
        for at in 0..FILE.len() {
            let mut file = FILE;
            file[at] ^= 4;
            let byte = WrongByte {
                offset: at as u64,
                expected: FILE[at],
                found: file[at],
            };
            assert_eq!(check(&file, PATTERN, &SOURCE), wrong(byte));
        }
    }

    #[test]
    fn a_wrong_length_is_named() {
        let long = [9, 9, 0, 0, 9, 9, 0, 0, 0];
        for file in [&FILE[..5], &FILE[..0], &long] {
            let fault = Fault::Length {
                expected: 6,
                found: file.len() as u64,
            };
            assert_eq!(check(file, PATTERN, &SOURCE), Err(fault));
        }
    }
}
