//! Verifies that a file matches a pattern.

use std::ops::Range;

use super::pattern::Pattern;
use crate::measure::content::{WrongByte, first_difference, first_unlike};
use crate::measure::{Fault, Place};

/// Compares a file with the pieces of a pattern, and zeroes between them. A mapping's file ends
/// with the last gap, that of calls with the last piece.
pub(super) fn check(found: &[u8], pattern: Pattern, source: &[u8]) -> Result<(), Fault> {
    let span = pattern.span(source.len());
    let mut end = 0;
    for piece in pattern.pieces(0..span) {
        check_gap(found, end..piece.start)?;
        end = piece.end;
        let inside = clipped(piece, found.len());
        let (found, source) = (&found[inside.clone()], &source[inside.clone()]);
        wrong(first_difference(found, source, inside.start as u64))?;
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
    wrong(first_unlike(&found[gap.clone()], 0, gap.start as u64))
}

fn clipped(range: Range<usize>, length: usize) -> Range<usize> {
    range.start.min(length)..range.end.min(length)
}

fn wrong(byte: Option<WrongByte>) -> Result<(), Fault> {
    byte.map_or(Ok(()), |byte| Err(Place::File.wrong(byte)))
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
            assert_eq!(check(&file, PATTERN, &SOURCE), wrong(Some(byte)));
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
