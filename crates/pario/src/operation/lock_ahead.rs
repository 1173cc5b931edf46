//! Locks that are requested before a write needs them.

use pario_driver::{Direction, FileSystem};
use pario_plan::{Access, coverage};

use super::Operation;

/// Accesses with more pieces are not announced.
const PIECES_MAX: u64 = 1 << 14;

impl Operation {
    /// Requests the locks of a write that this rank makes by itself, if a hint asks for it and
    /// clients on other nodes may hold locks.
    pub(super) fn lock_ahead(&self) {
        let is_concerned = self.settings.hints.pario_lock_ahead
            && self.call.direction == Direction::Write
            && self.log.is_none()
            && self.file.comm.spans_nodes()
            && self.handle().facts().file_system == FileSystem::Lustre;
        let access = is_concerned.then(|| self.in_file()).flatten();
        let access = access.filter(|it| it.is_increasing() && it.stats().pieces <= PIECES_MAX);
        if let Some(access) = access.filter(|it| !it.is_empty()) {
            let pieces = coverage::covered(std::iter::once(&access), access.span());
            self.handle().lock_ahead(&pieces);
        }
    }

    /// The bytes of the file that it moves. `None` if they are out of reach.
    pub(super) fn in_file(&self) -> Option<Access> {
        let view = &self.access.view;
        let layout = view.layout();
        if layout.size() == 0 {
            return None;
        }
        let (first, len) = (self.access.first, self.access.file_bytes);
        Access::new(view.displacement(), layout.clone(), first, len)
    }
}
