//! From the first rank's start to the last rank's end.

use std::time::{Duration, Instant};

/// When one rank started and ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// After the barrier that lets all ranks start.
    pub(crate) start: Instant,
    /// After the file was closed.
    pub(crate) end: Instant,
}

/// Time from the earliest start to the latest end.
pub(crate) fn elapsed(spans: &[Span]) -> Duration {
    let start = spans.iter().map(|span| span.start).min();
    let end = spans.iter().map(|span| span.end).max();
    match (start, end) {
        (Some(start), Some(end)) => end.duration_since(start),
        _ => Duration::ZERO,
    }
}
