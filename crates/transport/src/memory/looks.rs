//! How often a waiting rank looks before it yields its core.
//!
//! A look includes the processor's pause instruction, which takes 10 ns on some processors and
//! ten times as long on others, so the number of looks follows from a measurement of some
//! microseconds in each process. Nothing depends on ranks having the same number.

use std::{
    hint,
    sync::{
        OnceLock,
        atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// How long to look where every rank has a core: as long as a small access of the file takes.
const ALONE: Duration = Duration::from_micros(5);
/// The same where others may need the core: an answer that is under way comes sooner than a
/// yield returns.
const CROWDED: Duration = Duration::from_nanos(50);
/// The largest numbers of looks, for clocks that are too coarse to measure one.
const ALONE_MAX: u32 = 2000;
const CROWDED_MAX: u32 = 20;

/// Looks per measurement, and the number of measurements, of which the shortest counts.
const MEASURED: u32 = 32;
const REPEATS: u32 = 3;

/// More than any number of looks that can be requested: none was.
const NOT_REQUESTED: u64 = u64::MAX;
static REQUESTED: AtomicU64 = AtomicU64::new(NOT_REQUESTED);

/// Sets the number of looks of all waits of this process that begin from now on.
pub fn request_looks(looks: u32) {
    REQUESTED.store(looks.into(), Relaxed);
}

/// The number of looks in force where a backoff has this one.
pub(super) fn in_force(of_backoff: u32) -> u32 {
    u32::try_from(REQUESTED.load(Relaxed)).unwrap_or(of_backoff)
}

/// The time of one look, measured when it is first asked for.
pub fn look_time() -> Duration {
    static TIME: OnceLock<Duration> = OnceLock::new();
    *TIME.get_or_init(|| {
        let word = AtomicU32::new(0);
        let time = |_| {
            let start = Instant::now();
            for _ in 0..MEASURED {
                hint::spin_loop();
                hint::black_box(word.load(Relaxed));
            }
            start.elapsed()
        };
        (0..REPEATS).map(time).min().unwrap_or_default() / MEASURED
    })
}

/// The number of looks on a machine where one takes so long.
pub(super) fn looks(look: Duration, is_crowded: bool) -> u32 {
    let (time, most) = match is_crowded {
        false => (ALONE, ALONE_MAX),
        true => (CROWDED, CROWDED_MAX),
    };
    let looks = time.as_nanos() / look.as_nanos().max(1);
    u32::try_from(looks).unwrap_or(most).clamp(1, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_pauses_make_for_few_looks() {
        let looks = |nanos, is_crowded| looks(Duration::from_nanos(nanos), is_crowded);
        assert_eq!((looks(25, false), looks(25, true)), (200, 2));
        assert_eq!((looks(100, false), looks(100, true)), (50, 1));
        assert_eq!((looks(0, false), looks(0, true)), (ALONE_MAX, CROWDED_MAX));
        assert_eq!(looks(1_000_000, false), 1);
    }

    #[test]
    fn a_look_is_measured_once() {
        assert!(look_time() < Duration::from_millis(1));
        assert_eq!(look_time(), look_time());
    }

    /// The only test of this process that requests looks.
    #[test]
    fn a_request_takes_precedence() {
        assert_eq!(in_force(7), 7);
        request_looks(0);
        assert_eq!(in_force(7), 0);
        REQUESTED.store(NOT_REQUESTED, Relaxed);
        assert_eq!(in_force(7), 7);
    }
}
