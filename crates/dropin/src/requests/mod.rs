//! Operations that a program has started and not completed.
//!
//! A nonblocking operation is a generalized request of the host's for the
//! program, and a [`Started`] here. Background threads carry it out and never
//! call the MPI; functions that complete requests
//! ([`crate::entry`]) look whether it is over, tell the host so and let the host
//! complete it with all others. [`table`] knows which handles are pario's.
//!
//! Errors cannot go through the host: it would call the handler of a
//! communicator. So the host is told of success only, and the function that
//! completes a request delivers the error ([`ParioRequests`]).

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
    /// Lets the host carry the call's messages.
    #[expect(dead_code, reason = "kept for its drop")]
    pub(crate) registration: Option<ProgressRegistration>,
}

impl ActiveSplit {
    /// Waits until the call is over, while messages move on.
    pub(crate) fn wait(&self, transport: &MpiTransport) {
        if transport.is_one_node() {
            self.split.progress();
            if self.split.wait_for(backoff::YIELD_FOR) {
                return;
            }
        }
        backoff::until_over(transport, |bound| self.split.wait_for(bound));
        // What the call said last may still be here, and other ranks wait for
        // it.
        transport.make_progress();
    }
}

/// How long the end of the MPI waits for operations that nobody completed.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// Makes a request of the host's for an operation that has started. One that
/// has succeeded already is the host's alone, to be completed by its functions as
/// any other request.
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

/// Waits a while for operations that the program never completed, then gives
/// them up. Nothing is told to the host or to other ranks.
pub(crate) fn finish_all_locally() {
    let end = Instant::now() + LAST_WAIT;
    for started in table::remove_all() {
        while !started.wait_for(backoff::LONGEST_SLEEP) && Instant::now() < end {}
        started.abandon();
    }
}
