//! Waiting for a lock of another description: a loop of bounded pauses.
//!
//! A lock that is free costs one system call, as if the kernel were left to
//! wait. Where it is not, short pauses grow, so that a lock that is held for
//! microseconds is taken about as soon as it is free, and one that is held for
//! seconds costs next to nothing. The kernel does not queue fairly either: it
//! wakes all who wait, and the first to ask again gets the lock.
//!
//! Where a try is a request to a server, so is everything that the holder does,
//! and most holders do what this rank is about to do: read and write back a
//! range of this length. So the time that the refused request took tells how long
//! the lock will be held, and the pauses are of that order. They are random,
//! because several ranks that were refused at the same time would otherwise ask
//! again at the same time.

use std::{
    hash::{BuildHasher, RandomState},
    io,
    ops::Range,
    thread,
    time::{Duration, Instant},
};

use crate::lock::OnConflict;

/// How long to yield before the first sleep: small accesses end sooner.
const YIELD_FOR: Duration = Duration::from_micros(50);
const FIRST_SLEEP: Duration = Duration::from_micros(50);
const LONGEST_SLEEP: Duration = Duration::from_millis(2);

/// A refusal that took longer came from a server.
const LOCAL_REFUSAL: Duration = Duration::from_micros(20);
/// Bytes that a server is assumed to move per request, and how much longer that
/// takes than to refuse a lock.
const REQUEST_BYTES: u64 = 256 << 10;
const REQUEST_REFUSALS: u32 = 2;
/// How much longer than a lock is expected to be held pauses become: others who
/// come later may be faster.
const HOLDS_MAX: u32 = 4;
/// However long requests take: the process may have been stopped during one.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

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
    /// How long the shortest refusal took, and how many there were: a single one may
    /// have been long because other processes ran.
    refusal: Duration,
    refusals: u32,
    /// The length of the next pause after a refusal by a server, in expected
    /// holds.
    holds: u32,
    look_at: Instant,
    /// The lock in the way, and since when it has been there.
    in_the_way: Option<(Range<u64>, Instant)>,
    give_up_after: Duration,
}

impl LockWait {
    /// Tries to take a lock on `wanted` until that succeeds, or once if `on_conflict` does not allow
    /// waiting; `look` tells which lock is in the way.
    pub(crate) fn take(
        wanted: &Range<u64>,
        on_conflict: OnConflict,
        mut attempt: impl FnMut() -> io::Result<bool>,
        look: impl Fn() -> io::Result<Option<Range<u64>>>,
    ) -> io::Result<bool> {
        let mut wait = LockWait::new();
        loop {
            let tried = Instant::now();
            let is_taken = attempt()?;
            if is_taken || on_conflict == OnConflict::Try {
                return Ok(is_taken);
            }
            wait.pause(wanted, tried, &look)?;
        }
    }

    pub(crate) fn new() -> LockWait {
        let now = Instant::now();
        LockWait {
            since: now,
            yield_for: YIELD_FOR,
            sleep: FIRST_SLEEP,
            refusal: Duration::MAX,
            refusals: 0,
            holds: 1,
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

    /// Rests for a moment, after a try that began at `tried`; `look` tells which
    /// lock is in the way of `wanted`. An error once the same one has been for too
    /// long.
    pub(crate) fn pause(
        &mut self,
        wanted: &Range<u64>,
        tried: Instant,
        look: impl FnOnce() -> io::Result<Option<Range<u64>>>,
    ) -> io::Result<()> {
        let now = Instant::now();
        self.refusal = self.refusal.min(now - tried);
        self.refusals = self.refusals.saturating_add(1);
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
        let pause = self.next_pause(wanted, RandomState::new().hash_one(()));
        thread::sleep(pause);
        Ok(())
    }

    /// How long to rest. `random` is any number.
    fn next_pause(&mut self, wanted: &Range<u64>, random: u64) -> Duration {
        let local = self.sleep;
        self.sleep = (self.sleep * 2).min(LONGEST_SLEEP);
        if self.refusal < LOCAL_REFUSAL || self.refusals < 2 {
            return local;
        }
        let pause = self.expected_hold(wanted) * self.holds;
        self.holds = (self.holds * 2).min(HOLDS_MAX);
        // From half to one and a half times as long.
        let percent = 50 + (random % 101) as u32;
        (pause / 100 * percent).clamp(local, LONGEST_PAUSE)
    }

    /// How long a holder of such a range needs to read it, write it and
    /// release it.
    fn expected_hold(&self, wanted: &Range<u64>) -> Duration {
        let len = wanted.end.saturating_sub(wanted.start);
        let transfers = 2 * len.div_ceil(REQUEST_BYTES).min(64) as u32;
        self.refusal.min(LONGEST_PAUSE) * (2 + REQUEST_REFUSALS * transfers)
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
            if let Err(error) = wait.pause(&(5..6), Instant::now(), || Ok(found.clone())) {
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

    /// Pauses of the local file system, whatever the random number.
    #[test]
    fn a_local_lock_is_asked_for_every_two_milliseconds() {
        let mut wait = LockWait::new();
        wait.refusal = Duration::from_micros(2);
        wait.refusals = 2;
        let pauses: Vec<_> = (0..8).map(|i| wait.next_pause(&(0..1 << 20), i)).collect();
        assert_eq!((pauses[0], pauses[7]), (FIRST_SLEEP, LONGEST_SLEEP));
    }

    #[test]
    fn a_server_is_asked_again_after_the_time_of_an_access() {
        let mut wait = LockWait::new();
        wait.refusal = Duration::from_millis(1);
        wait.refusals = 2;
        // Two requests to read, two to write, one to commit, one to unlock: 10 ms.
        let range = 0..400_000;
        let [low, mid, high] = [0, 50, 100].map(|random| wait.next_pause(&range, random));
        let millis = Duration::from_millis;
        assert_eq!([low, mid, high], [millis(5), millis(20), millis(60)]);
        assert_eq!(wait.next_pause(&range, 50), millis(40));
    }

    /// A process that was stopped while it asked does not wait for minutes.
    #[test]
    fn a_slow_refusal_does_not_make_endless_pauses() {
        let mut wait = LockWait::new();
        wait.refusal = Duration::from_secs(60);
        wait.refusals = 2;
        assert_eq!(wait.next_pause(&(0..u64::MAX), 100), LONGEST_PAUSE);
    }

    #[test]
    fn one_slow_refusal_is_not_taken_for_a_server() {
        let mut wait = LockWait::new();
        wait.refusal = Duration::from_millis(4);
        wait.refusals = 1;
        assert_eq!(wait.next_pause(&(0..1 << 20), 100), FIRST_SLEEP);
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
