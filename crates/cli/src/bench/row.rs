//! The results of one method on one job.

use std::time::Duration;

use super::method::Method;
use super::timing::Samples;

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
    /// Why the method cannot do this here.
    pub(crate) missing: Option<String>,
}

/// The results of one method.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The method.
    pub(crate) method: Method,
    /// Of its writes.
    pub(crate) write: Side,
    /// Of its reads.
    pub(crate) read: Side,
}

impl Row {
    /// A method that has not run yet.
    pub(crate) fn new(method: Method) -> Self {
        Row {
            method,
            write: Side::default(),
            read: Side::default(),
        }
    }
}

/// A method that has taken longer than this, in all, is not repeated: it is far from the best, and
/// a trace of the millions of calls that it makes would not fit memory.
const PATIENCE: Duration = Duration::from_secs(2);

impl Row {
    /// Whether nothing of it can be measured.
    pub(crate) fn is_missing(&self) -> bool {
        self.write.missing.is_some() && self.read.missing.is_some()
    }

    /// Whether it is worth another repeat.
    pub(crate) fn is_worth_repeating(&self) -> bool {
        let samples = [&self.write.samples, &self.read.samples];
        let took: Duration = samples.iter().flat_map(|it| it.all()).sum();
        let repeats = samples.iter().map(|it| it.all().len()).max();
        repeats == Some(0) || took < PATIENCE * repeats.unwrap_or(1) as u32
    }
}

/// The results of all methods on one job; the first row is the yardstick's.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    /// The workload.
    pub(crate) workload: &'static str,
    /// What was chosen about it, as on the command line.
    pub(crate) choices: String,
    /// The value that is swept, if any.
    pub(crate) swept: Option<(String, String)>,
    /// Sizes of the job in a few words.
    pub(crate) sizes: String,
    /// Number of ranks.
    pub(crate) ranks: u32,
    /// Calls of a rank in each direction.
    pub(crate) calls: u64,
    /// Data bytes of all ranks.
    pub(crate) bytes: u64,
    /// One for each method.
    pub(crate) rows: Vec<Row>,
}

impl Side {
    /// Its speed over another's.
    pub(crate) fn fraction(&self, raw: &Side) -> Option<f64> {
        let (took, raw) = (self.samples.best()?, raw.samples.best()?);
        (!took.is_zero()).then(|| raw.as_secs_f64() / took.as_secs_f64())
    }

    /// Microseconds that each of some calls took with its set_view, in the repeat where they took
    /// the least.
    pub(crate) fn microseconds_a_call(&self, calls: u64) -> Option<f64> {
        let took = self.calls.best()?;
        Some(took.as_secs_f64() * 1e6 / calls.max(1) as f64)
    }

    /// Microseconds that open and close took, in the repeat where they took the least.
    pub(crate) fn microseconds_open_close(&self) -> Option<f64> {
        Some(self.open_close.best()?.as_secs_f64() * 1e6)
    }
}
