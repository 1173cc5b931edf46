//! Two-phase: aggregators own realms, data is exchanged, large windows are
//! moved.

use super::{Algorithm, Decisions, not_ascending};
use crate::{Aggregator, Case, Fitness, Members, Plan, Rounds};

/// Exchange, then large transfers (or the reverse).
#[derive(Debug)]
pub struct TwoPhase;

impl Algorithm for TwoPhase {
    fn name(&self) -> &'static str {
        "two-phase"
    }

    fn suit(&self, case: &Case<'_>) -> Fitness {
        if let Some(unfit) = not_ascending(case) {
            return unfit;
        }
        Fitness::suits(50, "small pieces of many ranks become large windows")
    }

    fn plan(&self, case: &Case<'_>, choices: &Decisions<'_>) -> Plan {
        Plan::Rounds(rounds(case, choices))
    }
}

/// Realms of the partition, every rank's data in them.
pub(super) fn rounds(case: &Case<'_>, choices: &Decisions<'_>) -> Rounds {
    let realms = choices.partition.realms(case, choices.aggregators);
    let (writer, window_bytes) = case.windows();
    Rounds {
        aggregators: realms
            .into_iter()
            .map(|(rank, realm)| Aggregator {
                rank,
                realm,
                members: Members::All,
                delay_us: 0,
            })
            .collect(),
        window_bytes,
        writer,
    }
}
