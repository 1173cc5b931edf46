//! The kernel copies into a mapping of the file, from memory that ranks could share (a memfd): one
//! system call scatters many pieces, and it fails without raising SIGBUS if there is no space.
//! Filling the memfd is not timed; mapping and unmapping the file are.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{Errno, preadv, retry_on_intr};

use super::super::pattern::Pattern;
use super::mapped::map;
use super::{Outcome, Stage, Stop, timed};

/// preadv from a memfd, with this many pieces per call.
pub(in crate::limits) fn scatter(stage: &Stage<'_>, pieces_per_call: usize) -> Outcome {
    let memory = memfd_create("pario-limits", MemfdFlags::CLOEXEC)
        .map(File::from)
        .map_err(|errno| Stop::Unavailable(format!("no memfd ({errno})")))?;
    fill(&memory, stage).map_err(Stop::failed("fill a memfd for"))?;
    let file = stage.open()?;
    let mut time = Duration::ZERO;
    let mut mapping = timed(&mut time, || map(&file, stage.span()))?;
    timed(&mut time, || {
        copy(&memory, stage.pattern, pieces_per_call, &mut mapping)
    })
    .map_err(Stop::failed("copy into a mapping of"))?;
    timed(&mut time, || drop(mapping));
    Ok(time.into())
}

fn copy(memory: &File, pattern: Pattern, pieces_per_call: usize, to: &mut [u8]) -> io::Result<()> {
    let mut pieces = pattern.parts_mut(to);
    let mut offset = 0;
    loop {
        let batch = pieces.by_ref().take(pieces_per_call);
        let mut batch: Vec<_> = batch.map(IoSliceMut::new).collect();
        let wanted: usize = batch.iter().map(|piece| piece.len()).sum();
        if wanted == 0 {
            return Ok(());
        }
        match retry_on_intr(|| preadv(memory, &mut batch, offset as u64)) {
            Ok(moved) if moved == wanted => offset += wanted,
            // The memfd has all bytes, so the mapping stopped the kernel.
            Ok(_) | Err(Errno::FAULT) => {
                let reason = "no space for a page of the mapping";
                return Err(io::Error::new(io::ErrorKind::StorageFull, reason));
            }
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Packs the pieces.
fn fill(memory: &File, stage: &Stage<'_>) -> io::Result<()> {
    let mut offset = 0;
    for piece in stage.pattern.pieces(0..stage.span()) {
        let bytes = &stage.source[piece];
        memory.write_all_at(bytes, offset)?;
        offset += bytes.len() as u64;
    }
    Ok(())
}
