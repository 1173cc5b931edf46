//! Ways to move bytes between memory and a file. One file a way; `contenders.rs` lists what is
//! measured with each.

pub(super) mod calls;
pub(super) mod copy;
pub(super) mod direct;
pub(super) mod kernel_copy;
pub(super) mod mapped;
pub(super) mod preallocated;
pub(super) mod reads;
pub(super) mod submitted;
pub(super) mod vectored;

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use super::pattern::{self, Pattern};
use crate::bench::content::WrongByte;

/// A way to move the bytes of a pattern.
pub(super) trait Way: Sync {
    /// Moves them once. Opening the file is not timed; whatever else the way needs for itself is,
    /// unless its file says otherwise.
    fn run(&self, stage: &mut Stage<'_>) -> Result<Took, Stop>;
}

/// What a way works with.
pub(super) struct Stage<'a> {
    /// The file. Ways that write make it if it is not there.
    pub(super) path: &'a Path,
    /// Which bytes.
    pub(super) pattern: Pattern,
    /// What the file has, or gets. Starts at a page.
    pub(super) source: &'a [u8],
    /// Touched memory to read into: cleared, starts at a page, and is a page longer than the source.
    pub(super) target: &'a mut [u8],
}

/// What a run took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Took {
    /// How long.
    pub(super) time: Duration,
    /// What else is worth telling.
    pub(super) note: Option<String>,
}

/// Why a run gave no time.
#[derive(Debug)]
pub(super) enum Stop {
    /// The way is not for this machine or file system.
    Refused(String),
    /// Something failed.
    Failed {
        /// What was tried, as in "cannot …".
        action: &'static str,
        /// What the system answered.
        source: io::Error,
    },
    /// A byte that was read is not what the file has.
    Wrong(WrongByte),
}

impl Stop {
    /// Why something failed, for `map_err`.
    pub(super) fn failed<E: Into<io::Error>>(action: &'static str) -> impl Fn(E) -> Stop {
        move |source| Stop::Failed {
            action,
            source: source.into(),
        }
    }
}

impl From<Duration> for Took {
    fn from(time: Duration) -> Self {
        Took { time, note: None }
    }
}

impl Stage<'_> {
    /// Bytes from the file's start to the end of the pattern.
    pub(super) fn span(&self) -> usize {
        self.pattern.span(self.source.len())
    }

    /// What each of some threads moves.
    pub(super) fn shares(&self, crew: usize) -> Vec<Range<usize>> {
        pattern::shares(self.span(), crew)
    }

    /// The file, for reading and writing.
    pub(super) fn open(&self) -> Result<File, Stop> {
        writable().open(self.path).map_err(Stop::failed("open"))
    }

    /// An error unless all bytes that were read are those of the file.
    pub(super) fn check(&self, found: &[u8]) -> Result<(), Stop> {
        first_difference(found, &self.source[..found.len()], 0)
            .map_or(Ok(()), |it| Err(Stop::Wrong(it)))
    }
}

/// How files are opened that are written.
fn writable() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options
}

/// The first byte, from `offset` of the file on, that is not what it should be.
pub(super) fn first_difference(found: &[u8], expected: &[u8], offset: usize) -> Option<WrongByte> {
    // One comparison of all is many times as fast as a look at each.
    if found == expected {
        return None;
    }
    let mut both = found.iter().zip(expected).zip(offset as u64..);
    let ((found, expected), offset) = both.find(|((found, expected), _)| found != expected)?;
    Some(WrongByte {
        offset,
        expected: *expected,
        found: *found,
    })
}

/// Does something and adds what it takes to a time.
fn timed<T>(time: &mut Duration, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    *time += start.elapsed();
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let expected = [1, 2, 3, 4];
        assert_eq!(first_difference(&expected, &expected, 10), None);
        let wrong = WrongByte {
            offset: 12,
            expected: 3,
            found: 9,
        };
        assert_eq!(first_difference(&[1, 2, 9, 9], &expected, 10), Some(wrong));
    }
}
