//! Operations of nonblocking calls: carried out at once, by the driver, or by a thread.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::Arc,
};

use pario_driver::{Batch, Latency};

use super::{
    Operation,
    exclusion::{Exclusion, Plan},
};
use crate::{
    Error, ErrorKind, Result, Status,
    file::Atomicity,
    request::{Completion, InFlight, KeepAlive, Placement},
};

/// An access with more pieces than this needs as many system calls and is not considered short.
const SHORT_PIECES_MAX: u64 = 16;

impl Operation {
    /// Moves the data in the background, or at once if that takes no longer than handing it
    /// over.
    pub(crate) fn start(self, keep: KeepAlive) -> InFlight {
        if let Some(result) = self.can_run_inline() {
            let unreported = self.call.unreported(&self.file);
            return InFlight::complete(self.file.pending.request(), result, unreported);
        }
        let completion = Arc::new(Completion::default());
        let (request, under_way) = self.file.pending.start();
        let in_flight = InFlight {
            completion: completion.clone(),
            _pending: request,
            carried_out: Placement::InBackground,
            unreported: self.call.unreported(&self.file),
        };
        let finish = move |result: Result<Status>| {
            // By the time the result is available, the owner of the request gets its buffer
            // back and the operation is no longer pending.
            drop(keep);
            completion.complete(result, || drop(under_way));
        };
        match self.submission() {
            Some((batch, plan, guard)) => {
                self.lock_ahead();
                let handle = self.shared_handle().clone();
                let done = move |outcome| {
                    let moved = self.transfer(plan).moved(outcome);
                    drop(guard);
                    finish(self.result(moved));
                };
                handle.submit(batch, Box::new(done));
            }
            None => pario_driver::spawn(Box::new(move || {
                // A conversion function of the program may panic.
                let result = panic::catch_unwind(AssertUnwindSafe(|| self.run()));
                finish(result.unwrap_or_else(|_| {
                    let error = Error::new(ErrorKind::Io, "the operation panicked");
                    Err(self.file.name_error(error, self.call.name))
                }));
            })),
        }
        in_flight
    }

    /// The result of a short operation that occupies the calling thread no longer than copying
    /// its data would: it waits for no lock, staging memory, conversion function or storage.
    pub(crate) fn can_run_inline(&self) -> Option<Result<Status>> {
        if !self.is_short() || self.file.writer_lock.is_closed() {
            return None;
        }
        match self.handle().latency(self.call.direction) {
            Latency::Unknown => None,
            Latency::WhereCached => {
                let (batch, plan, _guard) = self.submission()?;
                let outcome = self.handle().transfer_cached(&batch)?;
                Some(self.result(self.transfer(plan).moved(outcome)))
            }
            Latency::Memory => Some(self.run()),
        }
    }

    fn is_short(&self) -> bool {
        let bytes = self.access.memory.bytes();
        bytes <= self.settings.hints.pario_inline_bytes
            && self.settings.atomicity == Atomicity::NonAtomic
            && !self.settings.locks_writes()
            && !self.settings.hints.pario_lock_ahead
            && self.access.converter.is_none()
            && self.file.buffers.has_room(bytes)
            && (self.access.view.layout().is_dense() || {
                let data = self.access.first..self.access.first + bytes;
                self.access.view.layout().piece_stats(data).pieces <= SHORT_PIECES_MAX
            })
    }

    /// A batch that the driver can carry out by itself: pieces of memory without conversion,
    /// locks or intermediate steps.
    fn submission(&self) -> Option<(Batch<'static>, Plan, Exclusion)> {
        if self.settings.atomicity == Atomicity::Atomic
            || self.file.writer_lock.is_closed()
            || self.group().is_some()
        {
            return None;
        }
        let (plan, guard) = self.plan();
        let batch = self.transfer(plan).as_batch()?;
        Some((batch, plan, guard))
    }
}
