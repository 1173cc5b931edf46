//! Writes through io_uring by one thread. Making its queues is not timed.

use std::time::Duration;

use super::super::ring::{Pace, Ring};
use super::{Stage, Stop, Took, Way, timed};

/// A request a piece.
pub(in crate::limits) struct Submitted {
    /// How many at a time.
    pub(in crate::limits) pace: Pace,
}

impl Way for Submitted {
    fn run(&self, stage: &mut Stage<'_>) -> Result<Took, Stop> {
        let file = stage.open()?;
        let ring = Ring::new(self.pace)
            .map_err(|error| Stop::Refused(format!("io_uring is not available here ({error})")))?;
        let pieces = stage.pattern.pieces(0..stage.span());
        let pieces = pieces.map(|piece| {
            let offset = piece.start as u64;
            (&stage.source[piece], offset)
        });
        let mut time = Duration::ZERO;
        timed(&mut time, || ring.write_all(&file, pieces)).map_err(Stop::failed("write"))?;
        Ok(time.into())
    }
}
