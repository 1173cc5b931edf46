//! The results of methods on one job.

use std::time::Duration;

use super::method::Method;
use super::options::Target;
use crate::measure::{Direction, Samples};

/// A method that takes longer than this per repeat is not repeated: it is far from the best,
/// and a trace of its millions of calls would not fit into memory.
const REPEATED_MAX: Duration = Duration::from_secs(2);

/// The results of one method in one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Side {
    /// Times of the repeats, from open to close.
    pub(crate) samples: Samples,
    /// Times of their calls, without open and close.
    pub(crate) calls: Samples,
    /// Times of their open and close.
    pub(crate) open_close: Samples,
    /// The share of the time in which data moved between memory and file.
    pub(crate) transfer_share: Option<f64>,
    /// Why the method does not support this.
    pub(crate) unavailable: Option<String>,
}

impl Side {
    /// Microseconds per call, including set_view where the workload calls it, in the repeat where they are lowest.
    pub(crate) fn microseconds_per_call(&self, calls: u64) -> Option<f64> {
        Some(self.calls.best_seconds()? * 1e6 / calls.max(1) as f64)
    }

    /// Microseconds of open and close, in the repeat where they are lowest.
    pub(crate) fn microseconds_open_close(&self) -> Option<f64> {
        Some(self.open_close.best_seconds()? * 1e6)
    }
}

/// The results of one method.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) method: Method,
    /// In the order of `DIRECTIONS`.
    sides: [Side; 2],
}

impl Row {
    /// A method that has not run yet.
    pub(crate) fn new(method: Method) -> Self {
        Row {
            method,
            sides: Default::default(),
        }
    }

    pub(crate) fn side(&self, direction: Direction) -> &Side {
        &self.sides[direction as usize]
    }

    pub(crate) fn side_mut(&mut self, direction: Direction) -> &mut Side {
        &mut self.sides[direction as usize]
    }

    /// Whether it cannot be measured at all.
    pub(crate) fn is_unavailable(&self) -> bool {
        self.sides.iter().all(|side| side.unavailable.is_some())
    }

    /// Whether it is worth another repeat.
    pub(crate) fn is_worth_repeating(&self) -> bool {
        let repeats = self.sides.each_ref().map(|side| side.samples.all());
        let took: Duration = repeats.iter().copied().flatten().sum();
        let count = repeats.map(<[_]>::len).into_iter().max();
        count == Some(0) || took < REPEATED_MAX * count.unwrap_or(1) as u32
    }
}

/// The results of all methods on one job; the first row is raw POSIX.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    pub(crate) target: Target,
    /// A short description of the job's sizes.
    pub(crate) sizes: String,
    /// Calls per rank and direction.
    pub(crate) calls: u64,
    /// Data bytes of all ranks.
    pub(crate) bytes: u64,
    pub(crate) rows: Vec<Row>,
}

impl Comparison {
    /// Speed relative to raw POSIX.
    pub(crate) fn of_raw(&self, row: &Row, direction: Direction) -> Option<f64> {
        let raw = self.rows.first()?.side(direction);
        row.side(direction).samples.speed_over(&raw.samples)
    }

    /// Times of all repeats of all methods.
    pub(crate) fn samples(&self) -> impl Iterator<Item = &Samples> {
        let sides = self.rows.iter().flat_map(|row| &row.sides);
        sides.map(|side| &side.samples)
    }
}
