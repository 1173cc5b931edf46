//! Whether others can write while an access is carried out, and so whether it may
//! read-modify-write and has to lock (semantics rule 1).

use pario_driver::{Direction, Lease};
use pario_hints::Rmw;

use super::Operation;
use crate::{
    Mode,
    access::{AccessMethod, Locking, ReadModifyWrite},
    file::Atomicity,
    writer_lock::WriteGuard,
};

/// Keeps others from writing while an access is carried out.
#[derive(Debug, Default)]
pub(super) struct Exclusion {
    /// Excludes everyone. It ends before other writes on the handle go on.
    lease: Option<Box<dyn Lease>>,
    /// Excludes writes on the same handle that would conflict.
    _guard: Option<WriteGuard>,
}

impl Exclusion {
    fn on_handle(guard: WriteGuard) -> Exclusion {
        Exclusion {
            lease: None,
            _guard: Some(guard),
        }
    }

    pub(super) fn lease(&self) -> Option<&dyn Lease> {
        self.lease.as_deref()
    }
}

/// Whether an access may read-modify-write, and what it locks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) read_modify_write: ReadModifyWrite,
    pub(super) locking: Locking,
}

impl Operation {
    /// The kind of locking: `otherwise`, unless the access is atomic.
    fn locking(&self, otherwise: Locking) -> Locking {
        match self.settings.atomicity {
            Atomicity::Atomic => Locking::Whole,
            Atomicity::NonAtomic => otherwise,
        }
    }

    /// Whether it may read-modify-write and must lock, by semantics rule 1, and what keeps
    /// that true.
    pub(super) fn plan(&self) -> (Plan, Exclusion) {
        if self.call.direction == Direction::Read {
            let plan = Plan {
                read_modify_write: ReadModifyWrite::Alone,
                locking: self.locking(Locking::None),
            };
            return (
                plan,
                Exclusion {
                    lease: None,
                    _guard: self.reading_guard(),
                },
            );
        }
        let locking = self.locking(match self.locks_writes() {
            true => Locking::EachWrite,
            false => Locking::None,
        });
        let plan = |read_modify_write| Plan {
            read_modify_write,
            locking,
        };
        match self.try_be_alone(plan(ReadModifyWrite::Alone)) {
            Ok(exclusion) => (plan(ReadModifyWrite::Alone), exclusion),
            Err(refusal) => {
                let guard = self.file.writer_lock.shared();
                (plan(refusal), Exclusion::on_handle(guard))
            }
        }
    }

    /// Keeps a read from being made under a group lock, by which it could see old data.
    pub(crate) fn reading_guard(&self) -> Option<WriteGuard> {
        let writer_lock = &self.file.writer_lock;
        self.file.group.map(|_| writer_lock.shared())
    }

    /// What shows that nobody else writes to the file, otherwise what may be done instead. An
    /// access that does not need to be alone gets an ordinary guard.
    fn try_be_alone(&self, alone: Plan) -> std::result::Result<Exclusion, ReadModifyWrite> {
        let forbidden = |why| Err(ReadModifyWrite::Forbidden(why));
        let writer_lock = &self.file.writer_lock;
        let rmw = self.settings.hints.pario_rmw;
        let is_unique = self.file.mode.contains(Mode::UNIQUE_OPEN);
        if !self.file.can_read_back() {
            return forbidden("the file was opened WRITE_ONLY");
        }
        if self.settings.rewrites_locked() {
            return Err(ReadModifyWrite::Locked);
        }
        // Locks of atomic accesses are on descriptions that are not shared.
        let group = writer_lock.rewriting_group().filter(|_| !self.is_atomic());
        let has_other_ranks = self.file.comm.size() > 1 && group.is_none();
        if has_other_ranks || !is_unique && rmw == Rmw::Never {
            return forbidden(
                "others may write: the file is not opened by a single rank with UNIQUE_OPEN, the ranks do not have one open description on a local file system, and the hint pario_rmw is not locked",
            );
        }
        let needs_lease = group.is_some() || !is_unique;
        let transfer = self.transfer(alone);
        if transfer.method() != AccessMethod::Sieve {
            return Ok(Exclusion::on_handle(writer_lock.shared()));
        }
        if needs_lease && !transfer.is_worth_lease(group.is_some()) {
            return forbidden(
                "others may write: no single rank has the file open with UNIQUE_OPEN, and a lease on it would take too long",
            );
        }
        let Some(guard) = writer_lock.try_exclusive() else {
            return forbidden("another write on this handle is under way");
        };
        if !needs_lease {
            return Ok(Exclusion::on_handle(guard));
        }
        let lease = match group {
            // The ranks may have agreed otherwise before this one had its guard.
            Some(_) => writer_lock
                .rewriting_group()
                .and_then(|group| group.rewrite()),
            None => self.file.handle.lease(),
        };
        match lease {
            Some(lease) => Ok(Exclusion {
                lease: Some(lease),
                ..Exclusion::on_handle(guard)
            }),
            None => forbidden(
                "others may write: no single rank has the file open with UNIQUE_OPEN, and there is no lease on it",
            ),
        }
    }
}
