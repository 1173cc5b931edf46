//! What collective calls of a file share, one after the other: blocking calls
//! in one context, background calls in another.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pario_transport::Transport;

use super::{
    independent::{self, IndependentPath},
    planning::PlanMemory,
    windows::Windows,
};
use crate::Result;

/// Windows in flight: exchange of some overlaps the transfer of others.
const SLOTS: u64 = 4;

/// A private world of messages and the windows made in it.
#[derive(Debug)]
pub(crate) struct CollectiveContext {
    pub(crate) comm: Arc<dyn Transport>,
    state: Mutex<ContextState>,
}

#[derive(Debug)]
pub(super) struct ContextState {
    windows: SharedWindows,
    pub(super) memory: PlanMemory,
    pub(super) independent_path: IndependentPath,
    /// Whether the last call was independent.
    pub(super) was_independent: bool,
}

/// Shared windows, once they are needed.
#[derive(Debug)]
enum SharedWindows {
    Unmade,
    Unavailable,
    Made(Windows),
}

impl CollectiveContext {
    pub(crate) fn new(comm: Arc<dyn Transport>) -> CollectiveContext {
        let state = ContextState {
            windows: SharedWindows::Unmade,
            memory: PlanMemory::default(),
            independent_path: IndependentPath::default(),
            was_independent: false,
        };
        CollectiveContext {
            comm,
            state: Mutex::new(state),
        }
    }

    /// How its last call was carried out, and why.
    pub(crate) fn explain(&self) -> Option<String> {
        let state = self.state();
        match state.was_independent {
            true => Some(independent::REASON.to_owned()),
            false => state.memory.explain(),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, ContextState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ContextState {
    /// The shared windows, of at least `bytes` each; `None` where the ranks
    /// share no memory. Collective when they are made, which all ranks do in
    /// the same call.
    pub(super) fn windows(
        &mut self,
        comm: &dyn Transport,
        bytes: u64,
    ) -> Result<Option<&mut Windows>> {
        let fits = match &self.windows {
            SharedWindows::Unmade => false,
            SharedWindows::Unavailable => true,
            SharedWindows::Made(windows) => windows.slot_bytes() as u64 >= bytes,
        };
        if !fits {
            self.windows = match Windows::new(comm, SLOTS, bytes as usize)? {
                Some(windows) => SharedWindows::Made(windows),
                None => SharedWindows::Unavailable,
            };
        }
        Ok(match &mut self.windows {
            SharedWindows::Made(windows) => Some(windows),
            _ => None,
        })
    }
}
