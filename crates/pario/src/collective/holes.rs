//! What a collective write may do with the holes between the ranks' data.

use pario_driver::Direction;
use pario_hints::{AccessMethod, Hints, Rmw, Sieving};
use pario_plan::{Members, Rounds};

use crate::{Mode, operation::Operation};

/// What may be done with the holes in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holes {
    /// Only the ranks' runs are written.
    Leave,
    /// They may be read and written back: there is no other writer.
    Rewrite,
    /// They may be read and written back under a lock.
    RewriteLocked,
    /// They may be read and written back once a lease shows that there is no other writer.
    RewriteLeased,
}

impl Holes {
    /// What may be done by several aggregators: unless each has its range of the
    /// file to itself, one could write back what another has overwritten.
    pub(super) fn between(self, rounds: &Rounds) -> Holes {
        match self {
            Holes::Rewrite | Holes::RewriteLeased if !have_own_ranges(rounds) => Holes::Leave,
            holes => holes,
        }
    }
}

/// Whether each aggregator has its range of the file to itself.
pub(super) fn have_own_ranges(rounds: &Rounds) -> bool {
    rounds.aggregators.len() == 1
        || rounds
            .aggregators
            .iter()
            .all(|aggregator| aggregator.members == Members::All)
}

/// Whether hints request that gaps between the ranks' data are moved along with it, however
/// long they are.
pub(super) fn is_sieve_requested(hints: &Hints, direction: Direction) -> bool {
    let (method, sieving) = match direction {
        Direction::Read => (hints.pario_read_method, hints.romio_ds_read),
        Direction::Write => (hints.pario_write_method, hints.romio_ds_write),
    };
    match method {
        Some(method) => method == AccessMethod::Sieve,
        None => sieving == Sieving::Enable,
    }
}

/// Semantics rule 1, for a call that all ranks take part in. `Rewrite` holds
/// only if no rank has another write under way.
pub(super) fn holes(operation: &Operation) -> Holes {
    let mode = operation.mode();
    let hints = operation.hints();
    let unwanted = match hints.pario_write_method {
        Some(method) => method != AccessMethod::Sieve,
        None => hints.romio_ds_write == Sieving::Disable,
    };
    if unwanted || !operation.can_read_back() {
        Holes::Leave
    } else if operation.rewrites_locked() {
        Holes::RewriteLocked
    } else if mode.contains(Mode::UNIQUE_OPEN) {
        Holes::Rewrite
    } else if hints.pario_rmw == Rmw::Automatic
        && operation.handle().facts().file_system.grants_leases()
    {
        Holes::RewriteLeased
    } else {
        Holes::Leave
    }
}
