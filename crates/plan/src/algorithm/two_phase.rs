//! Two-phase I/O: aggregators own realms and move them in large windows, after
//! or before an exchange of data.

use super::{Algorithm, Decisions, descending_offsets, individual::contends_for_locks};
use crate::{Aggregator, Case, Fitness, Members, Plan, Rounds};

/// Exchange, then large transfers (or the reverse for reads).
#[derive(Debug)]
pub struct TwoPhase;

impl Algorithm for TwoPhase {
    fn name(&self) -> &'static str {
        "two-phase"
    }

    fn fitness(&self, case: &Case<'_>) -> Fitness {
        if let Some(unfit) = descending_offsets(case) {
            return unfit;
        }
        Fitness::suits(
            50,
            match contends_for_locks(case, case.pattern().piece_bytes) {
                true => "aggregators write for all ranks, so that nodes do not contend for locks",
                false => "small pieces of many ranks are merged into large windows",
            },
        )
    }

    fn plan(&self, case: &Case<'_>, choices: &Decisions<'_>) -> Plan {
        Plan::Rounds(rounds(case, choices))
    }
}

/// Rounds over the realms of the partition, with the data of all ranks.
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
                turn: None,
            })
            .collect(),
        window_bytes,
        writer,
    }
}
