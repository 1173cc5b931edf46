//! pwrite, a call a piece.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use super::super::crew::together;
use super::super::pattern::Pattern;
use super::{Stage, Stop, Took, Way};

/// So many threads, each with a part of the file.
pub(in crate::limits) struct Pwrite {
    /// How many.
    pub(in crate::limits) writers: usize,
}

impl Way for Pwrite {
    fn run(&self, stage: &mut Stage<'_>) -> Result<Took, Stop> {
        let file = stage.open()?;
        let time = together(stage.shares(self.writers), |share| {
            write_pieces(&file, stage.pattern, stage.source, share)
        });
        time.map(Took::from).map_err(Stop::failed("write"))
    }
}

/// Writes the pieces of a range.
pub(super) fn write_pieces(
    file: &File,
    pattern: Pattern,
    source: &[u8],
    share: Range<usize>,
) -> io::Result<()> {
    for piece in pattern.pieces(share) {
        let offset = piece.start as u64;
        file.write_all_at(&source[piece], offset)?;
    }
    Ok(())
}
