//! The amount of an access's data on a server.

use std::ops::Range;

use crate::{Access, Striping, number::gcd};

/// 2^64 divided by the golden ratio: its multiples are spread evenly over 64
/// bits.
const GOLDEN_RATIO: u64 = 0x9e37_79b9_7f4a_7c15;

/// Data bytes of an access on one server. Takes two look-ups per stripe,
/// whatever the number of pieces, for only as many stripes as it takes the
/// pattern to repeat; if those are more than `stripes_max`, estimates from a
/// sample of that many.
pub(super) fn bytes_on(access: &Access, striping: Striping, server: u64, stripes_max: u64) -> u64 {
    let span = access.span();
    if span.is_empty() {
        return 0;
    }
    let Striping { unit, count } = striping;
    let first = span.start / unit;
    let end = span.end.div_ceil(unit);
    let ahead = (server + count - first % count) % count;
    let stripes = (end - first).saturating_sub(ahead).div_ceil(count);
    let on_stripe = |index: u64| {
        let start = (first + ahead + index * count).saturating_mul(unit);
        let data = access.data_in(start..start.saturating_add(unit));
        data.end - data.start
    };
    let sum = |indices: Range<u64>| indices.map(on_stripe).sum::<u64>();
    // The first and the last stripe may extend past the access; those in
    // between repeat with the pattern.
    let inner = stripes.saturating_sub(2);
    let period = period(access, striping);
    if inner == 0 || (period >= inner && stripes <= stripes_max) {
        return sum(0..stripes);
    }
    let ends = on_stripe(0) + on_stripe(stripes - 1);
    if period <= stripes_max {
        let (whole, rest) = (inner / period, inner % period);
        let repeats = match whole {
            0 => 0,
            whole => sum(1..1 + period).saturating_mul(whole),
        };
        return ends + repeats + sum(1..1 + rest);
    }
    // One stripe from each of `stripes_max` equal parts, at a scattered
    // position: even steps could resonate with the pattern.
    let sampled = |sample: u64| {
        let scattered = u128::from(sample.wrapping_mul(GOLDEN_RATIO));
        let place = (u128::from(sample) << 64) + scattered;
        let index = ((place / u128::from(stripes_max)) * u128::from(inner)) >> 64;
        u128::from(on_stripe(1 + index as u64))
    };
    let sampled: u128 = (0..stripes_max).map(sampled).sum();
    let scaled = sampled * u128::from(inner) / u128::from(stripes_max);
    ends + scaled.min(u128::from(access.len())) as u64
}

/// Number of a server's stripes after which the access has the same position
/// relative to a stripe again.
fn period(access: &Access, striping: Striping) -> u64 {
    let extent = access.layout().extent().unsigned_abs();
    let cycle = u128::from(striping.unit) * u128::from(striping.count);
    match extent {
        0 => u64::MAX,
        extent => extent / gcd(extent, (cycle % u128::from(extent)) as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{dense, strided};

    const STRIPES: Striping = Striping { unit: 10, count: 3 };

    #[test]
    fn data_on_a_server_is_counted_exactly() {
        let accesses = [
            dense(7, 1000),
            strided(3, 2, 7, 600),
            strided(1, 4, 30, 400),
        ];
        for access in accesses {
            for server in 0..3 {
                let on_server = |index: &u64| STRIPES.server_of(access.offset_of(*index)) == server;
                let expected = (0..access.len()).filter(on_server).count() as u64;
                // Their patterns repeat after seven stripes at most.
                for stripes_max in [7, 1000] {
                    assert_eq!(bytes_on(&access, STRIPES, server, stripes_max), expected);
                }
            }
        }
    }

    #[test]
    fn samples_are_close() {
        // This pattern repeats after 1009 stripes.
        let access = strided(5, 500, 1009, 3_000_000);
        for server in 0..3 {
            let exact = bytes_on(&access, STRIPES, server, u64::MAX);
            let sampled = bytes_on(&access, STRIPES, server, 400);
            assert!(
                exact.abs_diff(sampled) < exact / 10,
                "{sampled} for {exact}"
            );
        }
    }
}
