//! The kernel copies into a mapping of the file, from memory that ranks could share (a memfd): a
//! system call scatters many pieces, and where there is no space it fails, rather than SIGBUS.
//! Filling the memfd is not timed; mapping and unmapping the file are.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{Errno, preadv, retry_on_intr};

use super::super::pattern::Pattern;
use super::mapped::map;
use super::{Stage, Stop, Took, Way, timed};

/// preadv from a memfd, so many pieces a call.
pub(in crate::limits) struct KernelCopy {
    /// How many.
    pub(in crate::limits) pieces_a_call: usize,
}

impl Way for KernelCopy {
    fn run(&self, stage: &mut Stage<'_>) -> Result<Took, Stop> {
        let memory = memfd_create("pario-limits", MemfdFlags::CLOEXEC)
            .map(File::from)
            .map_err(|errno| Stop::Refused(format!("there is no memfd ({errno})")))?;
        fill(&memory, stage).map_err(Stop::failed("fill a memfd for"))?;
        let file = stage.open()?;
        let mut time = Duration::ZERO;
        let mut mapping = timed(&mut time, || map(&file, stage.span()))?;
        timed(&mut time, || {
            self.scatter(&memory, stage.pattern, &mut mapping)
        })
        .map_err(Stop::failed("copy into a mapping of"))?;
        timed(&mut time, || drop(mapping));
        Ok(time.into())
    }
}

impl KernelCopy {
    fn scatter(&self, memory: &File, pattern: Pattern, mapping: &mut [u8]) -> io::Result<()> {
        let mut pieces = pattern.parts_mut(mapping);
        let mut batch = Vec::with_capacity(self.pieces_a_call);
        let mut offset = 0;
        loop {
            batch.clear();
            batch.extend(
                pieces
                    .by_ref()
                    .take(self.pieces_a_call)
                    .map(IoSliceMut::new),
            );
            let wanted: usize = batch.iter().map(|piece| piece.len()).sum();
            if wanted == 0 {
                return Ok(());
            }
            match retry_on_intr(|| preadv(memory, &mut batch, offset as u64)) {
                Ok(moved) if moved == wanted => offset += wanted,
                // The memfd has all bytes, so what stopped the kernel is the mapping.
                Ok(_) | Err(Errno::FAULT) => return Err(no_space()),
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// Puts the pieces one behind the other.
fn fill(memory: &File, stage: &Stage<'_>) -> io::Result<()> {
    let mut offset = 0;
    for piece in stage.pattern.pieces(0..stage.span()) {
        let bytes = &stage.source[piece];
        memory.write_all_at(bytes, offset)?;
        offset += bytes.len() as u64;
    }
    Ok(())
}

fn no_space() -> io::Error {
    io::Error::new(
        io::ErrorKind::StorageFull,
        "no space for a page of the mapping",
    )
}
