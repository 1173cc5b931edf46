//! Hints that cannot be followed: they are dropped with a warning, because a
//! hint never turns a correct program into an error.

use pario_hints::{AsyncMethod, Hints};
use pario_transport::{Rank, Transport};

use crate::{Mode, warning::warn};

/// The hints of an open file, without those that its ranks or this machine
/// cannot follow. All ranks have agreed on them.
pub(super) fn usable(mut hints: Hints, mode: Mode, comm: &dyn Transport) -> Hints {
    let warn_once = |message: &str| {
        if comm.rank() == Rank(0) {
            warn(message);
        }
    };
    if let Some(refusal) = driver_refusal(&hints, comm.spans_processes()) {
        warn_once(&refusal);
        hints.adjust(refusal, |hints| hints.pario_driver = None);
    }
    if let Some((permissions, reason)) = wider_permissions(&hints, mode) {
        warn_once(&reason);
        hints.adjust(reason, |hints| hints.file_perm = Some(permissions));
    }
    let asks_for_ring =
        hints.pario_async == AsyncMethod::Uring || hints.pario_driver.as_deref() == Some("uring");
    if let (true, Err(error)) = (asks_for_ring, pario_driver::require_uring()) {
        warn_once(&format!("a hint asks for io_uring: {error}"));
        hints.adjust(error.to_string(), |hints| {
            hints.pario_async = AsyncMethod::Pool;
            hints.pario_driver.take_if(|driver| driver == "uring");
        });
    }
    hints
}

/// The hints for a file that is deleted.
pub(super) fn usable_alone(mut hints: Hints) -> Hints {
    if let Some(refusal) = driver_refusal(&hints, false) {
        warn(&refusal);
        hints.pario_driver = None;
    }
    hints
}

/// Permissions of a file that is created, if the hint's would keep the very
/// ranks that create it from opening it: only the first open, which creates,
/// does not look at them.
fn wider_permissions(hints: &Hints, mode: Mode) -> Option<(u32, String)> {
    const READ: u32 = 0o400;
    const WRITE: u32 = 0o200;
    let asked = hints.file_perm.filter(|_| mode.contains(Mode::CREATE))?;
    let read = if mode.can_read() { READ } else { 0 };
    let write = if mode.can_write() { WRITE } else { 0 };
    let wider = asked | read | write;
    (wider != asked).then(|| {
        let reason = format!(
            "the hint file_perm={asked:o} would keep ranks from opening the file: {wider:o} is used"
        );
        (wider, reason)
    })
}

/// Why the driver that the hints name cannot carry a file of these ranks.
fn driver_refusal(hints: &Hints, spans_processes: bool) -> Option<String> {
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
            "{ignored}: the driver {name} keeps files inside one process, and the ranks are several"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_let_the_ranks_in_that_create_the_file() {
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
