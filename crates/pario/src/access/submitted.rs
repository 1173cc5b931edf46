//! Batches that the driver carries out in the background while the caller does something else.
//!
//! This file may contain `unsafe`, because a batch in the background has no lifetime. The
//! function here does not return, or unwind, before the last of them is complete.
#![allow(unsafe_code)]

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use pario_driver::{Batch, Handle, Outcome};

/// Submits `batches` in order, runs `meanwhile` once all of them are submitted, and waits for
/// them. A batch may use the memory of the one `most` before it, which is complete by then.
pub(crate) fn submitted<'a, T>(
    handle: &dyn Handle,
    batches: impl Iterator<Item = Batch<'a>>,
    most: usize,
    meanwhile: impl FnOnce() -> T,
) -> (Vec<Outcome>, T) {
    let in_flight = InFlight::default();
    for (index, batch) in batches.enumerate() {
        // The iterator has made this batch already, but nothing uses its memory before it is
        // submitted.
        in_flight.await_before((index + 1).saturating_sub(most));
        in_flight.submit(handle, &batch);
    }
    let result = meanwhile();
    (in_flight.finish(), result)
}

#[derive(Debug, Default)]
struct InFlight {
    state: Arc<(Mutex<Vec<Option<Outcome>>>, Condvar)>,
}

impl InFlight {
    fn outcomes(&self) -> MutexGuard<'_, Vec<Option<Outcome>>> {
        self.state.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn submit(&self, handle: &dyn Handle, batch: &Batch<'_>) {
        let mut detached = Batch::new(batch.direction());
        for piece in batch.pieces() {
            // SAFETY: the memory is valid while the batch's lifetime lasts, which is longer than
            // the call of `submitted`, and that waits until `done` has been called.
            unsafe { detached.push_raw(piece.offset, piece.memory, piece.len) }
        }
        let mut outcomes = self.outcomes();
        let index = outcomes.len();
        outcomes.push(None);
        drop(outcomes);
        let state = self.state.clone();
        let done = move |outcome| {
            let mut outcomes = state.0.lock().unwrap_or_else(PoisonError::into_inner);
            outcomes[index] = Some(outcome);
            state.1.notify_all();
        };
        handle.submit(detached, Box::new(done));
    }

    /// Waits for the first `count` batches.
    fn await_before(&self, count: usize) {
        let mut outcomes = self.outcomes();
        while outcomes.iter().take(count).any(Option::is_none) {
            let woken = self.state.1.wait(outcomes);
            outcomes = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn finish(self) -> Vec<Outcome> {
        self.await_before(usize::MAX);
        let outcomes = std::mem::take(&mut *self.outcomes());
        outcomes.into_iter().flatten().collect()
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.await_before(usize::MAX);
    }
}
