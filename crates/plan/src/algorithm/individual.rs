//! Individual: every rank moves its own data, as in an independent call.

use super::{Algorithm, Choices};
use crate::{Case, Client, Direction, LockProtocol, Plan, Verdict};

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
        let pattern = case.pattern();
        if !case.is_increasing() {
            return Verdict::suits(
                100,
                "some rank's bytes do not ascend: no window can hold them",
            );
        }
        if case.ranks() == 1 {
            return Verdict::suits(60, "there is only one rank");
        }
        let piece = pattern.piece_bytes;
        if piece == 0 {
            return Verdict::suits(90, "there is nothing to move");
        }
        match case.facts.client {
            Client::Library => of_servers(case, piece),
            Client::Kernel if meets_in_locks(case, piece) => Verdict::suits(
                5,
                format!("pieces of {piece} bytes of several nodes would share locks"),
            ),
            Client::Kernel if piece >= LARGE_PIECE_BYTES => Verdict::suits(
                80,
                format!("pieces of {piece} bytes on average go straight to the kernel"),
            ),
            Client::Kernel => Verdict::suits(10, format!("pieces of {piece} bytes are many calls")),
        }
    }

    fn plan(&self, _case: &Case<'_>, _choices: &Choices<'_>) -> Plan {
        Plan::Individual
    }
}

/// Where each process is a client of the servers, a call is a message to
/// them: it must carry enough to saturate the process.
fn of_servers(case: &Case<'_>, piece: u64) -> Verdict {
    match piece >= case.tuning.saturation_bytes && !meets_in_locks(case, piece) {
        true => Verdict::suits(
            75,
            format!("pieces of {piece} bytes saturate every process by themselves"),
        ),
        false => Verdict::suits(5, "the file system prefers few large requests"),
    }
}

/// Whether writes of different nodes would wait for each other's locks.
fn meets_in_locks(case: &Case<'_>, piece: u64) -> bool {
    case.direction == Direction::Write
        && case.facts.lock_protocol != LockProtocol::None
        && case.pattern().nodes > 1
        && piece < case.boundary()
}
