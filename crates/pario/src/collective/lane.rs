//! What collective calls of a file share, one after the other: blocking calls
//! in one lane, background calls in another.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pario_transport::Transport;

use super::{
    foregone::{self, Freedom},
    planning::PlanMemory,
    windows::Windows,
};
use crate::Result;

/// Windows in flight: exchange of some overlaps the transfer of others.
const SLOTS: u64 = 4;

/// A private world of messages and the windows made in it.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) comm: Arc<dyn Transport>,
    state: Mutex<LaneState>,
}

#[derive(Debug)]
pub(super) struct LaneState {
    windows: Ring,
    pub(super) memory: PlanMemory,
    pub(super) freedom: Freedom,
    /// Whether the last call was foregone.
    pub(super) was_foregone: bool,
}

/// Shared windows, once they are needed.
#[derive(Debug)]
enum Ring {
    Unmade,
    Unavailable,
    Made(Windows),
}

impl Lane {
    pub(crate) fn new(comm: Arc<dyn Transport>) -> Lane {
        let state = LaneState {
            windows: Ring::Unmade,
            memory: PlanMemory::default(),
            freedom: Freedom::default(),
            was_foregone: false,
        };
        Lane {
            comm,
            state: Mutex::new(state),
        }
    }

    /// How its last call was carried out, and why.
    pub(crate) fn explain(&self) -> Option<String> {
        let state = self.state();
        match state.was_foregone {
            true => Some(foregone::REASON.to_owned()),
            false => state.memory.explain(),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, LaneState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LaneState {
    /// The shared windows, of at least `bytes` each; `None` where the ranks
    /// share no memory. Collective when they are made, which all ranks do in
    /// the same call.
    pub(super) fn windows(
        &mut self,
        comm: &dyn Transport,
        bytes: u64,
    ) -> Result<Option<&mut Windows>> {
        let fits = match &self.windows {
            Ring::Unmade => false,
            Ring::Unavailable => true,
            Ring::Made(windows) => windows.slot_bytes() as u64 >= bytes,
        };
        if !fits {
            self.windows = match Windows::new(comm, SLOTS, bytes as usize)? {
                Some(windows) => Ring::Made(windows),
                None => Ring::Unavailable,
            };
        }
        Ok(match &mut self.windows {
            Ring::Made(windows) => Some(windows),
            _ => None,
        })
    }
}
