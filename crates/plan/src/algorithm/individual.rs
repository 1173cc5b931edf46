//! Individual: every rank moves its own data, as in an independent call.

use super::{Algorithm, Choices};
use crate::{Case, Client, Pattern, Plan, Verdict};

/// Every rank for itself.
#[derive(Debug)]
pub struct Individual;

/// Pieces of this size cost a system call less than they cost to exchange,
/// where the file system's client is the node's kernel.
const LARGE_PIECE_BYTES: u64 = 4096;

impl Algorithm for Individual {
    fn name(&self) -> &'static str {
        "individual"
    }

    fn suit(&self, case: &Case<'_>) -> Verdict {
        let pattern = Pattern::of(case);
        if !case.is_increasing() {
            return Verdict::suits(
                100,
                "some rank's bytes do not ascend: no window can hold them",
            );
        }
        if case.ranks() == 1 {
            return Verdict::suits(60, "there is only one rank");
        }
        if case.facts.client == Client::Library {
            return Verdict::suits(5, "the file system prefers few large requests");
        }
        match pattern.piece_bytes {
            0 => Verdict::suits(90, "there is nothing to move"),
            LARGE_PIECE_BYTES.. => Verdict::suits(
                80,
                format!(
                    "pieces of {} bytes on average go straight to the kernel",
                    pattern.piece_bytes
                ),
            ),
            small => Verdict::suits(10, format!("pieces of {small} bytes are many calls")),
        }
    }

    fn plan(&self, _case: &Case<'_>, _choices: &Choices<'_>) -> Plan {
        Plan::Individual
    }
}
