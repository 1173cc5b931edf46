//! A log of all operations.

use std::{
    io,
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use super::{Call, Operation, Wrapped, Wrapper};
use crate::{Batch, Completion, Handle, Outcome, closing::lock};

/// A completed operation.
#[derive(Clone, Debug)]
pub struct Event {
    /// The operation.
    pub operation: Operation,
    /// The file.
    pub path: Arc<Path>,
    /// Offset and length of each piece, in order.
    pub places: Vec<(u64, u64)>,
    /// Bytes moved.
    pub bytes: u64,
    /// The error, if it failed.
    pub error: Option<String>,
    /// Start time, relative to the creation of the log.
    pub began: Duration,
    /// Duration; for a background transfer, until the callback.
    pub took: Duration,
}

/// Records operations in order of completion. Clones share the log, which grows
/// until it is taken.
#[derive(Clone, Debug)]
pub struct Log {
    began: Instant,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Log {
    /// An empty log.
    pub fn new() -> Self {
        Log {
            began: Instant::now(),
            events: Arc::default(),
        }
    }

    /// The events recorded so far.
    pub fn events(&self) -> Vec<Event> {
        lock(&self.events).clone()
    }

    /// Removes and returns the events recorded so far.
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *lock(&self.events))
    }

    /// Number of recorded operations of this kind.
    pub fn count(&self, operation: Operation) -> usize {
        lock(&self.events)
            .iter()
            .filter(|event| event.operation == operation)
            .count()
    }

    fn begin(&self, operation: Operation, path: Arc<Path>, places: Vec<(u64, u64)>) -> Entry {
        Entry {
            log: self.clone(),
            operation,
            path,
            places,
            began: Instant::now(),
        }
    }

    fn begin_transfer(&self, file: &Wrapped<dyn Handle>, batch: &Batch<'_>) -> Entry {
        let place = |piece: &crate::Piece| (piece.offset, piece.len as u64);
        let places = batch.pieces().iter().map(place).collect();
        self.begin(batch.direction().into(), file.path.clone(), places)
    }
}

impl Default for Log {
    fn default() -> Self {
        Log::new()
    }
}

/// An operation in progress.
struct Entry {
    log: Log,
    operation: Operation,
    path: Arc<Path>,
    places: Vec<(u64, u64)>,
    began: Instant,
}

impl Entry {
    fn end(self, bytes: u64, error: Option<&io::Error>) {
        let event = Event {
            operation: self.operation,
            path: self.path,
            places: self.places,
            bytes,
            error: error.map(io::Error::to_string),
            began: self.began.saturating_duration_since(self.log.began),
            took: self.began.elapsed(),
        };
        lock(&self.log.events).push(event);
    }
}

impl Wrapper for Log {
    const NAME: &'static str = "trace";

    fn call<T>(&self, call: &Call<'_>, make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let range = &call.range;
        let place = (!range.is_empty()).then(|| (range.start, range.end - range.start));
        let entry = self.begin(call.operation, Arc::from(call.path), Vec::from_iter(place));
        let result = make();
        entry.end(0, result.as_ref().err());
        result
    }

    fn transfer(&self, file: &Wrapped<dyn Handle>, batch: &Batch<'_>) -> Outcome {
        let entry = self.begin_transfer(file, batch);
        let outcome = file.inner.transfer(batch);
        entry.end(outcome.bytes, outcome.error.as_ref());
        outcome
    }

    fn submit(&self, file: &Wrapped<dyn Handle>, batch: Batch<'static>, done: Completion) {
        let entry = self.begin_transfer(file, &batch);
        let noting = move |outcome: Outcome| {
            entry.end(outcome.bytes, outcome.error.as_ref());
            done(outcome);
        };
        file.inner.submit(batch, Box::new(noting));
    }
}
