//! The yardstick: each rank writes and reads its contiguous share with plain POSIX calls.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use super::array::Array;
use super::cells::{self, CELL_BYTES};
use super::span::{Span, elapsed};
use super::wrong::{Fault, Place};
use crate::failure::Failure;

/// One rank's share of the file.
#[derive(Debug)]
struct Share {
    cells: Range<u64>,
    bytes: Vec<u8>,
}

/// The shares of all ranks.
#[derive(Debug)]
pub(crate) struct Raw {
    shares: Vec<Share>,
}

impl Raw {
    /// Memory for every rank's share, touched once so that page faults stay out of the timing.
    pub(crate) fn new(array: &Array) -> Self {
        let shares = (0..array.ranks())
            .map(|rank| {
                let cells = array.contiguous_share(rank);
                let bytes = (cells.end - cells.start) * CELL_BYTES;
                let bytes = usize::try_from(bytes).expect("an array in memory fits it");
                Share {
                    cells,
                    bytes: vec![u8::MAX; bytes],
                }
            })
            .collect();
        Raw { shares }
    }

    /// Gives every share the values of a round.
    pub(crate) fn fill(&mut self, round: u64) {
        for share in &mut self.shares {
            cells::fill(&mut share.bytes, share.cells.start, round);
        }
    }

    /// Writes a new file: open, one `pwrite` of the share, close, on every rank at once.
    pub(crate) fn write(&mut self, path: &Path) -> Result<Duration, Failure> {
        self.on_all_ranks(|share| {
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)?;
            file.write_all_at(&share.bytes, share.cells.start * CELL_BYTES)
        })
        .map_err(|source| Failure::Storage {
            action: "write",
            path: path.to_owned(),
            source,
        })
    }

    /// Reads the file: open, `pread` of the share, close, on every rank at once.
    pub(crate) fn read(&mut self, path: &Path) -> Result<Duration, Failure> {
        for share in &mut self.shares {
            share.bytes.fill(u8::MAX);
        }
        self.on_all_ranks(|share| {
            File::open(path)?.read_exact_at(&mut share.bytes, share.cells.start * CELL_BYTES)
        })
        .map_err(|source| Failure::Storage {
            action: "read",
            path: path.to_owned(),
            source,
        })
    }

    /// Fails unless every share has the values of a round.
    pub(crate) fn check(&self, round: u64) -> Result<(), Fault> {
        for (rank, share) in (0..).zip(&self.shares) {
            if let Some(byte) = cells::first_wrong(&share.bytes, share.cells.start, round) {
                return Err(Fault::Byte {
                    place: Place::Memory { rank },
                    byte,
                });
            }
        }
        Ok(())
    }

    fn on_all_ranks(
        &mut self,
        work: impl Fn(&mut Share) -> io::Result<()> + Sync,
    ) -> io::Result<Duration> {
        let barrier = Barrier::new(self.shares.len());
        let spans = thread::scope(|scope| {
            let ranks: Vec<_> = self
                .shares
                .iter_mut()
                .map(|share| {
                    scope.spawn(|| {
                        barrier.wait();
                        let start = Instant::now();
                        work(share)?;
                        Ok(Span {
                            start,
                            end: Instant::now(),
                        })
                    })
                })
                .collect();
            ranks
                .into_iter()
                .map(|rank| rank.join().expect("a raw rank does not panic"))
                .collect::<io::Result<Vec<Span>>>()
        })?;
        Ok(elapsed(&spans))
    }
}

/// Removes a file that an earlier run left, so that every run writes to fresh storage.
pub(crate) fn remove(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(Failure::Storage {
            action: "remove",
            path: path.to_owned(),
            source,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::array::Shape;
    use super::super::wrong::check_file;
    use super::*;

    #[test]
    fn shares_make_the_array_and_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("raw");
        let array = Array::new(Shape([3, 4, 5]), 4).unwrap();
        let mut raw = Raw::new(&array);
        raw.fill(1);
        raw.write(&path).unwrap();
        assert_eq!(
            check_file(&array, 1, File::open(&path).unwrap()).unwrap(),
            Ok(())
        );
        raw.read(&path).unwrap();
        assert_eq!(raw.check(1), Ok(()));
        assert!(raw.check(2).is_err());
        remove(&path).unwrap();
        remove(&path).unwrap();
    }

    #[test]
    fn a_missing_folder_is_named() {
        let array = Array::new(Shape([1, 2, 2]), 2).unwrap();
        let failure = Raw::new(&array)
            .write(Path::new("/nowhere/at/all"))
            .unwrap_err();
        let text = failure.to_string();
        assert!(
            text.contains("/nowhere/at/all") && text.contains("--dir"),
            "{text}"
        );
    }
}
