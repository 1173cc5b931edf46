//! Reads of a file that is in the cache, and memcpy for scale. The bytes read are compared with
//! the file's.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use super::super::mapping::{map_file, untouched};
use super::super::pattern::{Share, split};
use super::super::threads::together;
use super::{Outcome, Stage, Stop, timed};

/// pread into touched memory that starts `offset` bytes past a page boundary.
pub(in crate::limits) fn pread(stage: &mut Stage<'_>, readers: usize, offset: usize) -> Outcome {
    let file = stage.open()?;
    let memory = offset..offset + stage.span();
    let shares = stage.shares(readers);
    let pattern = stage.pattern;
    let time = read(
        &file,
        pattern,
        split(&mut stage.target[memory.clone()], shares),
    )?;
    stage.check(&stage.target[memory])?;
    Ok(time.into())
}

/// pread into untouched memory, whose pages the read has to allocate. Releasing it is not timed.
pub(in crate::limits) fn pread_untouched(stage: &mut Stage<'_>) -> Outcome {
    let file = stage.open()?;
    let mut memory = untouched(stage.span()).map_err(Stop::failed("map memory to read"))?;
    let time = read(&file, stage.pattern, split(&mut memory, stage.shares(1)))?;
    stage.check(&memory)?;
    Ok(time.into())
}

fn read(file: &File, pattern: super::Pattern, shares: Vec<Share<'_>>) -> Result<Duration, Stop> {
    let time = together(shares, |(range, memory): Share<'_>| {
        let mut pieces = pattern.pieces(range).zip(pattern.parts_mut(memory));
        pieces.try_for_each(|(piece, memory)| file.read_exact_at(memory, piece.start as u64))
    });
    time.map_err(Stop::failed("read"))
}

/// A copy from a mapping of the file. Mapping and unmapping it are timed.
pub(in crate::limits) fn mapped(stage: &mut Stage<'_>) -> Outcome {
    let file = stage.open()?;
    let length = stage.span();
    let mut time = Duration::ZERO;
    let mapping = timed(&mut time, || map_file(&file, length));
    let mapping = mapping.map_err(Stop::failed("map"))?;
    let target = &mut stage.target[..length];
    timed(&mut time, || {
        target.copy_from_slice(&mapping);
        drop(mapping);
    });
    stage.check(&stage.target[..length])?;
    Ok(time.into())
}

/// memcpy by one thread, all pages present.
pub(in crate::limits) fn memcpy(stage: &mut Stage<'_>) -> Outcome {
    let length = stage.span();
    let (target, source) = (&mut stage.target[..length], &stage.source[..length]);
    let mut time = Duration::ZERO;
    timed(&mut time, || target.copy_from_slice(source));
    stage.check(&stage.target[..length])?;
    Ok(time.into())
}
