//! Whether writes lock, and may read, modify and write back a range, where every piece of a write is
//! a request to a server: where the ranks use several NFS clients, whose caches they bypass, and on
//! GlusterFS and CephFS through FUSE (semantics rule 1).
//!
//! A request takes as long as moving many kilobytes, so small pieces with gaps
//! between them are better written by reading the range, modifying it and writing it back. That
//! loses nothing if whoever else writes there locks what it writes. So the ranks agree on it when
//! they set views: while the view of any of them has small pieces with gaps, all their writes
//! lock. Other handles of the file, of this program or of others, are told apart by the file's
//! [flag](WriterFlag), which rank 0 holds for its handle.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pario_driver::{FlagState, Handle, WriterFlag};
use pario_hints::{Hints, Rmw};
use pario_layout::PieceStats;
use pario_transport::{Rank, Transport};

use super::{FileSharing, Inner, lock_probe};
use crate::{
    Mode, Result, agree,
    view::{Outline, RankViews},
};

const ROOT: Rank = Rank(0);

/// Bytes that are assumed to travel in the time of a request; not measured. A gap that is
/// shorter is moved along with the data.
pub(crate) const REQUEST_BYTES: u64 = 128 << 10;

/// How writes on a handle coexist with other writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteProtocol {
    /// Each writes exactly its bytes, without locks.
    Unlocked,
    /// Each locks the bytes that it writes: another handle rewrites ranges.
    Locked,
    /// Each locks, and may write back bytes that it has read under the lock.
    Rewriting,
}

/// What a rank knows about the writers of a file.
#[derive(Debug)]
pub(crate) struct Writers {
    /// Whether some writes may rewrite holes under a lease, so that others need a guard.
    pub(crate) may_have_lease: bool,
    /// Whether rank 0 has a flag.
    is_flagged: bool,
    /// Rank 0's flag.
    flag: Mutex<Option<WriterFlag>>,
    /// Whether the locks were found not to work.
    lacks_locks: AtomicBool,
    /// Whether the ranks have tried to use one open description; the same on all of them.
    pub(super) has_tried_sharing: AtomicBool,
}

impl Writers {
    /// For a file that has no flag.
    fn without_flag(handle: &dyn Handle, mode: Mode, hints: &Hints) -> Writers {
        Writers {
            may_have_lease: mode.can_read()
                && mode.can_write()
                && hints.pario_rmw == Rmw::Automatic
                && handle.facts().file_system.grants_leases(),
            is_flagged: false,
            flag: Mutex::new(None),
            lacks_locks: AtomicBool::new(false),
            has_tried_sharing: AtomicBool::new(false),
        }
    }

    /// Tells the file's other handles of this one, if its writes may lock. *Collective*.
    pub(super) fn meet(
        comm: &dyn Transport,
        handle: &dyn Handle,
        mode: Mode,
        sharing: &FileSharing,
        hints: &Hints,
    ) -> Result<(Writers, WriteProtocol)> {
        let is_concerned = sharing.writes_by_requests(handle.facts())
            && mode.can_write()
            && sharing.require_locks("").is_ok();
        if !is_concerned {
            let writers = Writers::without_flag(handle, mode, hints);
            return Ok((writers, WriteProtocol::Unlocked));
        }
        // Without a flag, writes go on as if this was the only handle.
        let flag = match comm.rank() {
            ROOT => handle.writer_flag().ok().flatten(),
            _ => None,
        };
        let state = flag.as_ref().and_then(|flag| {
            let set = match hints.pario_rmw {
                Rmw::Locked => flag.claim(),
                Rmw::Automatic | Rmw::Never => flag.share(),
            };
            set.ok()
        });
        let flag = flag.filter(|_| matches!(state, Some(FlagState::Held | FlagState::Refused)));
        let is_refused = state == Some(FlagState::Refused);
        let told = || Ok(vec![u8::from(flag.is_some()), u8::from(is_refused)]);
        let told = agree::broadcast(comm, ROOT, told)?;
        let protocol = match told.get(1) {
            Some(1) => WriteProtocol::Locked,
            _ => WriteProtocol::Unlocked,
        };
        let writers = Writers {
            is_flagged: told.first() == Some(&1),
            flag: Mutex::new(flag),
            ..Writers::without_flag(handle, mode, hints)
        };
        Ok((writers, protocol))
    }

    /// Holds rank 0's flag alone or together with others; returns whether it does. *Collective*.
    fn set_flag(&self, comm: &dyn Transport, wanted: WriteProtocol) -> Result<bool> {
        let flag = self.flag.lock().unwrap_or_else(PoisonError::into_inner);
        let set = flag.as_ref().map(|flag| match wanted {
            WriteProtocol::Rewriting => flag.claim(),
            WriteProtocol::Locked | WriteProtocol::Unlocked => flag.share(),
        });
        // A flag that cannot be changed is as before.
        let is_held = matches!(set, Some(Ok(FlagState::Held)));
        let told = agree::broadcast(comm, ROOT, || Ok(vec![u8::from(is_held)]))?;
        Ok(told.first() == Some(&1))
    }

    /// Releases the flag.
    pub(crate) fn leave(&self) {
        let mut flag = self.flag.lock().unwrap_or_else(PoisonError::into_inner);
        *flag = None;
    }
}

impl Inner {
    /// Whether a write may read what it writes back. The same on all ranks.
    pub(crate) fn can_read_back(&self) -> bool {
        self.mode.can_read() || self.sharing.reads_back
    }

    /// The protocol for writes through these views. *Collective*; it remains what it is if some
    /// rank has an operation under way, which would not follow the new one.
    pub(super) fn write_protocol(&self, views: &RankViews) -> Result<WriteProtocol> {
        let (current, is_automatic) =
            self.with_settings(|it| (it.protocol, it.hints.pario_rmw == Rmw::Automatic));
        let writers = &self.writers;
        if !writers.is_flagged || !is_automatic {
            return Ok(current);
        }
        let rewrites = self.can_read_back()
            && !writers.lacks_locks.load(Ordering::Relaxed)
            && views.shapes.iter().any(|it| has_small_gaps(it.outline()));
        let wanted = match rewrites {
            true => WriteProtocol::Rewriting,
            false => WriteProtocol::Unlocked,
        };
        if wanted == current {
            return Ok(current);
        }
        let is_idle =
            self.pending.requests() == 0 && self.pending.wait_for_operations(Duration::ZERO);
        let all = agree::gather(&*self.comm, Ok(vec![u8::from(is_idle)]))?;
        if all.iter().any(|it| *it != [1]) {
            return Ok(current);
        }
        if rewrites {
            let what = "read-modify-write";
            let probed = lock_probe::run(&*self.comm, &*self.handle, &self.sharing, what);
            if probed.is_err() {
                writers.lacks_locks.store(true, Ordering::Relaxed);
                return Ok(current);
            }
        }
        Ok(match writers.set_flag(&*self.comm, wanted)? {
            true => wanted,
            false => current,
        })
    }
}

/// Whether many pieces written through a view are better rewritten together with the gaps
/// between them, which are then moved twice.
fn has_small_gaps(view: &Outline) -> bool {
    let PieceStats { pieces, span, .. } = view.stats;
    let has_gaps = !view.is_dense && view.is_increasing && pieces > 1;
    has_gaps && span / pieces <= REQUEST_BYTES / 2
}

#[cfg(test)]
mod tests {
    use pario_layout::Datatype;

    use super::*;

    fn strided(piece: u64, stride: i64) -> Outline {
        let byte = Datatype::of::<u8>();
        let block = Datatype::contiguous(piece, &byte).unwrap();
        let strided = Datatype::resized(&block, 0, stride).unwrap();
        Outline::new(strided.layout())
    }

    #[test]
    fn only_small_pieces_with_small_gaps_are_rewritten() {
        assert!(has_small_gaps(&strided(4, 8)));
        assert!(has_small_gaps(&strided(1000, 2000)));
        assert!(!has_small_gaps(&strided(1000, 1000)));
        assert!(!has_small_gaps(&strided(65_000, 130_000)));
        assert!(!has_small_gaps(&strided(4, 1 << 20)));
    }
}
