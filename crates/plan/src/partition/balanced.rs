//! Balanced: contiguous realms with equal amounts of actual data, for sparse
//! accesses in clusters (left open in Coloma 2006).
//!
//! The amount of data below a file offset, summed over all ranks, is an
//! increasing function of that offset; cut `i` of `n` is where it passes `i/n`
//! of the total. Each probe costs one look-up per rank, so cuts are found by
//! interpolation and accepted when close enough.

use std::ops::Range;

use super::{Partition, contiguous};
use crate::{Access, Case, Direction, Fitness, LockProtocol, Realm};

/// Contiguous realms with equal amounts of data.
#[derive(Debug)]
pub struct Balanced;

/// A cut may be off by one part in this many of a realm's share.
const PARTS_OF_SHARE: u128 = 32;

/// Number of slices of the region that are compared, and of ranks that are
/// sampled, to detect uneven clusters.
const SLICES: u64 = 8;
const RANKS_SAMPLED: usize = 64;

/// A slice with this many times the average amount of data makes equal ranges
/// uneven.
const UNEVEN: u64 = 2;

impl Partition for Balanced {
    fn name(&self) -> &'static str {
        "balanced"
    }

    fn fitness(&self, case: &Case<'_>) -> Fitness {
        if case.direction == Direction::Write && case.facts.lock_protocol != LockProtocol::None {
            return Fitness::suits(12, "lock boundaries matter more than equal amounts of data");
        }
        let pattern = case.pattern();
        let dense = pattern.bytes.saturating_mul(UNEVEN) >= pattern.region_bytes;
        match (!dense).then(|| densest_slice(case)).flatten() {
            Some(percent) if percent >= UNEVEN * 100 => Fitness::suits(
                60,
                format!("clusters: one slice of the region has {percent} % of the average data"),
            ),
            _ => Fitness::suits(12, "the data is distributed evenly enough"),
        }
    }

    fn realms(&self, case: &Case<'_>, candidates: &[u32]) -> Vec<(u32, Realm)> {
        let region = case.region();
        let below = |byte: u64| data_below(case.accesses, byte);
        let total = below(region.end);
        let count = candidates.len().max(1) as u128;
        let tolerance = total / count / PARTS_OF_SHARE;
        let mut search = Search {
            below,
            from: (region.start, 0),
            to: (region.end, total),
        };
        let boundary = case.boundary();
        contiguous::divide(&region, candidates, |index| {
            let wanted = total * u128::from(index) / count;
            search.cut(wanted, tolerance, boundary)
        })
    }
}

fn data_below(accesses: &[Access], byte: u64) -> u128 {
    let data = |access: &Access| u128::from(access.bytes_below(byte));
    accesses.iter().map(data).sum()
}

/// Finds cuts from left to right.
struct Search<F> {
    below: F,
    /// The last cut and the data below it; later cuts lie past it.
    from: (u64, u128),
    to: (u64, u128),
}

impl<F: Fn(u64) -> u128> Search<F> {
    /// The offset below which there is as much data as wanted, within the
    /// tolerance or as closely as possible; on a boundary if that is within the
    /// tolerance too.
    fn cut(&mut self, wanted: u128, tolerance: u128, boundary: u64) -> u64 {
        let near = |data: u128| data.abs_diff(wanted) <= tolerance;
        let (mut low, mut high) = (self.from, self.to);
        let mut found = low;
        for probe in 0.. {
            if near(found.1) || high.0 - low.0 <= 1 {
                break;
            }
            // Every other probe bisects: interpolation is misled by clusters.
            let at = match probe % 2 {
                0 => interpolate(low, high, wanted),
                _ => low.0 + (high.0 - low.0) / 2,
            };
            found = (at, (self.below)(at));
            match found.1 < wanted {
                true => low = found,
                false => high = found,
            }
        }
        if !near(found.1) {
            found = match wanted.abs_diff(low.1) < high.1.abs_diff(wanted) {
                true => low,
                false => high,
            };
        }
        let on_boundary = contiguous::nearest(found.0, boundary);
        if (self.from.0..self.to.0).contains(&on_boundary) {
            let data = (self.below)(on_boundary);
            if near(data) {
                found = (on_boundary, data);
            }
        }
        self.from = found;
        found.0
    }
}

/// Where linear interpolation between two points reaches the wanted amount,
/// strictly between them.
fn interpolate(low: (u64, u128), high: (u64, u128), wanted: u128) -> u64 {
    let rise = high.1.saturating_sub(low.1).max(1);
    let part = wanted.saturating_sub(low.1).min(rise);
    let width = u128::from(high.0 - low.0);
    // Fixed-point fractions of 2^-32 keep the product within 128 bits.
    let fraction = (part << 32) / rise;
    let at = low.0 + ((width * fraction) >> 32) as u64;
    at.clamp(low.0 + 1, high.0 - 1)
}

/// The amount of data in the fullest slice of the region, in percent of the
/// average; from a sample of the ranks if there are many.
fn densest_slice(case: &Case<'_>) -> Option<u64> {
    let region = case.region();
    let slice = |index| -> Range<u64> {
        contiguous::even_cut(&region, index, SLICES)
            ..contiguous::even_cut(&region, index + 1, SLICES)
    };
    let step = case.accesses.len().div_ceil(RANKS_SAMPLED).max(1);
    let data = |index| -> u128 {
        let of = |access: &Access| {
            let data = access.data_in(slice(index));
            u128::from(data.end - data.start)
        };
        case.accesses.iter().step_by(step).map(of).sum()
    };
    let parts: Vec<u128> = (0..SLICES).map(data).collect();
    let total: u128 = parts.iter().sum();
    let fullest = parts.into_iter().max()?;
    let percent = (fullest * 100 * u128::from(SLICES)).checked_div(total)?;
    u64::try_from(percent).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fixture, dense, strided};

    fn data_of(case: &Case<'_>, realm: &Realm) -> u64 {
        let file = realm.file();
        case.accesses
            .iter()
            .map(|access| access.data_in(file.clone()))
            .map(|data| data.end - data.start)
            .sum()
    }

    fn assert_balanced(fixture: &Fixture, owners: &[u32]) {
        let case = fixture.case();
        let share = case.bytes() / owners.len() as u64;
        for (rank, realm) in Balanced.realms(&case, owners) {
            let data = data_of(&case, &realm);
            let slack = share / 10 + u64::from(case.ranks());
            assert!(
                data.abs_diff(share) <= slack,
                "rank {rank} has {data} bytes of {share} in {:?}",
                realm.file()
            );
        }
    }

    #[test]
    fn distant_clusters_are_divided_evenly() {
        let mut accesses = vec![dense(0, 1_000_000); 2];
        accesses.extend([dense(1 << 45, 500_000), dense(1 << 50, 7_000)]);
        let fixture = Fixture::new(accesses);
        assert_balanced(&fixture, &[0, 1, 2, 3]);
        let fitness = Balanced.fitness(&fixture.case());
        assert_eq!(fitness.priority(), Some(60), "{fitness}");
    }

    #[test]
    fn evenly_spread_data_takes_few_probes() {
        let accesses: Vec<_> = (0..16)
            .map(|rank| strided(rank * 8, 8, 128, 8 << 20))
            .collect();
        let probes = std::cell::Cell::new(0);
        let total = data_below(&accesses, u64::MAX >> 1);
        let below = |byte| {
            probes.set(probes.get() + 1);
            data_below(&accesses, byte)
        };
        let mut search = Search {
            below,
            from: (0, 0),
            to: (total as u64, total),
        };
        for index in 1..64 {
            search.cut(total * index / 64, total / 64 / PARTS_OF_SHARE, 4096);
        }
        assert!(probes.get() <= 2 * 63, "{} probes", probes.get());
        assert_balanced(&Fixture::new(accesses), &[0, 3, 5, 9]);
    }

    #[test]
    fn one_byte_for_many_owners() {
        let fixture = Fixture::new(vec![dense(1000, 1); 3]);
        let realms = Balanced.realms(&fixture.case(), &[0, 1, 2]);
        let owners = realms.iter().filter(|(_, realm)| realm.owns(1000));
        assert_eq!(owners.count(), 1);
    }
}
