//! Calls of which it is known before they begin that every rank moves its own
//! data: each rank sees one stretch of the file, all run on one node, whose
//! kernel is the file system's client, and no hint asks for anything else. What
//! the ranks ask for makes no difference then, so they need not say it first:
//! one exchange, at the end, is enough.
//!
//! Ranks must not differ in this. It comes from what they agreed on when they
//! opened the file and set views, hints and atomicity, never from the
//! arguments of the call.

use std::sync::Arc;

use pario_driver::Client;
use pario_hints::Hints;
use pario_plan::{Direction, Tuning};
use pario_transport::{Rank, Transport};

use crate::file::{Atomicity, CallSettings, Inner};

/// What such a call is told to be.
pub(super) const REASON: &str =
    "accesses by individual: every rank sees one stretch of the file, all on one node";

/// Whether ranks and hints leave the choice to the views.
#[derive(Debug, Default)]
pub(super) struct IndependentPath {
    /// The last answer, and the hints it was given for.
    known: Option<(Arc<Hints>, bool)>,
}

impl IndependentPath {
    /// Whether a call on these settings is independent.
    pub(super) fn is_independent(
        &mut self,
        file: &Inner,
        comm: &dyn Transport,
        settings: &CallSettings,
    ) -> bool {
        settings.view.rank_views().dense
            && settings.view.representation().is_identity()
            && settings.atomicity == Atomicity::NonAtomic
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

/// Whether the ranks and the file system's client are on one node, and nothing
/// is known that would make the place of a transfer matter.
fn is_near(file: &Inner, comm: &dyn Transport) -> bool {
    let here = comm.node_of(Rank(0));
    let one_node = (1..comm.size()).all(|rank| comm.node_of(Rank(rank)) == here);
    let facts = file.handle.facts();
    one_node
        && facts.client == Client::Kernel
        && facts.striping.is_none()
        && facts.lock_granularity.is_none()
}

/// Whether the hints ask for nothing in particular.
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
