//! The outcome of a rank: its times and transfers, or why it stopped.

use std::ops::Range;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A rank's run, in nanoseconds of a clock that all ranks share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// From the barrier that lets all ranks start to the end of its close.
    pub(crate) span: Range<u64>,
    /// From the end of its open to the start of its close.
    pub(crate) calls: Range<u64>,
    /// When it was moving data between memory and file, if that was recorded.
    pub(crate) transfers: Vec<Range<u64>>,
}

/// Why a rank stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Stop {
    /// The data is wrong.
    Wrong(String),
    /// The method cannot be used here.
    Unavailable(String),
    /// Other ranks have exited; they report the reason.
    Lost(String),
    Failed(String),
}

/// The outcome of a rank.
pub(crate) type RankResult = Result<Outcome, Stop>;

impl From<pario::Error> for Stop {
    fn from(error: pario::Error) -> Self {
        let text = error.to_string();
        match error.kind() {
            pario::ErrorKind::PeerLost => Stop::Lost(text),
            pario::ErrorKind::UnsupportedOperation => Stop::Unavailable(text),
            _ => Stop::Failed(text),
        }
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Stop::Failed(error.to_string())
    }
}

/// A result for other processes.
pub(crate) fn encode(result: &RankResult) -> Vec<u8> {
    serde_json::to_vec(result).expect("ranges of numbers and texts have a JSON form")
}

/// The result of another process.
pub(crate) fn decode(bytes: &[u8]) -> RankResult {
    serde_json::from_slice(bytes).unwrap_or_else(|error| {
        Err(Stop::Failed(format!(
            "cannot parse a rank's result: {error}"
        )))
    })
}

/// Time from the first rank's start to the last one's close.
pub(crate) fn elapsed(outcomes: &[Outcome]) -> Duration {
    stretch(outcomes.iter().map(|it| it.span.clone()))
}

/// Time of the calls.
pub(crate) fn calls_elapsed(outcomes: &[Outcome]) -> Duration {
    stretch(outcomes.iter().map(|it| it.calls.clone()))
}

/// Time of open and of close.
pub(crate) fn open_close_elapsed(outcomes: &[Outcome]) -> Duration {
    let open = stretch(outcomes.iter().map(|it| it.span.start..it.calls.start));
    let close = stretch(outcomes.iter().map(|it| it.calls.end..it.span.end));
    open + close
}

/// From the earliest start to the latest end.
fn stretch(ranks: impl Iterator<Item = Range<u64>> + Clone) -> Duration {
    let start = ranks.clone().map(|it| it.start).min();
    let end = ranks.map(|it| it.end).max();
    let nanoseconds = end.unwrap_or(0).saturating_sub(start.unwrap_or(0));
    Duration::from_nanos(nanoseconds)
}

/// The share of the time in which some rank was moving data between memory and file.
pub(crate) fn transfer_share(outcomes: &[Outcome]) -> f64 {
    let mut busy: Vec<_> = outcomes.iter().flat_map(|it| &it.transfers).collect();
    busy.sort_unstable_by_key(|it| it.start);
    let (mut sum, mut until) = (0, 0);
    for range in busy {
        let start = range.start.max(until);
        sum += range.end.saturating_sub(start);
        until = until.max(range.end);
    }
    sum as f64 / (elapsed(outcomes).as_nanos() as f64).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_pass_between_processes() {
        let outcome = Outcome {
            span: 3..1 << 40,
            calls: 5..1 << 39,
            transfers: vec![4..5, 7..9],
        };
        for result in [
            Ok(outcome),
            Ok(Outcome::default()),
            Err(Stop::Wrong("byte 3".to_owned())),
            Err(Stop::Unavailable("no".to_owned())),
            Err(Stop::Lost(String::new())),
            Err(Stop::Failed("disk".to_owned())),
        ] {
            assert_eq!(decode(&encode(&result)), result);
        }
        assert!(decode(&[]).is_err());
    }

    #[test]
    fn shares_count_overlapping_transfers_once() {
        let rank = |span: Range<u64>, transfers: &[Range<u64>]| Outcome {
            span,
            transfers: transfers.to_vec(),
            ..Outcome::default()
        };
        let outcomes = [
            rank(0..90, &[10..20, 15..30]),
            rank(10..100, &[25..40, 90..100]),
        ];
        assert_eq!(elapsed(&outcomes), Duration::from_nanos(100));
        assert!((transfer_share(&outcomes) - 0.4).abs() < 1e-9);
        assert_eq!(transfer_share(&[]), 0.0);
    }

    #[test]
    fn open_calls_and_close_last_from_the_first_rank_to_the_last() {
        let rank = |span, calls| Outcome {
            span,
            calls,
            transfers: Vec::new(),
        };
        let outcomes = [rank(10..90, 20..80), rank(0..100, 25..70)];
        assert_eq!(elapsed(&outcomes), Duration::from_nanos(100));
        assert_eq!(calls_elapsed(&outcomes), Duration::from_nanos(60));
        assert_eq!(open_close_elapsed(&outcomes), Duration::from_nanos(25 + 30));
        assert_eq!(open_close_elapsed(&[]), Duration::ZERO);
    }
}
