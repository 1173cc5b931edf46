//! Operations that a program has started and not completed.
//!
//! For the program, a nonblocking operation is a generalized request of the host; here it is a
//! [`Started`]. Background threads carry it out and never call the MPI. Functions that complete
//! requests ([`crate::entry`]) check whether it is complete, report that to the host and let
//! the host complete it together with all other requests. [`table`] contains the handles that
//! are pario's.
//!
//! Errors cannot go through the host, which would call the handler of a communicator. So only
//! success is reported to the host, and the function that completes a request delivers the
//! error ([`ParioRequests`]).

mod backoff;
mod callbacks;
mod ours;
mod started;
mod table;

use std::sync::Arc;
use std::time::{Duration, Instant};

use pario_mpi::{Host, MpiTransport, ProgressRegistration, Request};

use crate::failure::Failure;
use crate::files::OpenFile;

pub(crate) use ours::{Delivery, ParioRequests};
pub(crate) use table::is_any_outstanding;

use started::Started;

/// A split collective call between its begin and its end.
#[derive(Debug)]
pub(crate) struct ActiveSplit {
    /// The call's name without `_begin`.
    pub(crate) kind: &'static str,
    /// The address of the buffer.
    pub(crate) buffer: usize,
    pub(crate) split: engine::Split<u8>,
    /// Makes progress on the call's messages.
    #[expect(dead_code, reason = "kept for its drop")]
    pub(crate) registration: Option<ProgressRegistration>,
}

impl ActiveSplit {
    /// Waits until the call is complete, and makes progress on messages.
    pub(crate) fn wait(&self, transport: &MpiTransport) {
        if transport.is_one_node() {
            self.split.progress();
            if self.split.wait_for(backoff::YIELD_FOR) {
                return;
            }
        }
        backoff::until_over(transport, |bound| self.split.wait_for(bound));
        // The call's last messages may not have been sent yet, and other ranks wait for them.
        transport.make_progress();
    }
}

/// How long the end of the MPI waits for operations that were never completed.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// Creates a request of the host for an operation that has started. If the operation has
/// already succeeded, the host completes the request like any of its own.
pub(crate) fn enter(
    host: &'static Host,
    open: &OpenFile,
    request: engine::Request<u8>,
) -> Result<Request, Failure> {
    let unreported = request.unreported();
    let started = match request.into_result() {
        Ok(Ok(status)) => return callbacks::start_complete(host, status.bytes()),
        Ok(Err(error)) => Started::failed(open, error, unreported),
        Err(running) => Started::new(open, running),
    };
    let started = Arc::new(started);
    let handle = callbacks::start(host, &started)?;
    started.set_handle(handle);
    table::insert(handle, started);
    Ok(handle)
}

/// Waits a while for operations that the program never completed, then gives up. Nothing is
/// reported to the host or to other ranks.
pub(crate) fn finish_all_locally() {
    let end = Instant::now() + LAST_WAIT;
    for started in table::remove_all() {
        while !started.wait_for(backoff::LONGEST_SLEEP) && Instant::now() < end {}
        started.abandon();
    }
}
