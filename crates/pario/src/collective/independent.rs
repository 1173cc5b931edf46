//! The independent fast path: calls in which every rank is known beforehand to move its own
//! data. Each rank sees one contiguous part of the file, all ranks run on one node, whose
//! kernel is the client of the file system, or share a local file system (containers of one
//! machine), and no hint requests anything else. Then the arguments of the call make no
//! difference, so the ranks need not exchange them: one exchange, at the end, is enough.
//!
//! All ranks must come to the same conclusion. So it follows from what they agreed on when they
//! opened the file and set views, hints and atomicity, never from the arguments of the call.
//!
//! If the ranks see several parts of the file, it depends on the arguments of all of them how a call
//! is best carried out. But a rank whose data is one piece, and large enough, would move it by
//! itself in nearly all of these calls, so it does that first. Usually all ranks have done so, and one
//! exchange is enough again. Otherwise they exchange their arguments, and such a rank moves its data
//! once more, in the way that the ranks then decide on, which takes time but changes nothing. All
//! ranks try in the same calls, and less often after each failure.

use std::sync::Arc;

use pario_driver::Latency;
use pario_hints::Hints;
use pario_plan::{Direction, Tuning, algorithm::Individual};
use pario_transport::Transport;

use crate::file::{Atomicity, CallSettings, Inner, LateHandle};

/// How such a call is explained.
pub(super) const REASON: &str =
    "accesses by individual: every rank sees a contiguous part of the file, all on one machine";
/// The explanation of a call in which every rank moved its data first.
pub(super) const MOVED_FIRST_REASON: &str =
    "accesses by individual: every rank has one piece, large enough for a call, all on one node";

/// Whether the ranks' placement and the hints allow the fast path.
#[derive(Debug, Default)]
pub(super) struct IndependentPath {
    /// The last result, and the hints that it is valid for.
    known: Option<(Arc<Hints>, bool)>,
}

impl IndependentPath {
    /// Whether a call with these settings is independent.
    pub(super) fn is_independent(
        &mut self,
        file: &Inner,
        comm: &dyn Transport,
        settings: &CallSettings,
    ) -> bool {
        settings.view.rank_views().dense && self.may_move_first(file, comm, settings)
    }

    /// Whether ranks may move their data before they know of the others.
    pub(super) fn may_move_first(
        &mut self,
        file: &Inner,
        comm: &dyn Transport,
        settings: &CallSettings,
    ) -> bool {
        settings.view.representation().is_identity()
            && settings.atomicity == Atomicity::NonAtomic
            && settings.placement.is_none()
            && self.is_free(file, comm, &settings.hints)
    }

    fn is_free(&mut self, file: &Inner, comm: &dyn Transport, hints: &Arc<Hints>) -> bool {
        match &self.known {
            Some((known, free)) if Arc::ptr_eq(known, hints) => *free,
            _ => {
                let free = is_near(file, comm) && leaves_choice(hints);
                self.known = Some((hints.clone(), free));
                free
            }
        }
    }
}

/// Whether a rank moves `bytes` bytes first, if they are one piece. With more, the exchange hardly
/// matters. A file that this rank has not opened yet may not have to be opened at all.
pub(super) fn is_worth_moving_first(file: &Inner, hints: &Hints, bytes: u64) -> bool {
    let worthwhile = Individual::piece_bytes_min(hints.call_bytes())..=hints.cached_window_bytes();
    worthwhile.contains(&bytes) && file.late.as_ref().is_none_or(LateHandle::is_open)
}

/// Whether the ranks use one client of the file system, and nothing is known that would make
/// it matter which rank moves the data.
fn is_near(file: &Inner, comm: &dyn Transport) -> bool {
    let facts = file.handle.facts();
    let is_local = facts.file_system.latency(Direction::Write) == Latency::Memory;
    (is_local || !comm.spans_nodes())
        && facts.client.is_shared()
        && facts.striping.is_none()
        && facts.lock_granularity.is_none()
}

/// Whether the hints request no particular method.
pub(super) fn leaves_choice(hints: &Hints) -> bool {
    let assumes = hints.pario_assume_striping.is_some()
        || hints.pario_assume_lock_granularity.is_some()
        || hints.pario_assume_lock_protocol.is_some()
        || hints.pario_assume_client.is_some();
    let is_free = |direction| {
        let tuning = Tuning::from_hints(hints, direction);
        tuning.partition.is_none() && tuning.algorithm.is_none() && tuning.exchange.is_none()
    };
    !assumes && is_free(Direction::Read) && is_free(Direction::Write)
}
