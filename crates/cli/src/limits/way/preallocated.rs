//! fallocate, then pwrite.

use std::time::Duration;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, retry_on_intr};

use super::super::crew::together;
use super::calls::write_pieces;
use super::{Stage, Stop, Took, Way, timed};

/// One writer into a file whose space was set aside.
pub(in crate::limits) struct Preallocated {
    /// What is timed.
    pub(in crate::limits) counted: Counted,
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::limits) enum Counted {
    /// Setting space aside, and writing.
    All,
    /// Writing.
    Writes,
}

impl Way for Preallocated {
    fn run(&self, stage: &mut Stage<'_>) -> Result<Took, Stop> {
        let file = stage.open()?;
        let length = stage.span() as u64;
        let mut time = Duration::ZERO;
        timed(&mut time, || {
            retry_on_intr(|| fallocate(&file, FallocateFlags::empty(), 0, length))
        })
        .map_err(|errno| match errno {
            Errno::OPNOTSUPP | Errno::NOSYS => {
                Stop::Refused(format!("the file system has no fallocate ({errno})"))
            }
            errno => Stop::failed("set space aside for")(errno),
        })?;
        if self.counted == Counted::Writes {
            time = Duration::ZERO;
        }
        time += together(stage.shares(1), |share| {
            write_pieces(&file, stage.pattern, stage.source, share)
        })
        .map_err(Stop::failed("write"))?;
        Ok(time.into())
    }
}
