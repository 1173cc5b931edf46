//! What a collective write may do with the holes between the ranks' data.

use pario_driver::{Direction, FileSystem};
use pario_hints::{AccessMethod, Hints, Rmw, Sieving};
use pario_plan::{Members, Rewriting, Rounds};

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
    let hints = operation.hints();
    if is_rewriting_disabled(hints) || !operation.can_read_back() {
        Holes::Leave
    } else if operation.rewrites_locked() {
        Holes::RewriteLocked
    } else if operation.mode().contains(Mode::UNIQUE_OPEN) {
        Holes::Rewrite
    } else if may_lease(hints, &operation.handle().facts().file_system) {
        Holes::RewriteLeased
    } else {
        Holes::Leave
    }
}

/// The same for a file that is open for reading and writing by ranks on so many nodes, and not with
/// `UNIQUE_OPEN`: for explanations of calls that are not made.
pub fn rewriting(hints: &Hints, file_system: &FileSystem, nodes: usize) -> Rewriting {
    let locks = file_system.rewrites_under_locks() || *file_system == FileSystem::Nfs && nodes > 1;
    match hints.pario_rmw {
        _ if is_rewriting_disabled(hints) => Rewriting::Forbidden,
        Rmw::Locked => Rewriting::Allowed,
        Rmw::Automatic if locks => Rewriting::Allowed,
        _ if may_lease(hints, file_system) => Rewriting::WithLease,
        _ => Rewriting::Forbidden,
    }
}

/// Whether hints exclude that gaps are written along with the data.
fn is_rewriting_disabled(hints: &Hints) -> bool {
    match hints.pario_write_method {
        Some(method) => method != AccessMethod::Sieve,
        None => hints.romio_ds_write == Sieving::Disable,
    }
}

/// Whether a lease may be taken.
fn may_lease(hints: &Hints, file_system: &FileSystem) -> bool {
    hints.pario_rmw == Rmw::Automatic && file_system.grants_leases()
}

#[cfg(test)]
mod tests {
    use pario_hints::{Info, Sources};

    use super::*;

    #[test]
    fn what_is_explained_depends_on_file_system_and_hints() {
        let of = |kind: &FileSystem, nodes, pairs: &[(&str, &str)]| {
            let info = Info::from_pairs(pairs.iter().copied()).unwrap();
            rewriting(&Hints::resolve(&info, &Sources::none()).hints, kind, nodes)
        };
        let ceph_fuse = FileSystem::Fuse {
            subtype: "ceph-fuse".to_owned(),
        };
        for (kind, nodes, expected) in [
            (&FileSystem::Ext, 1, Rewriting::WithLease),
            (&FileSystem::Tmpfs, 1, Rewriting::WithLease),
            (&FileSystem::Overlay, 1, Rewriting::Forbidden),
            (&FileSystem::Nfs, 1, Rewriting::Forbidden),
            (&FileSystem::Nfs, 2, Rewriting::Allowed),
            (&FileSystem::Lustre, 2, Rewriting::Forbidden),
            (&FileSystem::Gluster, 1, Rewriting::Allowed),
            (&ceph_fuse, 1, Rewriting::Allowed),
        ] {
            assert_eq!(of(kind, nodes, &[]), expected, "{kind:?}, {nodes} nodes");
            let never = of(kind, nodes, &[("pario_rmw", "never")]);
            assert_eq!(never, Rewriting::Forbidden, "{kind:?}");
            let locked = of(kind, nodes, &[("pario_rmw", "locked")]);
            assert_eq!(locked, Rewriting::Allowed, "{kind:?}");
            for disabled in [
                ("romio_ds_write", "disable"),
                ("pario_write_method", "list"),
            ] {
                assert_eq!(of(kind, nodes, &[disabled]), Rewriting::Forbidden);
            }
        }
    }
}
