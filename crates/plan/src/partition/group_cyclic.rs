//! Group-cyclic: aggregators form groups as large as the number of servers, the
//! region is divided among the groups, and stripes are assigned round-robin
//! within a group (Liao 2008, section III-C). An aggregator accesses only one
//! server, where its stripes are contiguous.

use super::{Partition, cyclic, static_cyclic, stripes};
use crate::{Case, Fitness, Realm};

/// Static-cyclic within groups of aggregators.
#[derive(Debug)]
pub struct GroupCyclic;

impl Partition for GroupCyclic {
    fn name(&self) -> &'static str {
        "group-cyclic"
    }

    fn fitness(&self, case: &Case<'_>) -> Fitness {
        static_cyclic::fitness(
            case,
            80,
            "servers manage the locks: each aggregator writes contiguous stripes on one server",
        )
    }

    fn realms(&self, case: &Case<'_>, candidates: &[u32]) -> Vec<(u32, Realm)> {
        let region = case.region();
        let striping = stripes(case, candidates);
        let first_stripe = region.start / striping.unit;
        let stripes = region.end.div_ceil(striping.unit) - first_stripe;
        let owners = from_starting_aggregator(candidates, first_stripe);
        // The region is divided in proportion to the group sizes, since the
        // last group may be smaller.
        let cut = |members_before: usize| {
            let share = u128::from(stripes) * members_before as u128 / owners.len() as u128;
            striping
                .unit
                .saturating_mul(first_stripe + share as u64)
                .clamp(region.start, region.end)
        };
        let group_size = usize::try_from(striping.count).unwrap_or(usize::MAX);
        let mut realms = Vec::with_capacity(owners.len());
        let mut before = 0;
        for group in owners.chunks(group_size) {
            let after = before + group.len();
            let file = cut(before)..match after == owners.len() {
                true => region.end,
                false => cut(after),
            };
            // Count from the region's first stripe, not from the group's, so
            // that all groups use the servers in the same order.
            realms.extend(cyclic::assign(striping.unit, first_stripe, group, &file));
            before = after;
        }
        realms
    }
}

/// The candidates in round-robin order, starting with aggregator `first_stripe
/// mod n` (Liao 2008, equation 1).
fn from_starting_aggregator(candidates: &[u32], first_stripe: u64) -> Vec<u32> {
    let mut owners = candidates.to_vec();
    let start = first_stripe % owners.len().max(1) as u64;
    owners.rotate_left(start as usize);
    owners
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Striping,
        partition::StaticCyclic,
        testing::{Fixture, dense},
    };

    fn fixture(start: u64, len: u64, count: u64) -> Fixture {
        let mut fixture = Fixture::new(vec![dense(start, len); 8]);
        fixture.facts.striping = Some(Striping { unit: 10, count });
        fixture
    }

    fn owner(realms: &[(u32, Realm)], byte: u64) -> u32 {
        let mut owners = realms.iter().filter(|(_, realm)| realm.owns(byte));
        owners.next().unwrap().0
    }

    #[test]
    fn figure_5_of_the_paper() {
        // Eight aggregators, four servers, a region that starts in stripe 7:
        // group 0 is 7, 0, 1, 2, and group 1 is 3, 4, 5, 6.
        let fixture = fixture(75, 165, 4);
        let realms = GroupCyclic.realms(&fixture.case(), &[0, 1, 2, 3, 4, 5, 6, 7]);
        let ranks: Vec<u32> = realms.iter().map(|(rank, _)| *rank).collect();
        assert_eq!(ranks, [7, 0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(owner(&realms, 75), 7);
        // P0 precedes P4 on server 0, and each uses only one server.
        for byte in 75..240 {
            let server = (byte / 10 % 4) as u32;
            assert_eq!(owner(&realms, byte) % 4, server, "byte {byte}");
        }
        let last_of = |rank: u32| (75..240).rfind(|byte| owner(&realms, *byte) == rank);
        let first_of = |rank: u32| (75..240).find(|byte| owner(&realms, *byte) == rank);
        assert!(last_of(0) < first_of(4));
    }

    #[test]
    fn equals_static_cyclic_with_no_more_aggregators_than_servers() {
        for (start, count) in [(0, 8), (33, 8), (170, 9)] {
            let fixture = fixture(start, 500, count);
            let candidates = [0, 1, 2, 3, 4, 5, 6, 7];
            let grouped = GroupCyclic.realms(&fixture.case(), &candidates);
            let plain = StaticCyclic.realms(&fixture.case(), &candidates);
            for byte in start..start + 500 {
                assert_eq!(owner(&grouped, byte), owner(&plain, byte), "byte {byte}");
            }
        }
    }
}
