//! What the cells of the array hold, as bytes.

/// Bytes of a cell (an `f64`).
pub(crate) const CELL_BYTES: u64 = CELL_LEN as u64;

const CELL_LEN: usize = size_of::<f64>();

/// A byte that is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrongByte {
    /// Its offset in the array.
    pub(crate) offset: u64,
    /// What should be there.
    pub(crate) expected: u8,
    /// What is there.
    pub(crate) found: u8,
}

/// The cell at an index in a round. All bytes differ between cells and between rounds, so that a
/// misplaced, lost or stale byte cannot pass for the right one.
fn cell(index: u64, round: u64) -> [u8; CELL_LEN] {
    // The finaliser of splitmix64: every bit of the input reaches every bit of the output.
    let mut bits = index.wrapping_add(round.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^= bits >> 31;
    // An exponent without its highest bit is a finite number.
    f64::from_bits(bits & !(1 << 62)).to_ne_bytes()
}

/// Gives cells, the first of which has index `first`, their values in a round.
pub(crate) fn fill(cells: &mut [u8], first: u64, round: u64) {
    for (bytes, index) in cells.chunks_exact_mut(CELL_LEN).zip(first..) {
        bytes.copy_from_slice(&cell(index, round));
    }
}

/// The first wrong byte among cells, the first of which has index `first`. The last cell may be
/// cut short.
pub(crate) fn first_wrong(cells: &[u8], first: u64, round: u64) -> Option<WrongByte> {
    cells
        .chunks(CELL_LEN)
        .zip(first..)
        .find_map(|(bytes, index)| {
            let right = cell(index, round);
            if *bytes == right[..bytes.len()] {
                return None;
            }
            let byte = bytes
                .iter()
                .zip(right)
                .position(|(found, right)| *found != right)?;
            Some(WrongByte {
                offset: index * CELL_BYTES + byte as u64,
                expected: right[byte],
                found: bytes[byte],
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_finite_and_differ_in_all_rounds() {
        let mut values: Vec<_> = (0..4)
            .flat_map(|round| (0..1000).map(move |index| cell(index, round)))
            .inspect(|bytes| assert!(f64::from_ne_bytes(*bytes).is_finite()))
            .collect();
        values.sort_unstable();
        values.dedup();
        assert_eq!(values.len(), 4000);
    }

    #[test]
    fn any_wrong_byte_is_found() {
        let mut cells = vec![0; 10 * CELL_LEN];
        fill(&mut cells, 5, 1);
        assert_eq!(first_wrong(&cells, 5, 1), None);
        for at in 0..cells.len() {
            let expected = cells[at];
            cells[at] ^= 0x10;
            let wrong = WrongByte {
                offset: 5 * CELL_BYTES + at as u64,
                expected,
                found: cells[at],
            };
            assert_eq!(first_wrong(&cells, 5, 1), Some(wrong));
            assert_eq!(
                first_wrong(&cells[..=at], 5, 1),
                Some(wrong),
                "in a cell that is cut"
            );
            cells[at] = expected;
        }
    }
}
