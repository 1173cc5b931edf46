//! A copy from memory to memory, for scale.

use std::time::Duration;

use super::{Stage, Stop, Took, Way, timed};

/// memcpy by one thread; all pages are there.
pub(in crate::limits) struct Copy;

impl Way for Copy {
    fn run(&self, stage: &mut Stage<'_>) -> Result<Took, Stop> {
        let length = stage.span();
        let (target, source) = (&mut stage.target[..length], &stage.source[..length]);
        let mut time = Duration::ZERO;
        timed(&mut time, || target.copy_from_slice(source));
        stage.check(&stage.target[..length])?;
        Ok(time.into())
    }
}
