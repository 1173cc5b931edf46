//! What the bytes of the file are: a function of their place and of the round.

/// Bytes that are computed at once.
const WORD: u64 = 8;

/// A byte that is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrongByte {
    /// Its place in the file.
    pub(crate) offset: u64,
    /// What should be there.
    pub(crate) expected: u8,
    /// What is there.
    pub(crate) found: u8,
}

/// The eight bytes at `8 * index`. They differ between places and rounds, so that a misplaced,
/// lost or stale piece cannot pass for the right one.
fn word(index: u64, round: u64) -> [u8; WORD as usize] {
    // The finaliser of splitmix64: every bit of the input reaches every bit of the output.
    let mut bits = index.wrapping_add(round.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits ^ (bits >> 31)).to_le_bytes()
}

/// Gives the bytes from `offset` on their values in a round.
pub(crate) fn fill(bytes: &mut [u8], offset: u64, round: u64) {
    let mut rest = bytes;
    let mut index = offset / WORD;
    let mut within = (offset % WORD) as usize;
    while !rest.is_empty() {
        let word = word(index, round);
        let part = (word.len() - within).min(rest.len());
        let (now, later) = rest.split_at_mut(part);
        now.copy_from_slice(&word[within..within + part]);
        (rest, index, within) = (later, index + 1, 0);
    }
}

/// The first wrong byte among those from `offset` on.
pub(crate) fn first_wrong(bytes: &[u8], offset: u64, round: u64) -> Option<WrongByte> {
    let mut rest = bytes;
    let mut at = offset;
    while !rest.is_empty() {
        let word = word(at / WORD, round);
        let within = (at % WORD) as usize;
        let part = (word.len() - within).min(rest.len());
        let (now, later) = rest.split_at(part);
        let right = &word[within..within + part];
        if now != right {
            let wrong = now
                .iter()
                .zip(right)
                .position(|(found, right)| found != right)?;
            return Some(WrongByte {
                offset: at + wrong as u64,
                expected: right[wrong],
                found: now[wrong],
            });
        }
        (rest, at) = (later, at + part as u64);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut bytes = vec![0; 40];
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
        assert!(first_wrong(&bytes, 5, 2).is_some(), "an older round passed");
        assert!(first_wrong(&bytes, 13, 1).is_some(), "another place passed");
    }
}
