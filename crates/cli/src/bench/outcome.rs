//! What a rank found out: when it worked, what moved, or why it stopped.

use std::ops::Range;
use std::time::Duration;

/// A rank's run, in nanoseconds of a clock that all ranks share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// From the barrier that lets all ranks start to the end of its close.
    pub(crate) span: Range<u64>,
    /// From the end of its open to the start of its close.
    pub(crate) calls: Range<u64>,
    /// When it was moving data between memory and file, if that was recorded.
    pub(crate) transfers: Vec<Range<u64>>,
}

/// Why a rank stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Data is not what it should be.
    Wrong(String),
    /// The method cannot be used here.
    Unavailable(String),
    /// Other ranks have gone; they know why.
    Lost(String),
    /// A call failed.
    Failed(String),
}

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

/// The first byte of an encoded result.
const DONE: u8 = 0;
const WRONG: u8 = 1;
const UNAVAILABLE: u8 = 2;
const LOST: u8 = 3;
const FAILED: u8 = 4;

impl Outcome {
    /// A result as bytes, for the way between processes.
    pub(crate) fn encode(result: &Result<Outcome, Stop>) -> Vec<u8> {
        let stopped = |tag: u8, text: &String| [&[tag], text.as_bytes()].concat();
        match result {
            Ok(outcome) => {
                let ranges = [&outcome.span, &outcome.calls].into_iter();
                let ranges = ranges.chain(&outcome.transfers);
                let numbers = ranges.flat_map(|it| [it.start, it.end]);
                let mut bytes = vec![DONE];
                bytes.extend(numbers.flat_map(u64::to_ne_bytes));
                bytes
            }
            Err(Stop::Wrong(text)) => stopped(WRONG, text),
            Err(Stop::Unavailable(text)) => stopped(UNAVAILABLE, text),
            Err(Stop::Lost(text)) => stopped(LOST, text),
            Err(Stop::Failed(text)) => stopped(FAILED, text),
        }
    }

    /// What was encoded.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Outcome, Stop> {
        let Some((tag, rest)) = bytes.split_first() else {
            return Err(Stop::Failed("a rank said nothing".to_owned()));
        };
        let text = || String::from_utf8_lossy(rest).into_owned();
        match *tag {
            DONE => Ok(Outcome::from_numbers(rest)),
            WRONG => Err(Stop::Wrong(text())),
            UNAVAILABLE => Err(Stop::Unavailable(text())),
            LOST => Err(Stop::Lost(text())),
            _ => Err(Stop::Failed(text())),
        }
    }

    fn from_numbers(bytes: &[u8]) -> Outcome {
        let numbers: Vec<_> = bytes
            .chunks_exact(size_of::<u64>())
            .map(|it| u64::from_ne_bytes(it.try_into().expect("chunks have that size")))
            .collect();
        let mut ranges = numbers.chunks_exact(2).map(|it| it[0]..it[1]);
        Outcome {
            span: ranges.next().unwrap_or_default(),
            calls: ranges.next().unwrap_or_default(),
            transfers: ranges.collect(),
        }
    }
}

/// Time of it all.
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

/// Time of what all ranks do: from the earliest start to the latest end.
fn stretch(ranks: impl Iterator<Item = Range<u64>> + Clone) -> Duration {
    let start = ranks.clone().map(|it| it.start).min();
    let end = ranks.map(|it| it.end).max();
    let nanoseconds = end.unwrap_or(0).saturating_sub(start.unwrap_or(0));
    Duration::from_nanos(nanoseconds)
}

/// The share of the time in which some rank was moving data between memory and file.
pub(crate) fn transfer_share(outcomes: &[Outcome]) -> f64 {
    let mut busy: Vec<_> = outcomes
        .iter()
        .flat_map(|it| it.transfers.clone())
        .collect();
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
    fn results_survive_the_way_between_processes() {
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
            assert_eq!(Outcome::decode(&Outcome::encode(&result)), result);
        }
        assert!(Outcome::decode(&[]).is_err());
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
