//! Group-cyclic: aggregators form groups as large as the number of servers, the
//! region is divided among the groups, and stripes are assigned round-robin
//! within a group (Liao 2008, section III-C). An aggregator accesses only one
//! server, where its stripes are contiguous. With fewer aggregators than servers,
//! each has as few servers as possible. If the striping changes within the
//! region, each part with one striping is divided by itself.
//!
//! A server that has several stripes of a cycle (overstriping) has an object, and
//! with it locks, for each of them. So groups are as large as the number of
//! stripes, up to which no two aggregators share an object, and the stripes of one
//! server belong to one aggregator, or to several that have no other server.

use std::ops::Range;

use super::{Partition, assumed_stripes, cyclic, static_cyclic};
use crate::{Case, Fitness, Realm, Stripes};

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
        let sections = case.facts.sections(case.region());
        let divided = sections.into_iter().flat_map(|(file, stripes)| {
            let stripes = stripes.unwrap_or_else(|| assumed_stripes(case, candidates));
            let mut owners =
                from_starting_aggregator(candidates, file.start / stripes.striping.unit);
            if case.spares_locks() {
                // Parts of the file with fewer stripes have fewer aggregators.
                owners.truncate(group_size(&stripes));
            }
            divide(&file, &stripes, &owners)
        });
        divided.collect()
    }
}

/// As many aggregators as a cycle has stripes.
fn group_size(stripes: &Stripes) -> usize {
    usize::try_from(stripes.striping.count).unwrap_or(usize::MAX)
}

/// Divides a range of the file with one striping.
fn divide(region: &Range<u64>, stripes: &Stripes, owners: &[u32]) -> Vec<(u32, Realm)> {
    let striping = stripes.striping;
    let first_stripe = region.start / striping.unit;
    let stripe_count = region.end.div_ceil(striping.unit) - first_stripe;
    // The region is divided in proportion to the group sizes, since the
    // last group may be smaller.
    let cut = |members_before: usize| {
        let share = u128::from(stripe_count) * members_before as u128 / owners.len() as u128;
        striping
            .unit
            .saturating_mul(first_stripe + share as u64)
            .clamp(region.start, region.end)
    };
    let mut realms = Vec::with_capacity(owners.len());
    let mut before = 0;
    for group in owners.chunks(group_size(stripes)) {
        let after = before + group.len();
        let file = cut(before)..match after == owners.len() {
            true => region.end,
            false => cut(after),
        };
        // Count from the region's first stripe, not from the group's, so
        // that all groups use the servers in the same order.
        realms.extend(cyclic::assign_servers(stripes, first_stripe, group, &file));
        before = after;
    }
    realms
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
    fn few_aggregators_have_few_servers_each() {
        for (start, servers, count) in [(0, 4, 3), (75, 7, 3), (30, 5, 2), (0, 9, 4)] {
            let fixture = fixture(start, 900, servers);
            let owners: Vec<u32> = (0..count).collect();
            let realms = GroupCyclic.realms(&fixture.case(), &owners);
            for rank in owners {
                let bytes = (start..start + 900).filter(|byte| owner(&realms, *byte) == rank);
                let mut used: Vec<u64> = bytes.map(|byte| byte / 10 % servers).collect();
                used.sort_unstable();
                used.dedup();
                let fewest = servers.div_ceil(count.into());
                assert!(used.len() as u64 <= fewest, "rank {rank}: {used:?}");
            }
        }
    }

    #[test]
    fn stripes_of_one_server_stay_together() {
        let owners_of = |servers: &[u32], aggregators: u32| -> Vec<u32> {
            let mut fixture = fixture(0, 400, 1);
            fixture.overstripe(10, servers);
            let owners: Vec<u32> = (0..aggregators).collect();
            let realms = GroupCyclic.realms(&fixture.case(), &owners);
            let stripes = 0..servers.len() as u64;
            for byte in 0..400 {
                let stripe = byte / 10 % stripes.end;
                let first_of_group = byte / 10 * 10;
                assert_eq!(
                    owner(&realms, byte),
                    owner(&realms, first_of_group),
                    "{stripe}"
                );
            }
            stripes.map(|stripe| owner(&realms, stripe * 10)).collect()
        };
        let pairs = [7, 8, 9, 7, 8, 9];
        assert_eq!(owners_of(&pairs, 1), [0, 0, 0, 0, 0, 0]);
        assert_eq!(owners_of(&pairs, 2), [0, 1, 0, 0, 1, 0]);
        assert_eq!(owners_of(&pairs, 3), [0, 1, 2, 0, 1, 2]);
        // Beyond that, servers have several aggregators, but no stripe has.
        assert_eq!(owners_of(&pairs, 4), [0, 1, 2, 3, 1, 2]);
        assert_eq!(owners_of(&pairs, 6), [0, 1, 2, 3, 4, 5]);
        assert_eq!(owners_of(&[1, 1, 1, 2], 3), [0, 2, 0, 1]);
    }

    #[test]
    fn each_component_is_divided_by_itself() {
        let component = |file, unit, count| pario_types::Component {
            file,
            striping: Striping { unit, count },
            storage: pario_types::Storage::Unknown,
        };
        let mut fixture = fixture(0, 400, 4);
        fixture.facts.placement = crate::Placement::new(vec![
            component(0..100, 50, 1),
            component(100..u64::MAX, 10, 4),
        ]);
        let realms = GroupCyclic.realms(&fixture.case(), &[0, 1, 2, 3]);
        // One server at first: four groups of one, none of which share a stripe.
        assert_eq!(owner(&realms, 0), owner(&realms, 49));
        assert_ne!(owner(&realms, 49), owner(&realms, 50));
        for byte in 100..400 {
            assert_eq!(owner(&realms, byte), owner(&realms, byte / 10 * 10));
            if byte >= 140 {
                assert_eq!(owner(&realms, byte), owner(&realms, byte - 40));
            }
        }
        // Where its server manages locks, one writer, unless more are requested.
        fixture.facts.lock_protocol = crate::LockProtocol::Server;
        let sparing = GroupCyclic.realms(&fixture.case(), &[0, 1, 2, 3]);
        assert_eq!(owner(&sparing, 49), owner(&sparing, 50));
        for byte in 100..400 {
            assert_eq!(owner(&sparing, byte), owner(&realms, byte));
        }
        fixture.tuning.aggregators = Some(4);
        let asked = GroupCyclic.realms(&fixture.case(), &[0, 1, 2, 3]);
        assert_ne!(owner(&asked, 49), owner(&asked, 50));
    }

    #[test]
    fn equals_static_cyclic_with_no_more_aggregators_than_servers() {
        for (start, count) in [(0, 8), (33, 8), (170, 16)] {
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
