//! The range of the file that an aggregator accesses in a call, told to file systems that pass
//! tokens between nodes.

use std::{ops::Range, sync::Arc};

use pario_driver::{Advice, FileSystem, Handle};
use pario_plan::{Access, Rounds, schedule};
use pario_transport::Rank;

use crate::operation::Operation;

/// A range that this rank has announced; it is free again when this is dropped.
pub(super) struct AccessRange {
    handle: Arc<dyn Handle>,
    range: Range<u64>,
}

impl AccessRange {
    /// Announces what an aggregator will access. `None` if this rank is none, its realm is
    /// scattered, or the hint or the file system does not ask for it.
    pub(super) fn announce(
        me: Rank,
        operation: &Operation,
        rounds: &Rounds,
        accesses: &[Access],
    ) -> Option<AccessRange> {
        let handle = operation.shared_handle();
        if !operation.hints().pario_gpfs_ranges || handle.facts().file_system != FileSystem::Gpfs {
            return None;
        }
        let mut own = rounds.aggregators.iter().filter(|it| it.rank == me.0);
        let realm = &own.next()?.realm;
        if own.next().is_some() || !realm.is_contiguous() {
            return None;
        }
        let range = schedule::useful(accesses.iter(), realm.file());
        if range.is_empty() {
            return None;
        }
        handle.advise(Advice::AccessRange {
            start: range.start,
            end: range.end,
            direction: operation.direction(),
        });
        let handle = handle.clone();
        Some(AccessRange { handle, range })
    }
}

impl Drop for AccessRange {
    fn drop(&mut self) {
        let Range { start, end } = self.range;
        self.handle.advise(Advice::FreeRange { start, end });
    }
}
