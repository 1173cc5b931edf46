//! pwrite and related calls.

use std::fs::File;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::Duration;

use rustix::fs::{FallocateFlags, OFlags, fallocate};
use rustix::io::{Errno, pwritev, retry_on_intr};

use super::super::threads::together;
use super::{Outcome, Stage, Stop, Timing, timed, writable};

/// One call per piece, by threads that each have a part of the file.
pub(in crate::limits) fn pwrite(stage: &Stage<'_>, writers: usize) -> Outcome {
    let file = stage.open()?;
    let time = write(stage, &file, writers).map_err(Stop::failed("write"))?;
    Ok(time.into())
}

fn write(stage: &Stage<'_>, file: &File, writers: usize) -> io::Result<Duration> {
    together(stage.shares(writers), |share: Range<usize>| {
        stage.pattern.pieces(share).try_for_each(|piece| {
            let offset = piece.start as u64;
            file.write_all_at(&stage.source[piece], offset)
        })
    })
}

/// pwritev: a call writes a piece of the file from several parts of memory. They are adjacent: what
/// is measured is the kernel's work per part, not cache misses.
pub(in crate::limits) fn vectored(stage: &Stage<'_>, part_bytes: usize) -> Outcome {
    let file = stage.open()?;
    let time = together(stage.shares(1), |share: Range<usize>| {
        stage.pattern.pieces(share).try_for_each(|piece| {
            let (offset, bytes) = (piece.start, &stage.source[piece]);
            let parts: Vec<_> = bytes.chunks(part_bytes).map(IoSlice::new).collect();
            let written = retry_on_intr(|| pwritev(&file, &parts, offset as u64))?;
            // A call may be short.
            file.write_all_at(&bytes[written..], (offset + written) as u64)
        })
    });
    time.map(Timing::from).map_err(Stop::failed("write"))
}

/// One writer that bypasses the page cache.
pub(in crate::limits) fn direct(stage: &mut Stage<'_>) -> Outcome {
    // File systems without O_DIRECT fail at open or at the first write.
    let stop = |action| {
        move |error: io::Error| match error.kind() {
            io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => {
                Stop::Unavailable(format!("the file system has no O_DIRECT ({error})"))
            }
            _ => Stop::failed(action)(error),
        }
    };
    let flags = OFlags::DIRECT.bits().cast_signed();
    let file = writable().custom_flags(flags).open(stage.path);
    let file = file.map_err(stop("open"))?;
    let time = write(stage, &file, 1).map_err(stop("write"))?;
    Ok(time.into())
}

/// Which of fallocate and pwrite is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::limits) enum Counted {
    Both,
    Writes,
}

/// One writer into a file whose space was preallocated.
pub(in crate::limits) fn preallocated(stage: &Stage<'_>, counted: Counted) -> Outcome {
    let file = stage.open()?;
    let length = stage.span() as u64;
    let mut time = Duration::ZERO;
    timed(&mut time, || {
        retry_on_intr(|| fallocate(&file, FallocateFlags::empty(), 0, length))
    })
    .map_err(|errno| match errno {
        Errno::OPNOTSUPP | Errno::NOSYS => {
            Stop::Unavailable(format!("the file system has no fallocate ({errno})"))
        }
        errno => Stop::failed("preallocate")(errno),
    })?;
    if counted == Counted::Writes {
        time = Duration::ZERO;
    }
    time += write(stage, &file, 1).map_err(Stop::failed("write"))?;
    Ok(time.into())
}
