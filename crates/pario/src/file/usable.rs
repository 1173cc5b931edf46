//! Hints that cannot be followed: they are dropped with a warning, because a
//! hint never turns a correct program into an error.

use pario_hints::{AsyncMethod, Hints};
use pario_transport::{Rank, Transport};

use crate::warning::warn;

/// The hints of an open file, without those that its ranks or this machine
/// cannot follow. All ranks have agreed on them.
pub(super) fn usable(mut hints: Hints, comm: &dyn Transport) -> Hints {
    let refusal = driver_refusal(&hints, comm.spans_processes());
    if let Some(refusal) = refusal {
        if comm.rank() == Rank(0) {
            warn(&refusal);
        }
        hints.adjust(refusal, |hints| hints.pario_driver = None);
    }
    let asks_for_ring =
        hints.pario_async == AsyncMethod::Uring || hints.pario_driver.as_deref() == Some("uring");
    if let (true, Err(error)) = (asks_for_ring, pario_driver::require_uring()) {
        warn(&format!("a hint asks for io_uring: {error}"));
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
