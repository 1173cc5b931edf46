//! Methods to move bytes between memory and a file; `contenders.rs` lists what is measured with
//! each. Opening the file is not timed; everything else is, unless a method says otherwise.

pub(super) mod calls;
pub(super) mod kernel_copy;
pub(super) mod mapped;
pub(super) mod reads;
pub(super) mod ring;

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use super::pattern::{self, Pattern};
use crate::measure::content::{WrongByte, first_difference};

/// Moves the bytes of a pattern once.
pub(super) type Method = fn(&mut Stage<'_>) -> Outcome;

pub(super) type Outcome = Result<Timing, Stop>;

/// The inputs of a method.
pub(super) struct Stage<'a> {
    /// The file. Methods that write create it.
    pub(super) path: &'a Path,
    pub(super) pattern: Pattern,
    /// The file's contents, before or after. Page-aligned.
    pub(super) source: &'a [u8],
    /// Memory to read into: touched, cleared, page-aligned, one page longer than the source.
    pub(super) target: &'a mut [u8],
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Timing {
    pub(super) time: Duration,
    /// A remark for the table.
    pub(super) note: Option<String>,
}

/// Why a run has no time.
#[derive(Debug)]
pub(super) enum Stop {
    /// The machine or the file system does not support this.
    Unavailable(String),
    /// An operation failed, "cannot …".
    Failed {
        action: &'static str,
        source: io::Error,
    },
    /// A byte that was read differs from the file.
    Wrong(WrongByte),
}

impl Stop {
    /// For `map_err`.
    pub(super) fn failed<E: Into<io::Error>>(action: &'static str) -> impl Fn(E) -> Stop {
        move |source| Stop::Failed {
            action,
            source: source.into(),
        }
    }
}

impl From<Duration> for Timing {
    fn from(time: Duration) -> Self {
        Timing { time, note: None }
    }
}

impl Stage<'_> {
    /// Bytes from the file's start to the end of the pattern.
    fn span(&self) -> usize {
        self.pattern.span(self.source.len())
    }

    /// The share of each thread.
    fn shares(&self, threads: usize) -> Vec<Range<usize>> {
        pattern::shares(self.span(), threads)
    }

    /// The file, for reading and writing.
    fn open(&self) -> Result<File, Stop> {
        writable().open(self.path).map_err(Stop::failed("open"))
    }

    /// Fails unless all bytes that were read match the file.
    fn check(&self, found: &[u8]) -> Result<(), Stop> {
        first_difference(found, &self.source[..found.len()], 0)
            .map_or(Ok(()), |byte| Err(Stop::Wrong(byte)))
    }
}

/// How files are opened for writing.
fn writable() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options
}

/// Runs an action and adds its time.
fn timed<T>(time: &mut Duration, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    *time += start.elapsed();
    result
}
