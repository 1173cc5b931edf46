//! Static-cyclic: lock-sized blocks of the whole file dealt out in turn
//! (Liao 2008, section III-B). Block `i` is always aggregator `i mod n`'s,
//! from call to call.

use super::{Partition, cyclic};
use crate::{Case, Direction, Fitness, LockProtocol, Realm};

/// Blocks `i`, `i + n`, `i + 2n`, ... for aggregator `i`.
#[derive(Debug)]
pub struct StaticCyclic;

impl Partition for StaticCyclic {
    fn name(&self) -> &'static str {
        "static-cyclic"
    }

    fn suit(&self, case: &Case<'_>) -> Fitness {
        suit(
            case,
            70,
            "each aggregator keeps to its servers and stripes from call to call",
        )
    }

    fn realms(&self, case: &Case<'_>, candidates: &[u32]) -> Vec<(u32, Realm)> {
        cyclic::deal(case.boundary(), 0, candidates, &case.region())
    }
}

/// What all cyclic partitions say, with what they gain where servers manage
/// locks.
pub(super) fn suit(case: &Case<'_>, priority: u8, gain: &'static str) -> Fitness {
    match (case.direction, case.facts.lock_protocol) {
        (Direction::Read, _) => Fitness::suits(
            2,
            "what the file system reads ahead would belong to another aggregator",
        ),
        (Direction::Write, LockProtocol::Server) => Fitness::suits(priority, gain),
        (Direction::Write, LockProtocol::Token) => {
            Fitness::suits(4, "every block would ask another token holder for its lock")
        }
        (Direction::Write, LockProtocol::None) => {
            Fitness::suits(8, "no locks to keep apart: long stretches are cheaper")
        }
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
    fn blocks_keep_their_owner_from_call_to_call() {
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
