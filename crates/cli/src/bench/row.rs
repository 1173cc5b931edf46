//! The results of one method on one job.

use super::method::Method;
use super::timing::Samples;

/// The results of one method in one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Side {
    /// Times of the repeats.
    pub(crate) samples: Samples,
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

    /// Microseconds of the best repeat that each of some calls took.
    pub(crate) fn microseconds_a_call(&self, calls: u64) -> Option<f64> {
        let took = self.samples.best()?;
        Some(took.as_secs_f64() * 1e6 / calls.max(1) as f64)
    }
}
