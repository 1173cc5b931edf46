//! Cheap proofs that no two ranks' bytes overlap.

use std::ops::Range;

use pario_layout::Run;

use super::Proof;
use crate::{Access, number::gcd};

/// Maximum number of pieces or runs that a proof examines.
const EXAMINED_MAX: u64 = 1 << 16;

/// Maximum number of pairs of runs that are compared.
const PAIRS_MAX: u64 = 1 << 18;

/// Looks for a cheap proof that no two ranks' bytes overlap: their spans are
/// disjoint; or their patterns repeat and are disjoint over a common period; or
/// their strided runs, as in subarrays, are pairwise disjoint.
pub fn disjoint(accesses: &[Access]) -> Proof {
    let mut used: Vec<&Access> = accesses
        .iter()
        .filter(|access| !access.is_empty())
        .collect();
    used.sort_unstable_by_key(|access| access.span().start);
    let disjoint_spans = used
        .windows(2)
        .all(|pair| pair[0].span().end <= pair[1].span().start);
    match disjoint_spans || disjoint_in_period(&used) || disjoint_by_runs(&used) {
        true => Proof::Disjoint,
        false => Proof::Unknown,
    }
}

/// The common period of all accesses, if they have few pieces in it.
fn common_period(accesses: &[&Access]) -> Option<u64> {
    let mut period: u64 = 1;
    for access in accesses {
        let extent = u64::try_from(access.layout().extent()).ok()?;
        if extent == 0 || !access.is_increasing() {
            return None;
        }
        period = (extent / gcd(extent, period)).checked_mul(period)?;
    }
    let pieces = |access: &&Access| {
        let layout = access.layout();
        let extent = layout.extent().unsigned_abs();
        let a_tile = layout.piece_stats(0..layout.size()).pieces;
        (period / extent).saturating_mul(a_tile)
    };
    let total = accesses.iter().map(pieces).fold(0, u64::saturating_add);
    (total <= EXAMINED_MAX).then_some(period)
}

/// Whether all pieces of one period are disjoint, modulo its length.
fn disjoint_in_period(accesses: &[&Access]) -> bool {
    let Some(period) = common_period(accesses) else {
        return false;
    };
    let mut pieces: Vec<Range<u64>> = Vec::new();
    for access in accesses {
        let layout = access.layout();
        let tiles = period / layout.extent().unsigned_abs();
        for run in layout.runs(0..layout.size() * tiles) {
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

/// A strided run of one rank.
#[derive(Clone, Copy, Debug)]
struct Strip {
    rank: usize,
    start: u64,
    len: u64,
    stride: u64,
    end: u64,
}

impl Strip {
    /// `None` if the run descends.
    fn new(rank: usize, displacement: u64, run: &Run) -> Option<Strip> {
        let stride = u64::try_from(run.stride).ok()?;
        let start = displacement.checked_add_signed(run.offset)?;
        Some(Strip {
            rank,
            start,
            len: run.len,
            stride,
            end: start + (run.count - 1) * stride + run.len,
        })
    }

    /// Whether pieces of two runs never overlap. All distances between a piece
    /// of one and a piece of the other are the first distance plus multiples of
    /// the strides' common divisor.
    fn is_disjoint(&self, other: &Strip) -> bool {
        if self.end <= other.start || other.end <= self.start {
            return true;
        }
        match gcd(self.stride, other.stride) {
            0 => false,
            step => {
                let distance =
                    (i128::from(other.start) - i128::from(self.start)).rem_euclid(step.into());
                let distance = distance as u64;
                self.len <= distance && distance + other.len <= step
            }
        }
    }
}

/// Compares neighbouring runs of different ranks.
fn disjoint_by_runs(accesses: &[&Access]) -> bool {
    let Some(mut strips) = strips(accesses) else {
        return false;
    };
    strips.sort_unstable_by_key(|strip| strip.start);
    let mut active: Vec<Strip> = Vec::new();
    let mut pairs = 0;
    for strip in strips {
        active.retain(|other| other.end > strip.start);
        pairs += active.len() as u64;
        let overlaps = |other: &Strip| other.rank != strip.rank && !other.is_disjoint(&strip);
        if pairs > PAIRS_MAX || active.iter().any(overlaps) {
            return false;
        }
        active.push(strip);
    }
    true
}

/// All runs of all accesses, if there are few.
fn strips(accesses: &[&Access]) -> Option<Vec<Strip>> {
    let mut strips = Vec::new();
    for (rank, access) in accesses.iter().enumerate() {
        let data = access.first()..access.first() + access.len();
        for run in access.layout().runs(data) {
            if strips.len() as u64 == EXAMINED_MAX {
                return None;
            }
            strips.push(Strip::new(rank, access.displacement(), &run)?);
        }
    }
    Some(strips)
}

#[cfg(test)]
mod tests {
    use pario_layout::{Basic, Datatype, Order};

    use super::*;
    use crate::testing::{dense, strided};

    #[test]
    fn interleaved_patterns_of_one_period_are_disjoint() {
        let ranks: Vec<_> = (0..4).map(|rank| strided(rank * 8, 8, 32, 800)).collect();
        assert_eq!(disjoint(&ranks), Proof::Disjoint);
    }

    #[test]
    fn an_overlap_of_one_byte_is_detected() {
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
    fn unequal_periods_have_a_common_period() {
        // Eight bytes of every 24, and of every 48.
        let ranks = [strided(0, 8, 24, 8000), strided(8, 8, 48, 8000)];
        assert_eq!(disjoint(&ranks), Proof::Disjoint);
        let overlaps = [strided(0, 8, 24, 8000), strided(8, 8, 40, 8000)];
        assert_eq!(disjoint(&overlaps), Proof::Unknown);
    }

    /// Blocks of a cube of `side` bytes, `parts` in each dimension.
    fn blocks(side: u64, parts: u64) -> Vec<Access> {
        let part = side / parts;
        let block = |index: u64| {
            let place = [index / parts / parts, index / parts % parts, index % parts];
            let starts = place.map(|place| place * part);
            let datatype = Datatype::subarray(
                &[side; 3],
                &[part; 3],
                &starts,
                Order::C,
                &Datatype::basic(Basic::Byte),
            )
            .unwrap();
            Access::new(0, datatype.layout().clone(), 0, part * part * part).unwrap()
        };
        (0..parts * parts * parts).map(block).collect()
    }

    #[test]
    fn blocks_of_an_array_are_disjoint() {
        // Half a million pieces, but only a few hundred runs per rank.
        assert_eq!(disjoint(&blocks(512, 2)), Proof::Disjoint);
        let mut ranks = blocks(512, 2);
        ranks.push(dense(511, 2));
        assert_eq!(disjoint(&ranks), Proof::Unknown);
    }

    #[test]
    fn proofs_are_never_wrong() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut proved = 0;
        for _ in 0..3000 {
            let ranks: Vec<_> = (0..random.u64(1..4))
                .map(|_| {
                    let len = random.u64(1..6);
                    let stride = len + *[2, 6, 12].get(random.usize(0..3)).unwrap();
                    strided(random.u64(0..40), len, stride as i64, random.u64(0..60))
                })
                .collect();
            let bytes: u64 = ranks.iter().map(Access::len).sum();
            let ranges = super::super::covered(ranks.iter(), 0..1000);
            let union: u64 = ranges.iter().map(|it| it.end - it.start).sum();
            if disjoint(&ranks) == Proof::Disjoint {
                proved += 1;
                assert_eq!(bytes, union, "{ranks:?}");
            }
        }
        assert!(proved > 300, "{proved}");
    }
}
