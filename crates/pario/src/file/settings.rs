//! The settings that the ranks have agreed on, for calls that begin now.

use std::sync::{Arc, PoisonError, RwLock};

use pario_driver::Placement;
use pario_hints::Hints;

use super::Atomicity;
use crate::view::FlattenedView;

/// The settings of a call, from its start to its end. By the time a call in the background is
/// carried out, those of the file may have changed, and not at the same time on all ranks.
#[derive(Clone, Debug)]
pub(crate) struct CallSettings {
    pub(crate) view: Arc<FlattenedView>,
    pub(crate) hints: Arc<Hints>,
    pub(crate) atomicity: Atomicity,
    /// Where the program says the bytes of the file are.
    pub(crate) placement: Option<Placement>,
}

/// The current settings of a file. They are kept together, so that a call takes one lock and
/// one reference for all of them.
#[derive(Debug)]
pub(crate) struct CurrentSettings(RwLock<Arc<CallSettings>>);

impl CurrentSettings {
    pub(super) fn new(view: FlattenedView, hints: Hints) -> CurrentSettings {
        CurrentSettings(RwLock::new(Arc::new(CallSettings {
            view: Arc::new(view),
            hints: Arc::new(hints),
            atomicity: Atomicity::NonAtomic,
            placement: None,
        })))
    }

    pub(super) fn get(&self) -> Arc<CallSettings> {
        let settings = self.0.read().unwrap_or_else(PoisonError::into_inner);
        settings.clone()
    }

    /// Changes the settings for later calls.
    pub(super) fn change(&self, change: impl FnOnce(&mut CallSettings)) {
        let mut settings = self.0.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut settings));
    }
}
