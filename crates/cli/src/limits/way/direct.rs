//! pwrite past the kernel's cache.

use std::io;
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::OFlags;

use super::super::crew::together;
use super::calls::write_pieces;
use super::{Stage, Stop, Took, Way, writable};

/// One writer to a file that is open with O_DIRECT.
pub(in crate::limits) struct Direct;

impl Way for Direct {
    fn run(&self, stage: &mut Stage<'_>) -> Result<Took, Stop> {
        let flags = OFlags::DIRECT.bits().cast_signed();
        let file = writable()
            .custom_flags(flags)
            .open(stage.path)
            .map_err(|error| refused_or_failed("open", error))?;
        let time = together(stage.shares(1), |share| {
            write_pieces(&file, stage.pattern, stage.source, share)
        });
        time.map(Took::from)
            .map_err(|error| refused_or_failed("write", error))
    }
}

/// File systems that cannot do it say so at open, or when the first bytes come.
fn refused_or_failed(action: &'static str, error: io::Error) -> Stop {
    match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => {
            Stop::Refused(format!("the file system has no O_DIRECT ({error})"))
        }
        _ => Stop::failed(action)(error),
    }
}
