//! The bytes of a file: a function of their offset and of the round.

/// Bytes computed at a time.
const WORD: u64 = 8;

/// A wrong byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrongByte {
    pub(crate) offset: u64,
    pub(crate) expected: u8,
    pub(crate) found: u8,
}

/// The eight bytes at `8 * index`. They differ between offsets and rounds, so that a misplaced,
/// lost or stale piece is detected.
fn word(index: u64, round: u64) -> [u8; WORD as usize] {
    // The finaliser of splitmix64: every bit of the input reaches every bit of the output.
    let mut bits = index.wrapping_add(round.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits ^ (bits >> 31)).to_le_bytes()
}

/// Fills the bytes from `offset` on with their values in a round.
pub(crate) fn fill(bytes: &mut [u8], offset: u64, round: u64) {
    let (index, within) = (offset / WORD, (offset % WORD) as usize);
    // Up to the next word; none if one starts there.
    let before = ((WORD as usize - within) % WORD as usize).min(bytes.len());
    let (head, rest) = bytes.split_at_mut(before);
    head.copy_from_slice(&word(index, round)[within..within + before]);
    let mut words = rest.chunks_exact_mut(WORD as usize);
    let mut index = offset.div_ceil(WORD);
    for bytes in &mut words {
        bytes.copy_from_slice(&word(index, round));
        index += 1;
    }
    let tail = words.into_remainder();
    tail.copy_from_slice(&word(index, round)[..tail.len()]);
}

/// The first wrong byte among those from `offset` on.
pub(crate) fn first_wrong(bytes: &[u8], offset: u64, round: u64) -> Option<WrongByte> {
    /// Bytes compared at a time: few enough to check short pieces fast.
    const RUN: usize = 256;
    let mut right = [0; RUN];
    (offset..)
        .step_by(RUN)
        .zip(bytes.chunks(RUN))
        .find_map(|(at, found)| {
            let right = &mut right[..found.len()];
            fill(right, at, round);
            first_difference(found, right, at)
        })
}

/// The first of the bytes from `offset` on that differs from the expected one.
pub(crate) fn first_difference(found: &[u8], expected: &[u8], offset: u64) -> Option<WrongByte> {
    // One comparison of all bytes is many times faster than one of each.
    if found == expected {
        return None;
    }
    let mut both = found.iter().zip(expected).zip(offset..);
    let ((found, expected), offset) = both.find(|((found, expected), _)| found != expected)?;
    Some(WrongByte {
        offset,
        expected: *expected,
        found: *found,
    })
}

/// The first of the bytes from `offset` on that is not `expected`.
pub(crate) fn first_unlike(bytes: &[u8], expected: u8, offset: u64) -> Option<WrongByte> {
    /// Bytes compared without a branch for each, which is faster.
    const RUN: usize = 4096;
    let is_unlike = |run: &[u8]| run.iter().fold(0, |bits, byte| bits | (byte ^ expected)) != 0;
    let start = bytes.chunks(RUN).position(is_unlike)? * RUN;
    let within = bytes[start..].iter().position(|byte| *byte != expected)?;
    Some(WrongByte {
        offset: offset + (start + within) as u64,
        expected,
        found: bytes[start + within],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_unlike_byte_is_found() {
        let mut bytes = vec![7; 10_000];
        assert_eq!(first_unlike(&bytes, 7, 5), None);
        assert_eq!(first_unlike(&[], 7, 5), None);
        bytes[9999] = 9;
        for at in [9998, 4097, 4096, 4095, 0] {
            bytes[at] = 8;
            let wrong = WrongByte {
                offset: 5 + at as u64,
                expected: 7,
                found: 8,
            };
            assert_eq!(first_unlike(&bytes, 7, 5), Some(wrong));
        }
    }

    #[test]
    fn the_first_difference_is_named() {
        let expected = [1, 2, 3, 4];
        assert_eq!(first_difference(&expected, &expected, 10), None);
        let wrong = WrongByte {
            offset: 12,
            expected: 3,
            found: 9,
        };
        assert_eq!(first_difference(&[1, 2, 9, 9], &expected, 10), Some(wrong));
    }

    #[test]
    fn parts_agree_with_the_whole() {
        let mut whole = [0; 100];
        fill(&mut whole, 0, 3);
        for start in 0..20 {
            for end in start..40 {
                let mut part = vec![0; end - start];
                fill(&mut part, start as u64, 3);
                assert_eq!(part, whole[start..end]);
                assert_eq!(first_wrong(&part, start as u64, 3), None);
            }
        }
    }

    #[test]
    fn any_wrong_byte_is_found() {
        let mut bytes = vec![0; 600];
        fill(&mut bytes, 5, 1);
        for at in 0..bytes.len() {
            let expected = bytes[at];
            bytes[at] ^= 0x10;
            let wrong = WrongByte {
                offset: 5 + at as u64,
                expected,
                found: bytes[at],
            };
            assert_eq!(first_wrong(&bytes, 5, 1), Some(wrong));
            bytes[at] = expected;
        }
        assert!(first_wrong(&bytes, 5, 2).is_some(), "another round passed");
        assert!(
            first_wrong(&bytes, 13, 1).is_some(),
            "another offset passed"
        );
    }
}
