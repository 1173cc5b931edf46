//! How a collective write passes the gate of its file's writers.
//!
//! No rank waits for other ranks while it keeps its own writers out, unless
//! all ranks are past their gates: calls in the background and calls in the
//! foreground would otherwise wait for each other, each holding one rank's
//! gate, and a rank's independent write would wait for ranks that have not
//! made the collective call yet.

use pario_driver::Direction;
use pario_plan::Rounds;
use pario_transport::Transport;

use super::planning::{self, Holes};
use crate::{Result, gate::Pass, operation::Operation};

/// What a call may do while it has its pass.
pub(super) struct Entrance {
    /// Reads need none.
    _pass: Option<Pass>,
    pub(super) holes: Holes,
}

impl Entrance {
    /// For a call that leaves holes as they are.
    pub(super) fn ordinary(operation: &Operation) -> Entrance {
        Entrance {
            _pass: match operation.direction() {
                Direction::Read => None,
                Direction::Write => Some(operation.gate().enter()),
            },
            holes: Holes::Leave,
        }
    }

    /// For a call through windows: alone on all ranks if holes are to be
    /// rewritten, which they are not if some rank has another write under
    /// way. All ranks have made the call when they come here.
    pub(super) fn of_windows(
        comm: &dyn Transport,
        operation: &Operation,
        rounds: &Rounds,
    ) -> Result<Entrance> {
        let ordinary = Entrance::ordinary;
        if operation.direction() == Direction::Read {
            return Ok(ordinary(operation));
        }
        let holes = planning::holes(operation).between(rounds);
        if holes != Holes::Rewrite {
            return Ok(Entrance {
                holes,
                ..ordinary(operation)
            });
        }
        let pass = operation.gate().enter_alone();
        let all = comm.all_gather(&[u8::from(pass.is_some())])?;
        if all.iter().all(|alone| alone.as_slice() == [1]) {
            return Ok(Entrance { _pass: pass, holes });
        }
        drop(pass);
        Ok(ordinary(operation))
    }
}
