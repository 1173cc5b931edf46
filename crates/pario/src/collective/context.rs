//! State shared by successive collective calls of a file: blocking calls use one
//! context, background calls another.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pario_transport::Transport;

use super::{
    attempts::Attempts,
    entry::Entry,
    exchange::{ExchangeState, Overlap},
    independent::IndependentPath,
    planning::{PlanMemory, SharedHistory},
    windows::Windows,
};
use crate::{Result, agree::GatherBuffers, file::CallSettings};

/// Windows in flight: exchange of some overlaps the transfer of others.
pub(super) const SLOTS: usize = 4;

/// A private transport and the state of the calls on it.
#[derive(Debug)]
pub(crate) struct CollectiveContext {
    pub(crate) comm: Arc<dyn Transport>,
    state: Mutex<ContextState>,
    history: SharedHistory,
}

/// State that calls leave for the next one, so that a steady sequence of calls
/// neither plans nor allocates.
#[derive(Debug, Default)]
pub(super) struct ContextState {
    pub(super) buffers: GatherBuffers,
    /// The entries of the current call.
    pub(super) entries: Vec<Entry>,
    pub(super) windows: SharedWindows,
    pub(super) exchange: ExchangeState,
    pub(super) memory: PlanMemory,
    /// When a lease is tried, the same on all ranks: who has the file open usually keeps it open.
    pub(super) lease_attempts: Attempts,
    pub(super) independent_path: IndependentPath,
    /// When ranks with one piece move it first: see [`move_first`](super::move_first).
    pub(super) first_attempts: Attempts,
    /// Why the last call was not planned, if it was not.
    pub(super) unplanned: Option<&'static str>,
}

/// Shared windows, once they are needed.
#[derive(Debug, Default)]
pub(super) enum SharedWindows {
    #[default]
    Unmade,
    Unavailable,
    Made(Windows),
}

impl CollectiveContext {
    pub(crate) fn new(comm: Arc<dyn Transport>) -> CollectiveContext {
        let history = SharedHistory::default();
        let state = ContextState {
            memory: PlanMemory::of(history.clone()),
            ..ContextState::default()
        };
        CollectiveContext {
            comm,
            state: Mutex::new(state),
            history,
        }
    }

    /// For calls in the background of the same file.
    pub(crate) fn in_background(&self, comm: Arc<dyn Transport>) -> CollectiveContext {
        let history = self.history.clone();
        let state = ContextState {
            memory: PlanMemory::of(history.clone()),
            exchange: ExchangeState::in_background(),
            ..ContextState::default()
        };
        CollectiveContext {
            comm,
            state: Mutex::new(state),
            history,
        }
    }

    /// Whether the plan of a call depends on calls that were made before it but may be planned
    /// after it, because they run in the background.
    pub(super) fn depends_on_earlier(&self, settings: &CallSettings) -> bool {
        settings.has_persistent_realms() && self.history.is_open()
    }

    /// How its last call was carried out, and why.
    pub(crate) fn explain(&self) -> Option<String> {
        let state = self.state();
        if let Some(reason) = state.unplanned {
            return Some(reason.to_owned());
        }
        let eager = state.exchange.explain_eager();
        eager.or_else(|| state.memory.explain())
    }

    /// What this rank exchanged with other nodes in its last call.
    pub(crate) fn overlap(&self) -> Overlap {
        let state = self.state();
        match state.unplanned {
            Some(_) => Overlap::default(),
            None => state.exchange.overlap(),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, ContextState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedWindows {
    /// The shared windows, of at least `bytes` each; `None` if the ranks share no
    /// memory. Collective when they are created, which all ranks do in the same call.
    pub(super) fn of_size(
        &mut self,
        comm: &dyn Transport,
        bytes: u64,
    ) -> Result<Option<&mut Windows>> {
        let fits = match self {
            SharedWindows::Unmade => false,
            SharedWindows::Unavailable => true,
            SharedWindows::Made(windows) => windows.slot_bytes() as u64 >= bytes,
        };
        if !fits {
            *self = match Windows::new(comm, SLOTS as u64, bytes as usize)? {
                Some(windows) => SharedWindows::Made(windows),
                None => SharedWindows::Unavailable,
            };
        }
        Ok(match self {
            SharedWindows::Made(windows) => Some(windows),
            _ => None,
        })
    }
}
