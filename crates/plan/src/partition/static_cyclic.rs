//! Static-cyclic: lock-sized blocks of the whole file assigned round-robin
//! (Liao 2008, section III-B). Block `i` belongs to aggregator `i mod n` in
//! every call.

use super::{Partition, cyclic};
use crate::{Case, Direction, Fitness, LockProtocol, Realm};

/// Blocks `i`, `i + n`, `i + 2n`, ... for aggregator `i`.
#[derive(Debug)]
pub struct StaticCyclic;

impl Partition for StaticCyclic {
    fn name(&self) -> &'static str {
        "static-cyclic"
    }

    fn fitness(&self, case: &Case<'_>) -> Fitness {
        if case.facts.sections(case.region()).len() > 1 {
            return Fitness::unfit("the striping changes within the accessed part of the file");
        }
        fitness(
            case,
            70,
            "each aggregator uses the same servers and stripes in every call",
        )
    }

    fn realms(&self, case: &Case<'_>, candidates: &[u32]) -> Vec<(u32, Realm)> {
        let region = case.region();
        cyclic::assign(case.boundary_at(region.start), 0, candidates, &region)
    }
}

/// Fitness of all cyclic partitions; `gain` is their advantage where servers
/// manage locks.
pub(super) fn fitness(case: &Case<'_>, priority: u8, gain: &'static str) -> Fitness {
    match (case.direction, case.facts.lock_protocol) {
        (Direction::Read, _) => Fitness::suits(
            2,
            "the file system's read-ahead would belong to another aggregator",
        ),
        (Direction::Write, LockProtocol::Server) => Fitness::suits(priority, gain),
        (Direction::Write, LockProtocol::Token) => {
            Fitness::suits(4, "every block would need a lock from another token holder")
        }
        (Direction::Write, LockProtocol::None) => Fitness::suits(
            8,
            "no locks to separate: long contiguous realms are cheaper",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Striping,
        testing::{Fixture, dense},
    };

    #[test]
    fn blocks_have_the_same_owner_in_every_call() {
        let owner = |start: u64, byte: u64| {
            let mut fixture = Fixture::new(vec![dense(start, 100); 4]);
            fixture.facts.striping = Some(Striping { unit: 10, count: 2 });
            let realms = StaticCyclic.realms(&fixture.case(), &[0, 1, 2, 3]);
            let mut owners = realms.into_iter().filter(|(_, realm)| realm.owns(byte));
            owners.next().unwrap().0
        };
        for start in 0..60 {
            assert_eq!(owner(start, 75), 3, "from {start}");
        }
    }
}
