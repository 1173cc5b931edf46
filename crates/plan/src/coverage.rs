//! Which bytes of a window the ranks really touch. Coverage is proved from
//! the runs: byte sums prove nothing where ranks may overlap (semantics
//! rule 6).

use std::ops::Range;

use pario_layout::Runs;

use crate::Access;

/// Whether ranks' bytes are known not to overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// No byte of the file belongs to two ranks.
    Disjoint,
    /// It could not be shown cheaply.
    Unknown,
}

/// Pieces of one period that a proof looks at: more are not cheap.
const PERIOD_PIECES_MAX: u64 = 1 << 16;

/// Looks for a cheap proof that no two ranks' bytes overlap: their spans do
/// not, or their patterns repeat at the same distance and do not overlap
/// within one period.
pub fn disjoint(accesses: &[Access]) -> Proof {
    let mut used: Vec<&Access> = accesses
        .iter()
        .filter(|access| !access.is_empty())
        .collect();
    used.sort_unstable_by_key(|access| access.span().start);
    if used
        .windows(2)
        .all(|pair| pair[0].span().end <= pair[1].span().start)
    {
        return Proof::Disjoint;
    }
    let period = used[0].layout().extent();
    let pieces = used.iter().map(|access| {
        let layout = access.layout();
        layout.piece_stats(0..layout.size()).pieces
    });
    let periodic = period > 0
        && used
            .iter()
            .all(|access| access.is_increasing() && access.layout().extent() == period)
        && pieces.fold(0, u64::saturating_add) <= PERIOD_PIECES_MAX;
    if periodic && disjoint_in_period(&used, period as u64) {
        Proof::Disjoint
    } else {
        Proof::Unknown
    }
}

/// Puts all pieces of one period on a circle of its length.
fn disjoint_in_period(accesses: &[&Access], period: u64) -> bool {
    let mut pieces: Vec<Range<u64>> = Vec::new();
    for access in accesses {
        let layout = access.layout();
        for run in layout.runs(0..layout.size()) {
            for (offset, len) in run.pieces() {
                if len > period {
                    return false;
                }
                let start = access.displacement().wrapping_add_signed(offset) % period;
                if start + len <= period {
                    pieces.push(start..start + len);
                } else {
                    pieces.push(start..period);
                    pieces.push(0..start + len - period);
                }
            }
        }
    }
    pieces.sort_unstable_by_key(|piece| piece.start);
    pieces.windows(2).all(|pair| pair[0].end <= pair[1].start)
}

/// The stretches of a range of the file that some access touches: ascending,
/// not touching each other.
pub fn covered<'a>(
    accesses: impl Iterator<Item = &'a Access>,
    file: Range<u64>,
) -> Vec<Range<u64>> {
    let mut cursors: Vec<Cursor<'_>> = accesses
        .filter_map(|access| Cursor::new(access, file.clone()))
        .collect();
    let mut covered: Vec<Range<u64>> = Vec::new();
    while let Some(index) = first(&cursors) {
        let piece = cursors[index].piece.clone();
        match covered.last_mut() {
            Some(last) if piece.start <= last.end => last.end = last.end.max(piece.end),
            _ => covered.push(piece),
        }
        if !cursors[index].advance() {
            cursors.swap_remove(index);
        }
    }
    covered
}

/// The cursor whose piece comes first.
fn first(cursors: &[Cursor<'_>]) -> Option<usize> {
    (0..cursors.len()).min_by_key(|index| cursors[*index].piece.start)
}

/// The pieces of one access in a range, one after the other.
struct Cursor<'a> {
    displacement: u64,
    runs: Runs<'a>,
    run: pario_layout::Run,
    piece: Range<u64>,
}

impl<'a> Cursor<'a> {
    fn new(access: &'a Access, file: Range<u64>) -> Option<Cursor<'a>> {
        let data = access.data_in(file);
        if data.is_empty() {
            return None;
        }
        let (start, end) = (access.first() + data.start, access.first() + data.end);
        let mut runs = access.layout().runs(start..end);
        let run = runs.next()?;
        let displacement = access.displacement();
        let piece = piece_of(displacement, &run);
        Some(Cursor {
            displacement,
            runs,
            run,
            piece,
        })
    }

    fn advance(&mut self) -> bool {
        if self.run.count > 1 {
            self.run.count -= 1;
            self.run.offset += self.run.stride;
        } else {
            match self.runs.next() {
                Some(run) => self.run = run,
                None => return false,
            }
        }
        self.piece = piece_of(self.displacement, &self.run);
        true
    }
}

fn piece_of(displacement: u64, run: &pario_layout::Run) -> Range<u64> {
    let start = displacement.wrapping_add_signed(run.offset);
    start..start + run.len
}

#[cfg(test)]
mod tests {
    use pario_layout::{Basic, Datatype};

    use super::*;

    fn strided(at: u64, len: u64, stride: i64, bytes: u64) -> Access {
        let block = Datatype::contiguous(len, &Basic::Byte.into()).unwrap();
        let tile = Datatype::resized(&block, 0, stride).unwrap();
        Access::new(at, tile.layout().clone(), 0, bytes).unwrap()
    }

    #[test]
    fn interleaved_patterns_of_one_period_are_disjoint() {
        let ranks: Vec<_> = (0..4).map(|rank| strided(rank * 8, 8, 32, 800)).collect();
        assert_eq!(disjoint(&ranks), Proof::Disjoint);
        assert_eq!(
            covered(ranks.iter(), 10..100),
            [Range {
                start: 10,
                end: 100
            }]
        );
    }

    #[test]
    fn an_overlap_of_one_byte_is_no_proof() {
        let ranks = [strided(0, 9, 32, 900), strided(8, 8, 32, 800)];
        assert_eq!(disjoint(&ranks), Proof::Unknown);
        let around = [strided(0, 8, 32, 800), strided(28, 5, 32, 500)];
        assert_eq!(
            disjoint(&around),
            Proof::Unknown,
            "it wraps into the next period"
        );
    }

    #[test]
    fn sums_that_fill_a_window_do_not_hide_its_hole() {
        // Bytes 0..6 and 2..6 add up to ten bytes of a window of ten.
        let ranks = [strided(0, 6, 20, 6), strided(2, 4, 20, 4)];
        assert_eq!(covered(ranks.iter(), 0..10), [Range { start: 0, end: 6 }]);
    }

    #[test]
    fn covered_stretches_agree_with_a_map_of_bytes() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..500 {
            let ranks: Vec<_> = (0..random.u64(1..5))
                .map(|_| {
                    let len = random.u64(1..9);
                    strided(
                        random.u64(0..50),
                        len,
                        (len + random.u64(0..20)) as i64,
                        random.u64(0..100),
                    )
                })
                .collect();
            let file = random.u64(0..60)..random.u64(60..200);
            let touched = |byte: u64| {
                ranks
                    .iter()
                    .any(|rank| !rank.data_in(byte..byte + 1).is_empty())
            };
            let mut expected: Vec<Range<u64>> = Vec::new();
            for byte in file.clone().filter(|byte| touched(*byte)) {
                match expected.last_mut() {
                    Some(last) if last.end == byte => last.end += 1,
                    _ => expected.push(byte..byte + 1),
                }
            }
            assert_eq!(covered(ranks.iter(), file), expected);
        }
    }
}
