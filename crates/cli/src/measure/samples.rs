//! Times of repeated runs, and whether they are reliable.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::time::Duration;

use serde::{Serialize, Serializer};

/// Best and median of the repeats may differ by this fraction.
const SPREAD_MAX: f64 = 0.3;

/// A second repeat within this fraction of the best confirms it.
const CONFIRMED_WITHIN: f64 = 0.05;

/// Shorter runs measure the clock and the scheduler rather than the file system.
const SHORTEST: Duration = Duration::from_millis(2);

/// The times of the repeats of one measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Samples(Vec<Duration>);

/// Why a figure may be misleading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Doubt {
    /// The repeats differ widely.
    Spread,
    /// The run is too short to time.
    Short,
}

impl Doubt {
    /// The doubt about repeats with this best and median.
    pub(crate) fn of_spread(best: f64, median: f64) -> Option<Doubt> {
        (median / best - 1.0 > SPREAD_MAX).then_some(Doubt::Spread)
    }

    /// Follows a doubtful number in tables.
    pub(crate) fn mark(self) -> char {
        match self {
            Doubt::Spread => '~',
            Doubt::Short => '?',
        }
    }

    /// The meaning of the mark and what to do about it; `size` is the option that makes runs longer.
    fn advice(self, size: &str) -> String {
        match self {
            Doubt::Spread => format!(
                "~ best and median of the repeats differ by more than {:.0} %: use an idle machine, \
                 or raise --repeats or {size}",
                SPREAD_MAX * 100.0
            ),
            Doubt::Short => format!(
                "? took less than {} ms, too short to time accurately: raise {size}",
                SHORTEST.as_millis()
            ),
        }
    }
}

/// Explains the marks in a table that has these doubts.
pub(crate) fn print_doubts(
    doubts: impl Iterator<Item = Doubt>,
    size: &str,
    out: &mut impl Write,
) -> io::Result<()> {
    let doubts: BTreeSet<_> = doubts.collect();
    doubts
        .iter()
        .try_for_each(|doubt| writeln!(out, "{}", doubt.advice(size)))
}

impl Samples {
    pub(crate) const fn new() -> Self {
        Samples(Vec::new())
    }

    pub(crate) fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    pub(crate) fn all(&self) -> &[Duration] {
        &self.0
    }

    /// The shortest repeat; `None` before the first.
    pub(crate) fn best(&self) -> Option<Duration> {
        self.0.iter().min().copied()
    }

    pub(crate) fn best_seconds(&self) -> Option<f64> {
        self.best().map(|it| it.as_secs_f64())
    }

    /// Megabytes (10^6 bytes) per second of the best repeat.
    pub(crate) fn megabytes_per_second(&self, bytes: u64) -> Option<f64> {
        let seconds = self.best_seconds()?;
        (seconds > 0.0).then(|| bytes as f64 / seconds / 1e6)
    }

    /// Speed relative to another's, for the same number of bytes.
    pub(crate) fn speed_over(&self, other: &Samples) -> Option<f64> {
        let (own, other) = (self.best_seconds()?, other.best_seconds()?);
        (own > 0.0).then(|| other / own)
    }

    /// Whether the best time was reached more than once.
    pub(crate) fn is_confirmed(&self) -> bool {
        let Some(best) = self.best() else {
            return false;
        };
        let limit = best.mul_f64(1.0 + CONFIRMED_WITHIN);
        self.0.iter().filter(|time| **time <= limit).count() > 1
    }

    /// Why the figure may be misleading.
    pub(crate) fn doubt(&self) -> Option<Doubt> {
        let best = self.best()?;
        if best < SHORTEST {
            return Some(Doubt::Short);
        }
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let median = sorted[sorted.len() / 2];
        Doubt::of_spread(best.as_secs_f64(), median.as_secs_f64())
    }

    /// Speed in a table: a mark follows if it is doubtful, otherwise a blank, so that digits align.
    pub(crate) fn speed_cell(&self, bytes: u64) -> String {
        let mark = self.doubt().map_or(' ', Doubt::mark);
        let speed = self.megabytes_per_second(bytes);
        speed.map_or_else(|| "-".to_owned(), |speed| format!("{speed:.0}{mark}"))
    }
}

/// Every repeat, in seconds.
impl Serialize for Samples {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Duration::as_secs_f64))
    }
}

impl FromIterator<Duration> for Samples {
    fn from_iter<I: IntoIterator<Item = Duration>>(times: I) -> Self {
        Samples(times.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(millis: &[u64]) -> Samples {
        millis.iter().copied().map(Duration::from_millis).collect()
    }

    #[test]
    fn the_best_repeat_counts() {
        let samples = samples(&[30, 20, 25]);
        assert_eq!(samples.best(), Some(Duration::from_millis(20)));
        assert_eq!(samples.megabytes_per_second(2_000_000), Some(100.0));
        assert_eq!(samples.speed_cell(2_000_000), "100 ");
    }

    #[test]
    fn a_second_repeat_confirms_the_best() {
        assert!(!samples(&[]).is_confirmed());
        assert!(!samples(&[100]).is_confirmed());
        assert!(!samples(&[100, 106]).is_confirmed());
        assert!(samples(&[100, 150, 105]).is_confirmed());
    }

    #[test]
    fn wide_spread_and_short_runs_are_doubted() {
        assert_eq!(samples(&[10, 11, 12]).doubt(), None);
        assert_eq!(
            samples(&[10, 11, 90]).doubt(),
            None,
            "one outlier leaves the best confirmed"
        );
        assert_eq!(samples(&[10, 20, 30]).doubt(), Some(Doubt::Spread));
        assert_eq!(samples(&[1, 1, 1]).doubt(), Some(Doubt::Short));
        assert_eq!(samples(&[]).doubt(), None);
    }
}
