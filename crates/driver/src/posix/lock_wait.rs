//! Waiting for a lock of another description: a loop of bounded pauses.
//!
//! A lock that is free costs one system call, as if the kernel were left to
//! wait. Where it is not, short pauses grow, so that a lock that is held for
//! microseconds is taken about as soon as it is free, and one that is held for
//! seconds costs next to nothing. The kernel does not queue fairly either: it
//! wakes all who wait, and the first to ask again gets the lock.

use std::{
    io,
    ops::Range,
    thread,
    time::{Duration, Instant},
};

/// How long to yield before the first sleep: small accesses end sooner.
const YIELD_FOR: Duration = Duration::from_micros(50);
const FIRST_SLEEP: Duration = Duration::from_micros(50);
const LONGEST_SLEEP: Duration = Duration::from_millis(2);

/// How often to look which lock is in the way.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A lock that has not changed for so long is taken to be lost: no single
/// access takes that long.
const GIVE_UP_AFTER: Duration = Duration::from_secs(15 * 60);

/// One wait.
#[derive(Debug)]
pub(crate) struct LockWait {
    since: Instant,
    yield_for: Duration,
    sleep: Duration,
    look_at: Instant,
    /// The lock in the way, and since when it has been there.
    in_the_way: Option<(Range<u64>, Instant)>,
    give_up_after: Duration,
}

impl LockWait {
    pub(crate) fn new() -> LockWait {
        let now = Instant::now();
        LockWait {
            since: now,
            yield_for: YIELD_FOR,
            sleep: FIRST_SLEEP,
            look_at: now + LOOK_EVERY,
            in_the_way: None,
            give_up_after: GIVE_UP_AFTER,
        }
    }

    /// As [`new`](Self::new), but yields for another time before the first sleep.
    pub(crate) fn yielding(yield_for: Duration) -> LockWait {
        LockWait {
            yield_for,
            ..LockWait::new()
        }
    }

    /// Rests for a moment; `look` tells which lock is in the way of `wanted`.
    /// An error once the same one has been for too long.
    pub(crate) fn pause(
        &mut self,
        wanted: &Range<u64>,
        look: impl FnOnce() -> io::Result<Option<Range<u64>>>,
    ) -> io::Result<()> {
        let now = Instant::now();
        if now - self.since < self.yield_for {
            thread::yield_now();
            return Ok(());
        }
        if now >= self.look_at {
            self.look_at = now + LOOK_EVERY;
            // Only for what the error would say.
            self.note(look().unwrap_or(None), now);
            self.check(wanted, now)?;
        }
        thread::sleep(self.sleep);
        self.sleep = (self.sleep * 2).min(LONGEST_SLEEP);
        Ok(())
    }

    fn note(&mut self, found: Option<Range<u64>>, now: Instant) {
        let known = self.in_the_way.take();
        self.in_the_way = found.map(|found| match known {
            Some((range, since)) if range == found => (range, since),
            _ => (found, now),
        });
    }

    fn check(&self, wanted: &Range<u64>, now: Instant) -> io::Result<()> {
        match &self.in_the_way {
            Some((range, since)) if now - *since >= self.give_up_after => {
                let message = format!(
                    "bytes {}..{} of the file cannot be locked: another process has held a lock \
                     on bytes {}..{} for {} s",
                    wanted.start,
                    wanted.end,
                    range.start,
                    range.end,
                    (now - *since).as_secs()
                );
                Err(io::Error::new(io::ErrorKind::TimedOut, message))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn impatient() -> LockWait {
        LockWait {
            give_up_after: Duration::ZERO,
            look_at: Instant::now(),
            ..LockWait::new()
        }
    }

    /// Pauses until `found` makes an error, at most a few times.
    fn ends_with(wait: &mut LockWait, found: Option<Range<u64>>) -> Option<io::Error> {
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(20) {
            if let Err(error) = wait.pause(&(5..6), || Ok(found.clone())) {
                return Some(error);
            }
        }
        None
    }

    #[test]
    fn a_lock_that_never_goes_is_named_in_the_end() {
        let error = ends_with(&mut impatient(), Some(0..10)).expect("an end");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().contains("bytes 0..10"), "{error}");
    }

    #[test]
    fn locks_that_come_and_go_are_waited_for() {
        assert!(ends_with(&mut impatient(), None).is_none());
        let mut wait = LockWait::new();
        let start = Instant::now();
        for at in 0..3 {
            wait.note(Some(at..10), start + GIVE_UP_AFTER * at as u32);
            wait.check(&(5..6), start + GIVE_UP_AFTER * at as u32)
                .unwrap();
        }
        wait.check(&(5..6), start + GIVE_UP_AFTER * 3).unwrap_err();
    }
}
