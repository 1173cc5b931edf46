//! Two-phase: aggregators own realms, data is exchanged, large windows are
//! moved.

use super::{Algorithm, Choices};
use crate::{Aggregator, Case, Client, Issuer, Members, Plan, Rounds, Verdict};

/// Exchange, then large transfers (or the reverse).
#[derive(Debug)]
pub struct TwoPhase;

impl Algorithm for TwoPhase {
    fn name(&self) -> &'static str {
        "two-phase"
    }

    fn suit(&self, case: &Case<'_>) -> Verdict {
        if !case.is_increasing() {
            return Verdict::unfit("some rank's bytes do not ascend: no window can hold them");
        }
        Verdict::suits(50, "small pieces of many ranks become large windows")
    }

    fn plan(&self, case: &Case<'_>, choices: &Choices<'_>) -> Plan {
        Plan::Rounds(rounds(case, choices))
    }
}

/// Realms of the partition, every rank's data in them.
pub(crate) fn rounds(case: &Case<'_>, choices: &Choices<'_>) -> Rounds {
    let realms = choices.partition.realms(case, choices.aggregators);
    let one_node = case.facts.nodes.windows(2).all(|pair| pair[0] == pair[1]);
    let (issuer, window_bytes) = match (one_node, case.facts.client) {
        (true, Client::Kernel) => (Issuer::Anyone, case.tuning.slice_bytes),
        _ => (Issuer::Aggregator, case.tuning.buffer_bytes),
    };
    Rounds {
        aggregators: realms
            .into_iter()
            .map(|(rank, realm)| Aggregator {
                rank,
                realm,
                members: Members::All,
            })
            .collect(),
        window_bytes: window_bytes.max(1),
        issuer,
    }
}
