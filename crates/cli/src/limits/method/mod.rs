//! Ways to move bytes between memory and a file; `contenders.rs` lists what is measured with each.
//! Opening the file is not timed; whatever else a way does is, unless it says otherwise.

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

/// What a way works with.
pub(super) struct Stage<'a> {
    /// The file. Ways that write create it.
    pub(super) path: &'a Path,
    pub(super) pattern: Pattern,
    /// What the file has, or gets. Starts at a page.
    pub(super) source: &'a [u8],
    /// Memory to read into: touched, cleared, starts at a page, one page longer than the source.
    pub(super) target: &'a mut [u8],
}

/// What a run took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Timing {
    pub(super) time: Duration,
    /// What else is worth knowing.
    pub(super) note: Option<String>,
}

/// Why a run gave no time.
#[derive(Debug)]
pub(super) enum Stop {
    /// The machine or the file system does not have this.
    Unavailable(String),
    /// An operation failed, "cannot …".
    Failed {
        action: &'static str,
        source: io::Error,
    },
    /// A byte that was read is not what the file has.
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

    /// What each of some threads moves.
    fn shares(&self, threads: usize) -> Vec<Range<usize>> {
        pattern::shares(self.span(), threads)
    }

    /// The file, for reading and writing.
    fn open(&self) -> Result<File, Stop> {
        writable().open(self.path).map_err(Stop::failed("open"))
    }

    /// Fails unless all bytes that were read are those of the file.
    fn check(&self, found: &[u8]) -> Result<(), Stop> {
        first_difference(found, &self.source[..found.len()], 0)
            .map_or(Ok(()), |byte| Err(Stop::Wrong(byte)))
    }
}

/// How files are opened that are written.
fn writable() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options
}

/// Does something and adds the time it takes.
fn timed<T>(time: &mut Duration, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    *time += start.elapsed();
    result
}
