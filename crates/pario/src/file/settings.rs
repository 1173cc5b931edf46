//! The settings that the ranks have agreed on, for calls that begin now.

use std::sync::{Arc, PoisonError, RwLock};

use pario_driver::{Direction, Placement};
use pario_hints::{Hints, Rmw};

use super::{Atomicity, WriteProtocol};
use crate::{
    access, collective,
    view::{BlockView, FlattenedView},
};

/// The settings of a call, from its start to its end. By the time a call in the background is
/// carried out, those of the file may have changed, and not at the same time on all ranks.
#[derive(Clone, Debug)]
pub(crate) struct CallSettings {
    pub(crate) view: Arc<FlattenedView>,
    pub(crate) hints: Arc<Hints>,
    pub(crate) atomicity: Atomicity,
    pub(crate) protocol: WriteProtocol,
    /// Where the program says the bytes of the file are.
    pub(crate) placement: Option<Placement>,
    /// Where they are according to the file system, if that was not decided when the file was
    /// opened.
    pub(crate) reported_placement: Option<Placement>,
    /// The view, if accesses to one of its blocks go straight to the driver, in each direction.
    reads_one_piece: Option<BlockView>,
    writes_one_piece: Option<BlockView>,
    has_persistent_realms: bool,
}

impl CallSettings {
    fn new(view: Arc<FlattenedView>, hints: Arc<Hints>, protocol: WriteProtocol) -> CallSettings {
        let mut settings = CallSettings {
            view,
            hints,
            atomicity: Atomicity::NonAtomic,
            protocol,
            placement: None,
            reported_placement: None,
            reads_one_piece: None,
            writes_one_piece: None,
            has_persistent_realms: false,
        };
        settings.derive();
        settings
    }

    /// For a call with another view.
    pub(super) fn set_view(&mut self, view: Arc<FlattenedView>) {
        self.view = view;
        self.derive();
    }

    /// Derives the rest from the settings that calls change.
    fn derive(&mut self) {
        let hints = &*self.hints;
        self.has_persistent_realms = collective::have_persistent_realms(hints);
        // Next to group locks, every access takes a guard; others may be announced.
        let takes_steps =
            hints.pario_group_lock || hints.pario_lock_ahead || self.atomicity == Atomicity::Atomic;
        let view = match takes_steps {
            false => self.view.as_blocks(),
            true => None,
        };
        let if_free = |direction| view.filter(|_| access::asked(direction, hints).is_none());
        self.reads_one_piece = if_free(Direction::Read);
        self.writes_one_piece = if_free(Direction::Write).filter(|_| !self.locks_writes());
    }

    /// Whether every write locks its range.
    pub(crate) fn locks_writes(&self) -> bool {
        self.hints.pario_rmw == Rmw::Locked || self.protocol != WriteProtocol::Unlocked
    }

    /// Whether writes may write back what they have read under their lock.
    pub(crate) fn rewrites_locked(&self) -> bool {
        self.hints.pario_rmw == Rmw::Locked || self.protocol == WriteProtocol::Rewriting
    }

    /// Whether the realms of collective calls persist from call to call.
    pub(crate) fn has_persistent_realms(&self) -> bool {
        self.has_persistent_realms
    }

    /// The view, if data in one of its blocks goes to the driver as one piece: no byte is converted,
    /// nothing is locked, and no hint requests a method.
    #[inline]
    pub(crate) fn one_piece_view(&self, direction: Direction) -> Option<BlockView> {
        match direction {
            Direction::Read => self.reads_one_piece,
            Direction::Write => self.writes_one_piece,
        }
    }
}

/// The current settings of a file. They are kept together, so that a call takes one lock and
/// one reference for all of them.
#[derive(Debug)]
pub(crate) struct CurrentSettings(RwLock<Arc<CallSettings>>);

impl CurrentSettings {
    pub(super) fn new(
        view: FlattenedView,
        hints: Hints,
        protocol: WriteProtocol,
    ) -> CurrentSettings {
        let (view, hints) = (Arc::new(view), Arc::new(hints));
        let settings = CallSettings::new(view, hints, protocol);
        CurrentSettings(RwLock::new(Arc::new(settings)))
    }

    pub(super) fn get(&self) -> Arc<CallSettings> {
        let settings = self.0.read().unwrap_or_else(PoisonError::into_inner);
        settings.clone()
    }

    /// Calls `look` with the current settings, which do not change until it returns.
    #[inline]
    pub(super) fn with<R>(&self, look: impl FnOnce(&CallSettings) -> R) -> R {
        look(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the settings for later calls.
    pub(super) fn change(&self, change: impl FnOnce(&mut CallSettings)) {
        let mut settings = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let settings = Arc::make_mut(&mut settings);
        change(settings);
        settings.derive();
    }
}

#[cfg(test)]
mod tests {
    use pario_hints::AccessMethod;

    use super::*;

    #[test]
    fn every_change_decides_again_what_goes_straight_to_the_driver() {
        let view = FlattenedView::bytes(1).unwrap();
        let settings = CurrentSettings::new(view, Hints::default(), WriteProtocol::Unlocked);
        let allowed = || {
            [Direction::Read, Direction::Write]
                .map(|direction| settings.with(|it| it.one_piece_view(direction).is_some()))
        };
        assert_eq!(allowed(), [true, true]);
        settings.change(|it| it.atomicity = Atomicity::Atomic);
        assert_eq!(allowed(), [false, false]);
        settings.change(|it| it.atomicity = Atomicity::NonAtomic);
        assert_eq!(allowed(), [true, true]);
        let with = |set: fn(&mut Hints)| {
            let mut hints = Hints::default();
            set(&mut hints);
            settings.change(|it| it.hints = Arc::new(hints));
            allowed()
        };
        assert_eq!(with(|it| it.pario_rmw = Rmw::Locked), [true, false]);
        settings.change(|it| it.hints = Arc::default());
        settings.change(|it| it.protocol = WriteProtocol::Locked);
        assert_eq!(allowed(), [true, false]);
        settings.change(|it| it.protocol = WriteProtocol::Unlocked);
        let list = with(|it| it.pario_write_method = Some(AccessMethod::List));
        assert_eq!(list, [true, false]);
        let sieve = with(|it| it.pario_read_method = Some(AccessMethod::Sieve));
        assert_eq!(sieve, [false, true]);
    }
}
