//! Stores into a mapping of the file. Making the file as long, mapping and unmapping it are timed.

use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::time::Duration;

use super::super::crew::together;
use super::super::huge_pages;
use super::super::mapping::Mapping;
use super::super::pattern::{Share, split};
use super::{Stage, Stop, Took, Way, timed};
use crate::free;

/// So many threads, each with a part of the mapping.
pub(in crate::limits) struct Mapped {
    /// How many.
    pub(in crate::limits) writers: usize,
    /// How bytes are stored.
    pub(in crate::limits) stores: Stores,
    /// What is asked of the mapping.
    pub(in crate::limits) pages: Pages,
}

/// How bytes are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::limits) enum Stores {
    /// As memcpy does.
    Usual,
    /// With stores past the cache, which do not fetch a line before they replace it.
    PastCache,
}

/// Which pages a mapping has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::limits) enum Pages {
    /// Those that it gets.
    Usual,
    /// Huge ones.
    Huge,
}

type Copy = fn(&mut [u8], &[u8]);

impl Way for Mapped {
    fn run(&self, stage: &mut Stage<'_>) -> Result<Took, Stop> {
        let copy = self.stores.copy()?;
        let file = stage.open()?;
        require_space(&file, stage.span()).map_err(Stop::failed("map"))?;
        let mut time = Duration::ZERO;
        let mut mapping = timed(&mut time, || map(&file, stage.span()))?;
        if self.pages == Pages::Huge {
            timed(&mut time, || mapping.advise_huge_pages()).map_err(|error| {
                Stop::Refused(format!("the kernel has no huge pages here ({error})"))
            })?;
        }
        time += store(stage, split(&mut mapping, stage.shares(self.writers)), copy);
        let note = match self.pages {
            Pages::Usual => None,
            Pages::Huge => Some(huge_note(&mapping)?),
        };
        timed(&mut time, || drop(mapping));
        Ok(Took { time, note })
    }
}

impl Stores {
    fn copy(self) -> Result<Copy, Stop> {
        match self {
            Stores::Usual => Ok(<[u8]>::copy_from_slice),
            #[cfg(target_arch = "x86_64")]
            Stores::PastCache => Ok(super::super::mapping::copy_past_cache),
            #[cfg(not(target_arch = "x86_64"))]
            Stores::PastCache => Err(Stop::Refused(
                "stores past the cache are known for x86-64 only".to_owned(),
            )),
        }
    }
}

/// An error if a new file of that length finds no space: stores into its mapping would end the
/// process. Others may take the space between this look and the last store; that cannot be helped.
fn require_space(file: &File, length: usize) -> io::Result<()> {
    let is_new = file.metadata()?.len() < length as u64;
    let space = free::of(&rustix::fs::fstatvfs(file)?);
    match space {
        Some(space) if is_new && space < length as u64 => Err(io::ErrorKind::StorageFull.into()),
        _ => Ok(()),
    }
}

/// Gives the file its length and maps it.
pub(super) fn map(file: &File, length: usize) -> Result<Mapping, Stop> {
    file.set_len(length as u64)
        .map_err(Stop::failed("change the size of"))?;
    Mapping::of_file(file, length).map_err(Stop::failed("map"))
}

/// Copies the pieces of each share.
fn store(stage: &Stage<'_>, shares: Vec<Share<'_>>, copy: Copy) -> Duration {
    let stored = together(shares, |(range, memory)| {
        let pieces = stage.pattern.pieces(range);
        for (piece, memory) in pieces.zip(stage.pattern.parts_mut(memory)) {
            copy(memory, &stage.source[piece]);
        }
        Ok::<_, Infallible>(())
    });
    stored.unwrap_or_else(|never| match never {})
}

/// How much of a mapping is in huge pages; refused where nothing is.
fn huge_note(mapping: &Mapping) -> Result<String, Stop> {
    let bytes = huge_pages::of(mapping).map_err(Stop::failed("look at the mapping of"))?;
    match bytes * 100 / mapping.len() as u64 {
        0 => Err(Stop::Refused(
            "the file system gave no huge pages".to_owned(),
        )),
        percent => Ok(format!("{percent} % of it in huge pages")),
    }
}
