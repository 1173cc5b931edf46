//! Whether it is clear which method is the best, and how often methods are repeated until it is.

use super::row::Row;
use crate::measure::{DIRECTIONS, Direction};

/// How often each method runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeats {
    /// As often as requested.
    Exactly(u32),
    /// At least [`REPEATS_MIN`] times; the fastest methods until they are ranked, at most [`REPEATS_MAX`]
    /// times.
    UntilRanked,
}

/// By default, each method runs at least this often.
pub(crate) const REPEATS_MIN: u32 = 5;
/// By default, the fastest methods run at most this often.
pub(crate) const REPEATS_MAX: u32 = 30;

/// A method that takes longer than the best by more than this fraction will not turn out to be
/// the best.
const LEAD_MAX: f64 = 0.15;

impl Repeats {
    /// How often every method runs.
    pub(crate) fn of_all(self) -> u32 {
        match self {
            Repeats::Exactly(repeats) => repeats,
            Repeats::UntilRanked => REPEATS_MIN,
        }
    }

    /// How often the fastest methods run.
    pub(crate) fn of_fastest(self) -> u32 {
        match self {
            Repeats::Exactly(repeats) => repeats,
            Repeats::UntilRanked => REPEATS_MAX,
        }
    }
}

/// Whether the fastest methods in one direction, of those that pario could have chosen, have
/// reached their best times more than once.
pub(crate) fn is_settled(rows: &[Row], direction: Direction) -> bool {
    fastest(rows, direction).all(|row| row.side(direction).samples.is_confirmed())
}

/// The places of the methods that another repeat may rank differently.
pub(crate) fn unsettled(rows: &[Row]) -> Vec<usize> {
    let directions = DIRECTIONS.into_iter().filter(|it| !is_settled(rows, *it));
    let directions: Vec<_> = directions.collect();
    let is_fast = |row: &Row| {
        let mut fast = directions.iter().flat_map(|it| fastest(rows, *it));
        fast.any(|it| std::ptr::eq(it, row))
    };
    let places = rows.iter().enumerate().filter(|(_, row)| is_fast(row));
    places.map(|(place, _)| place).collect()
}

/// The methods that are, or may turn out to be, the best.
fn fastest(rows: &[Row], direction: Direction) -> impl Iterator<Item = &Row> {
    let seconds = move |row: &Row| row.side(direction).samples.best_seconds();
    let candidates = rows.iter().filter(|row| row.method.is_choosable());
    let best = candidates
        .clone()
        .filter_map(seconds)
        .min_by(f64::total_cmp);
    let limit = best.map_or(0.0, |best| best * (1.0 + LEAD_MAX));
    candidates.filter(move |row| seconds(row).is_some_and(|it| it <= limit))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::method::Method;
    use super::*;

    fn row(name: &str, micros: &[u64]) -> Row {
        let mut row = Row::new(Method::parse(name).unwrap());
        for micros in micros {
            let samples = &mut row.side_mut(Direction::Write).samples;
            samples.push(Duration::from_micros(*micros));
        }
        row
    }

    #[test]
    fn only_methods_near_the_best_are_repeated_and_only_until_a_repeat_confirms_them() {
        let mut rows = vec![
            row("automatic", &[1100, 1110]),
            row("two-phase", &[1000, 1200]),
            row("individual", &[2000, 9000]),
        ];
        assert_eq!(unsettled(&rows), [0, 1]);
        assert!(!is_settled(&rows, Direction::Write));
        assert!(is_settled(&rows, Direction::Read), "nothing was read");
        let again = Duration::from_micros(1010);
        rows[1].side_mut(Direction::Write).samples.push(again);
        assert!(unsettled(&rows).is_empty());
        assert!(is_settled(&rows, Direction::Write));
    }

    #[test]
    fn what_pario_cannot_choose_does_not_count() {
        let rows = vec![
            Row::new(Method::raw()),
            row("automatic", &[1000, 1001]),
            row("automatic+mem", &[500, 900]),
        ];
        assert!(unsettled(&rows).is_empty());
    }
}
