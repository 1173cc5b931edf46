//! How a rank waits for an operation: it yields at first, then sleeps, and makes progress on
//! the host's messages in between.

use std::time::Duration;

use pario_mpi::{Moved, MpiTransport, progress_registered};
use pario_transport::Backoff;

/// How long to yield before the first sleep, and after each message.
pub(super) const YIELD_FOR: Duration = Duration::from_micros(50);
/// The program's own messages wait no longer than this.
pub(super) const LONGEST_SLEEP: Duration = Duration::from_millis(1);

pub(super) const BACKOFF: Backoff = Backoff {
    looks: 0,
    yield_for: YIELD_FOR,
    first_sleep: Duration::from_micros(100),
    longest_sleep: LONGEST_SLEEP,
    give_up_after: None,
};

/// Waits for an operation on a thread that may call the MPI: `wait_for` waits for at most the
/// given time and returns whether the operation is complete.
pub(super) fn until_over(transport: &MpiTransport, wait_for: impl Fn(Duration) -> bool) {
    let mut state = BACKOFF.start();
    while !wait_for(Duration::ZERO) {
        let moved = progress_registered().or(transport.make_progress());
        if moved == Moved::Something {
            state.restart();
        }
        state.rest(&wait_for);
    }
}
