//! Hints that cannot be honoured: they are dropped with a warning, because a hint must never
//! turn a correct program into a failing one.

use pario_driver::Handle;
use pario_hints::{AsyncMethod, Hints, Rmw};
use pario_transport::{Rank, Transport};

use super::{FileSharing, lock_probe};
use crate::{Mode, warning::warn};

/// The hints of an open file, without those that its ranks or this machine cannot honour. The
/// ranks have agreed on them.
pub(super) fn usable(mut hints: Hints, mode: Mode, comm: &dyn Transport) -> Hints {
    let warn_once = |message: &str| {
        if comm.rank() == Rank(0) {
            warn(message);
        }
    };
    if let Some(objection) = driver_objection(&hints, comm.spans_processes()) {
        warn_once(&objection);
        hints.adjust(objection, |hints| hints.pario_driver = None);
    }
    if let Some((permissions, reason)) = wider_permissions(&hints, mode) {
        warn_once(&reason);
        hints.adjust(reason, |hints| hints.file_perm = Some(permissions));
    }
    let asks_for_ring =
        hints.pario_async == AsyncMethod::Uring || hints.pario_driver.as_deref() == Some("uring");
    if asks_for_ring && let Err(error) = pario_driver::require_uring() {
        warn_once(&format!("a hint requests io_uring: {error}"));
        hints.adjust(error.to_string(), |hints| {
            hints.pario_async = AsyncMethod::Pool;
            hints.pario_driver.take_if(|driver| driver == "uring");
        });
    }
    hints
}

/// The hints of a file that the ranks share so, without those that need locks which do not exclude
/// all of them. *Collective*.
pub(super) fn usable_with(
    mut hints: Hints,
    mode: Mode,
    handle: &dyn Handle,
    sharing: &FileSharing,
    comm: &dyn Transport,
) -> Hints {
    if hints.pario_rmw != Rmw::Locked || !mode.can_write() {
        return hints;
    }
    let what = "the hint pario_rmw=locked";
    let locks = sharing.require_locks(what);
    let locks = locks.and_then(|()| lock_probe::run(comm, handle, sharing, what));
    if let Err(error) = locks {
        let reason = error.to_string();
        if comm.rank() == Rank(0) {
            warn(&format!("{reason}: it is ignored"));
        }
        hints.adjust(reason, |hints| hints.pario_rmw = Rmw::Never);
    }
    hints
}

/// The hints for a file that is deleted.
pub(super) fn usable_alone(mut hints: Hints) -> Hints {
    if let Some(objection) = driver_objection(&hints, false) {
        warn(&objection);
        hints.pario_driver = None;
    }
    hints
}

/// The permissions of a new file, if those of the hint would prevent the ranks from opening it.
/// Only the first open, which creates the file, is exempt from them.
fn wider_permissions(hints: &Hints, mode: Mode) -> Option<(u32, String)> {
    const READ: u32 = 0o400;
    const WRITE: u32 = 0o200;
    let asked = hints.file_perm.filter(|_| mode.contains(Mode::CREATE))?;
    let read = if mode.can_read() { READ } else { 0 };
    let write = if mode.can_write() { WRITE } else { 0 };
    let wider = asked | read | write;
    (wider != asked).then(|| {
        let reason = format!(
            "the hint file_perm={asked:o} would prevent ranks from opening the file: using {wider:o}"
        );
        (wider, reason)
    })
}

/// Why the driver that the hints name cannot be used for a file of these ranks.
fn driver_objection(hints: &Hints, spans_processes: bool) -> Option<String> {
    let name = hints.pario_driver.as_deref()?;
    let ignored = "the hint pario_driver is ignored";
    let Some(entry) = pario_driver::known_driver(name) else {
        let names: Vec<_> = pario_driver::REGISTRY.iter().map(|it| it.name).collect();
        let names = names.join(", ");
        return Some(format!(
            "{ignored}: unknown driver {name}; drivers are {names}"
        ));
    };
    let reaches = !spans_processes || entry.make().capabilities().between_processes;
    (!reaches).then(|| {
        format!(
            "{ignored}: the driver {name} keeps files inside one process, but the ranks are in several"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_allow_the_ranks_to_open_the_file_they_create() {
        let new = Mode::CREATE | Mode::READ_WRITE;
        let cases = [
            (0o000, new, Some(0o600)),
            (0o040, Mode::CREATE | Mode::WRITE_ONLY, Some(0o240)),
            (0o200, Mode::CREATE | Mode::WRITE_ONLY, None),
            (0o644, new, None),
            (0o000, Mode::READ_WRITE, None),
        ];
        for (asked, mode, wider) in cases {
            let mut hints = Hints::default();
            hints.file_perm = Some(asked);
            let found = wider_permissions(&hints, mode).map(|(bits, _)| bits);
            assert_eq!(found, wider, "{asked:o}");
        }
    }
}
