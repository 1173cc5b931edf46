//! By-server: each server's stripes belong to an agent of its own, the rank
//! that has most of the server's data (paper 003, section 3.3), so that a
//! server hears requests from one process only, in ascending order.

use std::ops::Range;

use super::{Partition, cyclic::Circle, static_cyclic, stretches, stripes};
use crate::{Access, Case, Realm, Striping, Verdict};

/// One agent a server, or several that share its stripes.
#[derive(Debug)]
pub struct ByServer;

/// Stripes that are looked up for counting servers' data, of all ranks and
/// servers together. Past it, stripes are sampled, and where even one of each
/// rank and server is too many, ranks as well.
const LOOKUPS_MAX: u64 = 1 << 20;

/// Stripes of one server that are looked up for a rank at most.
const STRIPES_MAX: u64 = 1 << 12;

/// Stripes of one server that are looked up for a rank at least, unless it
/// has fewer: its ends and one between them.
const STRIPES_MIN: u64 = 3;

/// 2^64 divided by the golden ratio: multiples are spread evenly over 64
/// bits.
const GOLDEN_RATIO: u64 = 0x9e37_79b9_7f4a_7c15;

impl Partition for ByServer {
    fn name(&self) -> &'static str {
        "by-server"
    }

    fn suit(&self, case: &Case<'_>) -> Verdict {
        match case.facts.striping {
            None => Verdict::unfit("the file's servers are not known"),
            Some(_) => static_cyclic::suit(
                case,
                65,
                "each server hears one agent, which has most of its data",
            ),
        }
    }

    fn realms(&self, case: &Case<'_>, candidates: &[u32]) -> Vec<(u32, Realm)> {
        let striping = stripes(case, candidates);
        let region = case.region();
        let circle = Circle::new(striping.unit, striping.count);
        let mut realms = Vec::new();
        for Agents { server, ranks } in agents(case, striping) {
            for (file, rank) in turns(&region, striping, ranks.len() as u64).zip(ranks) {
                realms.push((rank, circle.realm(server, file)));
            }
        }
        realms
    }
}

/// The stretches of the file whose stripes each agent of a server takes, cut
/// between circles of stripes.
fn turns(
    region: &Range<u64>,
    striping: Striping,
    agents: u64,
) -> impl Iterator<Item = Range<u64>> + use<> {
    let region = region.clone();
    let circle = striping.unit.saturating_mul(striping.count);
    let cut = move |index: u64| match index {
        0 => region.start,
        index if index == agents => region.end,
        index => stretches::nearest(stretches::even_cut(&region, index, agents), circle)
            .clamp(region.start, region.end),
    };
    (0..agents).map(move |index| cut(index)..cut(index + 1))
}

/// The agents of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Agents {
    /// Which server.
    pub(crate) server: u64,
    /// Its agents, those with most of its data first.
    pub(crate) ranks: Vec<u32>,
}

/// The agents of each server that the region touches: the ranks with most of
/// its data that are not agents already, ties to the lowest rank. Where there
/// are fewer ranks than agents, ranks serve again when all have served.
pub(crate) fn agents(case: &Case<'_>, striping: Striping) -> Vec<Agents> {
    let region = case.region();
    let ranks = u64::from(case.ranks());
    let first = region.start / striping.unit;
    let touched = (region.end.div_ceil(striping.unit) - first).min(striping.count);
    let mut servers: Vec<u64> = (first..first + touched)
        .map(|stripe| stripe % striping.count)
        .collect();
    servers.sort_unstable();
    let most = (ranks / touched.max(1)).max(1);
    let wanted = u64::from(case.tuning.agents_per_server).clamp(1, most) as usize;
    let pairs = (ranks * touched).max(1);
    let stripes_max = (LOOKUPS_MAX / pairs).clamp(STRIPES_MIN, STRIPES_MAX);
    let step = (pairs.saturating_mul(STRIPES_MIN) / LOOKUPS_MAX).max(1);
    let mut taken = vec![false; case.accesses.len()];
    let agents = |server: u64| {
        if taken.iter().all(|taken| *taken) {
            taken.fill(false);
        }
        let free = || (0..case.ranks()).filter(|rank| !taken[*rank as usize]);
        let mut asked: Vec<u32> = free()
            .filter(|rank| (u64::from(*rank) + server).is_multiple_of(step))
            .collect();
        if asked.len() < wanted {
            asked = free().take(wanted).collect();
        }
        let count = |rank: u32| {
            let access = &case.accesses[rank as usize];
            bytes_on(access, striping, server, stripes_max)
        };
        let ranks = most_data(asked, wanted, count);
        ranks.iter().for_each(|rank| taken[*rank as usize] = true);
        Agents { server, ranks }
    };
    servers.into_iter().map(agents).collect()
}

/// The `wanted` ranks with most data, ties to the lowest. The ranks ascend.
fn most_data(ranks: Vec<u32>, wanted: usize, count: impl Fn(u32) -> u64) -> Vec<u32> {
    let mut best: Vec<(u64, u32)> = Vec::with_capacity(wanted + 1);
    for rank in ranks {
        let bytes = count(rank);
        let place = best.partition_point(|(most, _)| *most >= bytes);
        if place < wanted {
            best.insert(place, (bytes, rank));
            best.truncate(wanted);
        }
    }
    best.into_iter().map(|(_, rank)| rank).collect()
}

/// Data bytes of an access on one server: two look-ups a stripe, whatever the
/// number of pieces, and only as many stripes as it takes until the pattern
/// repeats. Where those are more than `stripes_max`, from that many of them.
fn bytes_on(access: &Access, striping: Striping, server: u64, stripes_max: u64) -> u64 {
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
    // The first and the last stripe may reach past the access; what lies
    // between them repeats with the pattern.
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
    // One stripe of each of `stripes_max` equal parts, at a scattered place:
    // even steps would fall in with the pattern's own.
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

/// After how many stripes of a server the pattern of an access lies the same
/// way in a stripe again.
fn period(access: &Access, striping: Striping) -> u64 {
    let extent = access.layout().extent().unsigned_abs();
    let circle = u128::from(striping.unit) * u128::from(striping.count);
    match extent {
        0 => u64::MAX,
        extent => extent / gcd(extent, (circle % u128::from(extent)) as u64),
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        b => gcd(b, a % b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fixture, dense, strided};

    const STRIPES: Striping = Striping { unit: 10, count: 3 };

    fn fixture(accesses: Vec<Access>) -> Fixture {
        let mut fixture = Fixture::new(accesses);
        fixture.facts.striping = Some(STRIPES);
        fixture
    }

    #[test]
    fn servers_data_is_counted_exactly() {
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
    fn samples_come_near() {
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

    #[test]
    fn agents_have_most_data_and_are_distinct() {
        // Rank 1 has most of servers 0 and 1; ranks 0 and 2 tie on server 1.
        let fixture = fixture(vec![
            dense(10, 10),
            dense(0, 20),
            dense(10, 10),
            dense(20, 1),
        ]);
        let chosen = agents(&fixture.case(), STRIPES);
        let ranks: Vec<_> = chosen.iter().map(|it| it.ranks.clone()).collect();
        assert_eq!(ranks, [[1], [0], [3]]);
    }

    #[test]
    fn several_agents_share_a_server_in_ascending_stretches() {
        let mut fixture = fixture(vec![dense(0, 300); 6]);
        fixture.tuning.agents_per_server = 2;
        let realms = ByServer.realms(&fixture.case(), &[0]);
        let mut ranks: Vec<u32> = realms.iter().map(|(rank, _)| *rank).collect();
        assert_eq!(realms.len(), 6);
        ranks.sort_unstable();
        assert_eq!(ranks, [0, 1, 2, 3, 4, 5]);
        for byte in 0..300 {
            let owners: Vec<_> = realms.iter().filter(|(_, it)| it.owns(byte)).collect();
            assert_eq!(owners.len(), 1, "byte {byte}");
        }
        assert!(realms[0].1.file().end <= realms[1].1.file().start);
    }

    #[test]
    fn few_ranks_serve_again() {
        let fixture = fixture(vec![dense(0, 300); 2]);
        let ranks: Vec<_> = agents(&fixture.case(), STRIPES)
            .into_iter()
            .flat_map(|it| it.ranks)
            .collect();
        assert_eq!(ranks, [0, 1, 0]);
    }
}
