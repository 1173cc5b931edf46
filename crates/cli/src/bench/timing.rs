//! Speeds of repeated runs, and whether to believe them.

use std::time::Duration;

/// Repeats whose best and median differ by more than this fraction leave the best in doubt.
const DOUBTFUL_SPREAD: f64 = 0.3;

/// Runs shorter than this measure the clock and the scheduler more than the file system.
const SHORTEST_TRUSTED: Duration = Duration::from_millis(2);

/// How long each repeat of one thing took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(Vec<Duration>);

/// Why a speed may not be what it seems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Doubt {
    /// The repeats differ widely.
    Spread,
    /// The run is too short to time.
    Short,
}

impl Doubt {
    /// The mark behind a doubtful number.
    pub(crate) fn mark(self) -> char {
        match self {
            Doubt::Spread => '~',
            Doubt::Short => '<',
        }
    }

    /// Its name in results for programs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Doubt::Spread => "spread",
            Doubt::Short => "short",
        }
    }

    /// What the mark means and what to do about it.
    pub(crate) fn advice(self) -> String {
        match self {
            Doubt::Spread => format!(
                "~ best and median of the repeats differ by more than {:.0} %: \
                 quiet the machine, or raise --repeat or --scale",
                DOUBTFUL_SPREAD * 100.0
            ),
            Doubt::Short => format!(
                "< took less than {} ms, too short to time well: raise --scale",
                SHORTEST_TRUSTED.as_millis()
            ),
        }
    }
}

impl Samples {
    /// Adds a repeat.
    pub(crate) fn push(&mut self, took: Duration) {
        self.0.push(took);
    }

    /// Every repeat.
    pub(crate) fn all(&self) -> &[Duration] {
        &self.0
    }

    /// The shortest repeat; `None` before the first.
    pub(crate) fn best(&self) -> Option<Duration> {
        self.0.iter().min().copied()
    }

    /// Megabytes (10^6 bytes) a second of the best repeat.
    pub(crate) fn megabytes_per_second(&self, bytes: u64) -> Option<f64> {
        let seconds = self.best()?.as_secs_f64();
        (seconds > 0.0).then(|| bytes as f64 / seconds / 1e6)
    }

    /// Why the best repeat may mislead.
    pub(crate) fn doubt(&self) -> Option<Doubt> {
        let best = self.best()?;
        if best < SHORTEST_TRUSTED {
            return Some(Doubt::Short);
        }
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let median = sorted[sorted.len() / 2];
        let spread = median.as_secs_f64() / best.as_secs_f64() - 1.0;
        (spread > DOUBTFUL_SPREAD).then_some(Doubt::Spread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(millis: &[u64]) -> Samples {
        Samples(
            millis
                .iter()
                .map(|&millis| Duration::from_millis(millis))
                .collect(),
        )
    }

    #[test]
    fn the_best_repeat_counts() {
        let samples = samples(&[30, 20, 25]);
        assert_eq!(samples.best(), Some(Duration::from_millis(20)));
        assert_eq!(samples.megabytes_per_second(2_000_000), Some(100.0));
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
