//! pwritev: a call takes a piece of the file from several parts of memory.

use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;

use rustix::io::{pwritev, retry_on_intr};

use super::super::crew::together;
use super::{Stage, Stop, Took, Way};

/// Parts of that many bytes. They lie side by side: what is measured is the kernel's work for each
/// part, not that of the caches.
pub(in crate::limits) struct Pwritev {
    /// Bytes of a part.
    pub(in crate::limits) part: usize,
}

impl Way for Pwritev {
    fn run(&self, stage: &mut Stage<'_>) -> Result<Took, Stop> {
        let file = stage.open()?;
        let time = together(stage.shares(1), |share| {
            let mut parts = Vec::new();
            for piece in stage.pattern.pieces(share) {
                let (offset, bytes) = (piece.start, &stage.source[piece]);
                parts.clear();
                parts.extend(bytes.chunks(self.part).map(IoSlice::new));
                let written = retry_on_intr(|| pwritev(&file, &parts, offset as u64))?;
                // A call may move less than all.
                file.write_all_at(&bytes[written..], (offset + written) as u64)?;
            }
            io::Result::Ok(())
        });
        time.map(Took::from).map_err(Stop::failed("write"))
    }
}
