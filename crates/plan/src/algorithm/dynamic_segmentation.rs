//! Dynamic segmentation (Chaarawi 2011): ranks are divided into groups, each
//! with an aggregator that moves the group's data window by window in file
//! order. A rank contributes whatever data it has in a window; groups do not
//! exchange data with each other.

use super::{Algorithm, Decisions, descending_offsets, groups};
use crate::{
    Aggregator, Case, Client, Direction, Fitness, Group, LockProtocol, Members, Plan, Realm, Rounds,
};

/// Each group moves its own data through one aggregator.
#[derive(Debug)]
pub struct DynamicSegmentation;

impl Algorithm for DynamicSegmentation {
    fn name(&self) -> &'static str {
        "dynamic-segmentation"
    }

    fn fitness(&self, case: &Case<'_>) -> Fitness {
        if let Some(unfit) = descending_offsets(case) {
            return unfit;
        }
        let piece = case.pattern().piece_bytes;
        let boundary = case.boundary();
        match (case.facts.client, case.direction, case.facts.lock_protocol) {
            (Client::Local | Client::Kernel, _, _) => Fitness::suits(
                14,
                "one window can serve all ranks, groups would need one each",
            ),
            (_, Direction::Write, LockProtocol::Server | LockProtocol::Token) => {
                Fitness::suits(20, "groups would contend for locks")
            }
            _ if piece >= boundary => Fitness::suits(
                60,
                format!("pieces of {piece} bytes need not be merged with data of other groups"),
            ),
            _ => Fitness::suits(
                25,
                format!("pieces of {piece} bytes would leave every group's windows full of holes"),
            ),
        }
    }

    fn plan(&self, case: &Case<'_>, choices: &Decisions<'_>) -> Plan {
        let groups = groups::assign(case.facts, choices.aggregators);
        let aggregator = |group: Group| Aggregator {
            rank: group.aggregator,
            realm: Realm::contiguous(region_of(case, &group.members)),
            members: Members::Some(group.members),
            turn: None,
        };
        let (writer, window_bytes) = case.windows();
        Plan::Rounds(Rounds {
            aggregators: groups.into_iter().map(aggregator).collect(),
            window_bytes,
            writer,
        })
    }
}

/// From the first byte of any member to the end of the last.
fn region_of(case: &Case<'_>, members: &[u32]) -> std::ops::Range<u64> {
    members
        .iter()
        .map(|rank| case.accesses[*rank as usize].span())
        .filter(|span| !span.is_empty())
        .reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
        .unwrap_or(0..0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        partition::Even,
        testing::{Fixture, dense, strided},
    };

    #[test]
    fn groups_move_their_own_regions() {
        let mut accesses: Vec<_> = (0..4).map(|rank| strided(rank * 8, 8, 32, 80)).collect();
        accesses.push(dense(0, 0));
        let fixture = Fixture::new(accesses);
        let choices = Decisions {
            partition: &Even,
            aggregators: &[0, 2],
        };
        let Plan::Rounds(plan) = DynamicSegmentation.plan(&fixture.case(), &choices) else {
            panic!("dynamic segmentation plans rounds");
        };
        let [first, second] = &plan.aggregators[..] else {
            panic!("two aggregators");
        };
        assert_eq!(first.members, Members::Some(vec![0, 1]));
        assert_eq!(second.members, Members::Some(vec![2, 3, 4]));
        assert_eq!(first.realm.file(), 0..9 * 32 + 16);
        assert_eq!(second.realm.file(), 16..9 * 32 + 32);
    }
}
