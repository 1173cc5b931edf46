//! How a rank waits for an operation: it yields at first, then sleeps, and makes progress on
//! the host's messages in between.

use std::thread;
use std::time::{Duration, Instant};

use pario_mpi::{Moved, MpiTransport, progress_registered};

/// How long to yield before the first sleep, and after each message.
pub(super) const YIELD_FOR: Duration = Duration::from_micros(50);
const FIRST_SLEEP: Duration = Duration::from_micros(100);
/// The program's own messages wait no longer than this.
pub(super) const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// Waits for an operation on a thread that may call the MPI: `wait_for` waits for at most the
/// given time and returns whether the operation is complete.
pub(super) fn until_over(transport: &MpiTransport, wait_for: impl Fn(Duration) -> bool) {
    let mut backoff = Backoff::new();
    while !wait_for(Duration::ZERO) {
        let moved = progress_registered().or(transport.make_progress());
        if moved == Moved::Something {
            backoff.restart();
        }
        backoff.rest(|bound| {
            wait_for(bound);
        });
    }
}

/// The state of one wait.
#[derive(Debug)]
pub(super) struct Backoff {
    since: Instant,
    sleep: Duration,
}

impl Backoff {
    pub(super) fn new() -> Backoff {
        Backoff {
            since: Instant::now(),
            sleep: FIRST_SLEEP,
        }
    }

    /// Starts over after something happened, because more is likely to follow.
    pub(super) fn restart(&mut self) {
        *self = Backoff::new();
    }

    /// Yields or sleeps; `sleep` sleeps for at most the given time.
    pub(super) fn rest(&mut self, sleep: impl FnOnce(Duration)) {
        if self.since.elapsed() < YIELD_FOR {
            thread::yield_now();
            return;
        }
        sleep(self.sleep);
        self.sleep = (self.sleep * 2).min(LONGEST_SLEEP);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_come_after_yields_and_stay_short() {
        let mut backoff = Backoff::new();
        let mut slept = Vec::new();
        while slept.len() < 8 {
            backoff.rest(|bound| slept.push(bound));
        }
        assert!(backoff.since.elapsed() >= YIELD_FOR);
        assert_eq!(slept[0], FIRST_SLEEP);
        assert!(slept.is_sorted());
        assert_eq!(slept[7], LONGEST_SLEEP);
        backoff.restart();
        backoff.rest(|_| panic!("it yields first"));
    }
}
