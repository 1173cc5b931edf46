//! Waiting without burning cores and without long delays.

use std::fmt;
use std::hint;
use std::thread;
use std::time::{Duration, Instant};

use super::sleepers::{SleepWord, Sleepers};
use super::{Event, cores, looks};
use crate::{Result, TransportError};

/// How often to look before the first yield if nothing is known about the machine.
const LOOKS: u32 = 2;

/// Yields and sleeps are at most so many times longer where many ranks share a core, so that
/// the loss of a rank is noticed within about a second.
const CROWD_MAX: u32 = 64;

/// If ranks share cores, a rank yields for this long per rank on its core before it sleeps. With
/// 50 µs in all, whole cores went idle while sleepers were being woken: small collective writes
/// of 8, 16 and 64 ranks on two cores took 2.5 to 3.8 times as long, and twice the CPU time or more.
const TURN: Duration = Duration::from_micros(100);

/// How a rank waits: it looks a few times; then it yields its core for a short
/// time, because the peer may be about to answer or may need this very core; then
/// it sleeps, for a bounded time, again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// How often to look before the first yield.
    pub looks: u32,
    /// How long to yield before the first sleep.
    pub yield_for: Duration,
    /// The bound of the first sleep; each next one is twice as long.
    pub first_sleep: Duration,
    /// The bound of any sleep.
    pub longest_sleep: Duration,
    /// After how long to give up with [`TransportError::Timeout`].
    pub give_up_after: Option<Duration>,
}

impl Backoff {
    /// Yields for 50 µs and never gives up.
    pub const DEFAULT: Backoff = Backoff {
        looks: LOOKS,
        yield_for: Duration::from_micros(50),
        first_sleep: Duration::from_millis(1),
        longest_sleep: Duration::from_millis(16),
        give_up_after: None,
    };

    /// The same, for one of so many ranks on this machine. Where each has a core,
    /// it looks for longer before it yields for the first time. Where several share a
    /// core, it yields for longer, because each of the others may have work to do, and
    /// sleeps for longer: a sleeper is woken when there is something, and
    /// its own looks, every 16 ms, were a third of the CPU time of 1024 ranks.
    #[must_use]
    pub fn among(self, ranks: u32) -> Backoff {
        let crowd = ranks.div_ceil(cores::online()).clamp(1, CROWD_MAX);
        let is_crowded = Self::is_crowded(ranks);
        Backoff {
            looks: looks::looks(looks::look_time(), is_crowded),
            yield_for: match is_crowded {
                false => self.yield_for,
                true => self.yield_for.max(TURN * crowd),
            },
            first_sleep: self.first_sleep * crowd,
            longest_sleep: self.longest_sleep * crowd,
            ..self
        }
    }

    /// Whether so many ranks on this machine have to share its cores.
    #[must_use]
    pub fn is_crowded(ranks: u32) -> bool {
        ranks > cores::online()
    }

    /// Starts a wait, after the looks.
    #[must_use]
    pub fn start(self) -> BackoffState {
        BackoffState {
            since: Instant::now(),
            sleep: self.first_sleep,
            backoff: self,
        }
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The state of one wait: yields at first, then ever longer sleeps.
#[derive(Debug)]
pub struct BackoffState {
    backoff: Backoff,
    since: Instant,
    sleep: Duration,
}

impl BackoffState {
    /// Starts over, because what just happened makes more of it likely.
    pub fn restart(&mut self) {
        *self = self.backoff.start();
    }

    /// Yields, or calls `sleep`, which sleeps for at most the given time, and
    /// returns its result.
    pub fn rest<T>(&mut self, sleep: impl FnOnce(Duration) -> T) -> Option<T> {
        if self.since.elapsed() < self.backoff.yield_for {
            thread::yield_now();
            return None;
        }
        let result = sleep(self.sleep);
        self.sleep = (self.sleep * 2).min(self.backoff.longest_sleep);
        Some(result)
    }
}

/// Waits for conditions in shared memory.
///
/// Between sleeps it calls the progress hook: it keeps the host's progress
/// moving and checks that the peers are alive
/// ([`Transport::progress`](crate::Transport::progress) does both).
pub struct Waiter<'a> {
    backoff: Backoff,
    progress: &'a dyn Fn() -> Result<()>,
}

impl<'a> Waiter<'a> {
    /// A waiter that calls `progress` before each sleep and ends the wait with
    /// its error, unless the condition has come true.
    #[must_use]
    pub fn new(progress: &'a dyn Fn() -> Result<()>) -> Self {
        Waiter {
            backoff: Backoff::DEFAULT,
            progress,
        }
    }

    /// The same with another backoff.
    #[must_use]
    pub fn backoff(self, backoff: Backoff) -> Self {
        Waiter { backoff, ..self }
    }

    /// Returns what `ready` finds, calling it until it finds something or
    /// fails. `event` must be notified after each change that may make it so.
    pub fn wait<T>(&self, event: Event<'_>, ready: impl FnMut() -> Result<Option<T>>) -> Result<T> {
        self.wait_on(&event.sleepers(), ready)
    }

    pub(crate) fn wait_on<T>(
        &self,
        sleepers: &Sleepers<'_, impl SleepWord>,
        mut ready: impl FnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        if let Some(found) = ready()? {
            return Ok(found);
        }
        for _ in 0..looks::in_force(self.backoff.looks) {
            hint::spin_loop();
            if let Some(found) = ready()? {
                return Ok(found);
            }
        }
        let mut state = self.backoff.start();
        let start = state.since;
        loop {
            let found = state.rest(|bound| match self.progress_or_time_out(start) {
                // What the lost rank did before it was lost still counts.
                Err(error) => Some(ready().and_then(|found| found.ok_or(error))),
                Ok(()) => sleepers.sleep_unless(bound, || ready().transpose()),
            });
            if let Some(found) = found.flatten() {
                return found;
            }
            if let Some(found) = ready()? {
                return Ok(found);
            }
        }
    }

    fn progress_or_time_out(&self, start: Instant) -> Result<()> {
        (self.progress)()?;
        match self.backoff.give_up_after {
            Some(bound) if start.elapsed() >= bound => {
                Err(TransportError::Timeout { after: bound })
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Waiter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiter")
            .field("backoff", &self.backoff)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_come_after_yields_and_have_a_bound() {
        let backoff = Backoff::DEFAULT;
        let mut state = backoff.start();
        let mut slept = Vec::new();
        while slept.len() < 8 {
            slept.extend(state.rest(|bound| bound));
        }
        assert!(state.since.elapsed() >= backoff.yield_for);
        assert_eq!(slept[0], backoff.first_sleep);
        assert!(slept.is_sorted());
        assert_eq!(slept[7], backoff.longest_sleep);
        state.restart();
        assert_eq!(state.sleep, backoff.first_sleep);
    }

    #[test]
    fn a_restarted_wait_yields_first() {
        let backoff = Backoff {
            yield_for: Duration::from_secs(3600),
            ..Backoff::DEFAULT
        };
        let mut state = backoff.start();
        assert_eq!(state.rest(|bound| bound), None);
    }

    #[test]
    fn ranks_that_share_cores_yield_and_sleep_longer_up_to_a_bound() {
        let cores = cores::online();
        let alone = Backoff::DEFAULT.among(cores);
        assert_eq!(alone.yield_for, Backoff::DEFAULT.yield_for);
        assert_eq!(alone.longest_sleep, Backoff::DEFAULT.longest_sleep);
        let four_each = Backoff::DEFAULT.among(4 * cores);
        assert_eq!(four_each.yield_for, 4 * TURN);
        assert_eq!(four_each.longest_sleep, 4 * alone.longest_sleep);
        let crowd = Backoff::DEFAULT.among(1000 * cores);
        assert_eq!(crowd.yield_for, CROWD_MAX * TURN);
        assert_eq!(crowd.longest_sleep, CROWD_MAX * alone.longest_sleep);
        assert!(crowd.longest_sleep < Duration::from_millis(1100));
    }
}
