//! Reads of a file that is in the cache. What was read is compared with what the file has.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use super::super::crew::together;
use super::super::mapping::Mapping;
use super::super::pattern::{Pattern, split};
use super::{Stage, Stop, Took, Way, timed};

/// pread, a call a piece, by so many threads.
pub(in crate::limits) struct Pread {
    /// How many.
    pub(in crate::limits) readers: usize,
    /// What they read into.
    pub(in crate::limits) into: Into,
}

/// Memory to read into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::limits) enum Into {
    /// Memory that has its pages, so many bytes behind the start of one.
    Touched {
        /// How many.
        offset: usize,
    },
    /// Memory whose pages the reads have to bring. Giving it back is not timed.
    Untouched,
}

impl Way for Pread {
    fn run(&self, stage: &mut Stage<'_>) -> Result<Took, Stop> {
        let file = stage.open()?;
        let (length, shares) = (stage.span(), stage.shares(self.readers));
        match self.into {
            Into::Touched { offset } => {
                let memory = offset..offset + length;
                let target = &mut stage.target[memory.clone()];
                let time = read(&file, stage.pattern, shares, target)?;
                stage.check(&stage.target[memory])?;
                Ok(time.into())
            }
            Into::Untouched => {
                let mut fresh =
                    Mapping::untouched(length).map_err(Stop::failed("map memory to read"))?;
                let time = read(&file, stage.pattern, shares, &mut fresh)?;
                stage.check(&fresh)?;
                Ok(time.into())
            }
        }
    }
}

fn read(
    file: &File,
    pattern: Pattern,
    ranges: Vec<Range<usize>>,
    target: &mut [u8],
) -> Result<Duration, Stop> {
    let time = together(split(target, ranges), |(range, memory)| {
        for (piece, memory) in pattern.pieces(range).zip(pattern.parts_mut(memory)) {
            file.read_exact_at(memory, piece.start as u64)?;
        }
        io::Result::Ok(())
    });
    time.map_err(Stop::failed("read"))
}

/// A copy from a mapping of the file. Mapping and unmapping it are timed.
pub(in crate::limits) struct MappedRead;

impl Way for MappedRead {
    fn run(&self, stage: &mut Stage<'_>) -> Result<Took, Stop> {
        let file = stage.open()?;
        let length = stage.span();
        let mut time = Duration::ZERO;
        let mapping = timed(&mut time, || Mapping::of_file(&file, length));
        let mapping = mapping.map_err(Stop::failed("map"))?;
        let target = &mut stage.target[..length];
        timed(&mut time, || {
            target.copy_from_slice(&mapping);
            drop(mapping);
        });
        stage.check(&stage.target[..length])?;
        Ok(time.into())
    }
}
