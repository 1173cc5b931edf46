//! Threads that start at the same time.

use std::panic;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// Gives each share to its own thread. The time is from the first start to the last end,
/// without creating and joining threads. The first error is returned when all are done.
pub(super) fn together<T: Send, E: Send>(
    shares: Vec<T>,
    work: impl Fn(T) -> Result<(), E> + Sync,
) -> Result<Duration, E> {
    let barrier = Barrier::new(shares.len());
    let timed = |share| {
        barrier.wait();
        let start = Instant::now();
        work(share).map(|()| (start, Instant::now()))
    };
    let outcomes: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = shares
            .into_iter()
            .map(|share| scope.spawn(|| timed(share)))
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|outcome| outcome.unwrap_or_else(|panic| panic::resume_unwind(panic)))
            .collect()
    });
    let times = outcomes.into_iter().collect::<Result<Vec<_>, E>>()?;
    let start = times.iter().map(|(start, _)| *start).min();
    let end = times.iter().map(|(_, end)| *end).max();
    Ok(match (start, end) {
        (Some(start), Some(end)) => end - start,
        _ => Duration::ZERO,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn every_share_is_processed() {
        let seen = Mutex::new(Vec::new());
        let took = together(vec![1, 2, 3], |share| {
            thread::sleep(Duration::from_millis(2));
            seen.lock().unwrap().push(share);
            Ok::<_, ()>(())
        });
        assert!(took.unwrap() >= Duration::from_millis(2));
        let mut seen = seen.into_inner().unwrap();
        seen.sort_unstable();
        assert_eq!(seen, [1, 2, 3]);
    }

    #[test]
    fn an_error_is_returned() {
        let outcome = together(
            vec![1, 2],
            |share| if share == 2 { Err("two") } else { Ok(()) },
        );
        assert_eq!(outcome, Err("two"));
    }
}
