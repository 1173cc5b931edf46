//! Stores into a mapping of the file. Extending the file, mapping and unmapping it are timed.

use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::time::Duration;

use memmap2::{Advice, MmapMut};

use super::super::huge_pages;
use super::super::mapping::map_file;
use super::super::pattern::{Share, split};
use super::super::threads::together;
use super::{Outcome, Stage, Stop, Timing, timed};
use crate::machine;

/// How bytes are copied to the mapping.
type Copy = fn(&mut [u8], &[u8]);

/// memcpy by threads that each have a part of the mapping.
pub(in crate::limits) fn stores(stage: &Stage<'_>, writers: usize) -> Outcome {
    copy_to_mapping(stage, writers, <[u8]>::copy_from_slice, Pages::Default)
}

/// Non-temporal stores, which bypass the cache: they do not fetch a line before they replace it.
#[cfg(target_arch = "x86_64")]
pub(in crate::limits) fn non_temporal_stores(stage: &mut Stage<'_>) -> Outcome {
    let copy = super::super::mapping::copy_non_temporal;
    copy_to_mapping(stage, 1, copy, Pages::Default)
}

#[cfg(not(target_arch = "x86_64"))]
pub(in crate::limits) fn non_temporal_stores(_: &mut Stage<'_>) -> Outcome {
    let reason = "non-temporal stores are implemented for x86-64 only";
    Err(Stop::Unavailable(reason.to_owned()))
}

/// memcpy to a mapping that requests huge pages.
pub(in crate::limits) fn huge_page_stores(stage: &mut Stage<'_>) -> Outcome {
    copy_to_mapping(stage, 1, <[u8]>::copy_from_slice, Pages::Huge)
}

/// Which pages a mapping requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pages {
    Default,
    Huge,
}

fn copy_to_mapping(stage: &Stage<'_>, writers: usize, copy: Copy, pages: Pages) -> Outcome {
    let file = stage.open()?;
    require_space(&file, stage.span()).map_err(Stop::failed("map"))?;
    let mut time = Duration::ZERO;
    let mut mapping = timed(&mut time, || map(&file, stage.span()))?;
    if pages == Pages::Huge {
        timed(&mut time, || mapping.advise(Advice::HugePage)).map_err(|error| {
            Stop::Unavailable(format!("the kernel has no huge pages here ({error})"))
        })?;
    }
    let shares = split(&mut mapping, stage.shares(writers));
    let stored = together(shares, |(range, memory): Share<'_>| {
        let pieces = stage.pattern.pieces(range);
        for (piece, memory) in pieces.zip(stage.pattern.parts_mut(memory)) {
            copy(memory, &stage.source[piece]);
        }
        Ok::<_, Infallible>(())
    });
    time += stored.unwrap_or_else(|never| match never {});
    let note = match pages {
        Pages::Default => None,
        Pages::Huge => Some(huge_note(&mapping)?),
    };
    timed(&mut time, || drop(mapping));
    Ok(Timing { time, note })
}

/// Fails if there is no space for a new file of that length: stores into its mapping would kill the
/// process. Other programs may still use up the space meanwhile, which cannot be prevented.
fn require_space(file: &File, length: usize) -> io::Result<()> {
    let is_new = file.metadata()?.len() < length as u64;
    let space = machine::available(&rustix::fs::fstatvfs(file)?);
    match space {
        Some(space) if is_new && space < length as u64 => Err(io::ErrorKind::StorageFull.into()),
        _ => Ok(()),
    }
}

/// Extends the file to its length and maps it.
pub(super) fn map(file: &File, length: usize) -> Result<MmapMut, Stop> {
    file.set_len(length as u64)
        .map_err(Stop::failed("change the size of"))?;
    map_file(file, length).map_err(Stop::failed("map"))
}

/// The share of a mapping in huge pages; unavailable if it is zero.
fn huge_note(mapping: &[u8]) -> Result<String, Stop> {
    let bytes = huge_pages::of(mapping).map_err(Stop::failed("inspect the mapping of"))?;
    match bytes * 100 / mapping.len() as u64 {
        0 => {
            let reason = "the file system provided no huge pages";
            Err(Stop::Unavailable(reason.to_owned()))
        }
        percent => Ok(format!("{percent} % in huge pages")),
    }
}
