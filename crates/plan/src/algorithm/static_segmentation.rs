//! Static segmentation (Chaarawi 2011): ranks are divided into groups, each with
//! an aggregator. In every cycle, each rank of a group contributes the next
//! segment of its data; all segments have the same length.

use super::{Algorithm, Decisions, descending_offsets, groups};
use crate::{Access, Case, Client, Fitness, Plan, Segments};

/// Every rank contributes equal segments to each cycle.
#[derive(Debug)]
pub struct StaticSegmentation;

impl Algorithm for StaticSegmentation {
    fn name(&self) -> &'static str {
        "static-segmentation"
    }

    fn fitness(&self, case: &Case<'_>) -> Fitness {
        if let Some(unfit) = descending_offsets(case) {
            return unfit;
        }
        let pattern = case.pattern();
        let mut lengths = case.accesses.iter().map(Access::len);
        let first = lengths.next().unwrap_or(0);
        if !lengths.all(|len| len == first) {
            return Fitness::suits(
                10,
                "ranks move different amounts of data: cycles would not be full",
            );
        }
        match (case.facts.client, pattern.is_interleaved) {
            (Client::Local | Client::Kernel, _) => Fitness::suits(
                12,
                "segments would be copied through aggregators that the kernel does not need",
            ),
            (Client::Library, true) => {
                Fitness::suits(15, "interleaved segments of a cycle leave gaps in the file")
            }
            (Client::Library, false) => Fitness::suits(
                40,
                "equal amounts per rank, not interleaved: every cycle is full",
            ),
        }
    }

    fn plan(&self, case: &Case<'_>, choices: &Decisions<'_>) -> Plan {
        let groups = groups::assign(case.facts, choices.aggregators);
        let largest = groups.iter().map(|group| group.members.len()).max();
        let segment_bytes = (case.tuning.buffer_bytes / largest.unwrap_or(1).max(1) as u64).max(1);
        let longest = case.accesses.iter().map(Access::len).max();
        Plan::Segments(Segments {
            groups,
            segment_bytes,
            cycles: longest.unwrap_or(0).div_ceil(segment_bytes),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        partition::Even,
        testing::{Fixture, dense},
    };

    #[test]
    fn cycles_fill_the_buffer() {
        let mut fixture = Fixture::new((0..6).map(|rank| dense(rank * 100, 90)).collect());
        fixture.tuning.buffer_bytes = 30;
        let choices = Decisions {
            partition: &Even,
            aggregators: &[0, 3],
        };
        let Plan::Segments(plan) = StaticSegmentation.plan(&fixture.case(), &choices) else {
            panic!("static segmentation plans segments");
        };
        assert_eq!((plan.segment_bytes, plan.cycles), (10, 9));
        assert_eq!(plan.groups[1].members, [3, 4, 5]);
    }
}
