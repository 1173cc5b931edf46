//! Which pieces of a list are stored through a mapping and which are written by
//! calls.

use std::{
    io,
    ops::Range,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Mutex, OnceLock, PoisonError, RwLock, RwLockWriteGuard,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use super::{
    cluster::{self, Cluster, clusters},
    mapping::{Mapping, Populate},
    staging::Staging,
};
use crate::{
    Batch, Direction, Outcome,
    closing::lock,
    posix::{Calls, SystemCall, sys},
};

/// Mappings start and end at multiples of this, so that the next list can often
/// use the last one's.
const REGION_BYTES: u64 = 4 << 20;

/// Who copies the pieces into the mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copier {
    /// The kernel: a page that cannot be had is an error of the call.
    Kernel,
    /// The program: a page that cannot be had raises a signal.
    Program,
}

/// Stores through mappings of an open file.
#[derive(Debug)]
pub(crate) struct Stores {
    copier: Copier,
    populate: Populate,
    /// The number of pieces per page from which storing is faster than calls, if it is known.
    per_page: Option<u64>,
    /// Held shared by stores, exclusively by whoever truncates the file.
    truncation: RwLock<()>,
    /// Set once the kernel or the file system has permanently rejected a mapping.
    is_unsupported: AtomicBool,
    /// The mapping that was used last.
    idle: Mutex<Option<Mapping>>,
    /// A description that allows reading, which a writable mapping needs, if the
    /// file's own does not.
    readable: OnceLock<OwnedFd>,
}

/// The file that a batch is moved to.
pub(crate) struct Target<'f> {
    pub(crate) calls: &'f Calls,
    pub(crate) file: BorrowedFd<'f>,
    pub(crate) can_read: bool,
}

impl Stores {
    pub(crate) fn new(copier: Copier, populate: Populate, per_page: Option<u64>) -> Self {
        Stores {
            copier,
            populate,
            per_page,
            truncation: RwLock::default(),
            is_unsupported: AtomicBool::new(false),
            idle: Mutex::default(),
            readable: OnceLock::new(),
        }
    }

    /// Excludes stores while the guard lives.
    pub(crate) fn exclude(&self) -> RwLockWriteGuard<'_, ()> {
        self.truncation
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Unmaps what is kept for the next list: a mapping keeps the file open.
    pub(crate) fn forget_mapping(&self) {
        *lock(&self.idle) = None;
    }

    /// Whether a list of so many pieces, evenly distributed over so many bytes of
    /// the file, would be stored.
    pub(crate) fn take(&self, pieces: u64, span: u64) -> bool {
        let pages = span.div_ceil(sys::page_size());
        !self.is_unsupported.load(Relaxed) && cluster::are_dense(pieces, pages, self.per_page)
    }

    /// Moves a batch. `by_calls` moves the parts for which a mapping has no
    /// advantage or failed; only its errors are reported.
    pub(crate) fn transfer<'a>(
        &self,
        target: &Target<'_>,
        batch: &Batch<'a>,
        by_calls: impl Fn(&Batch<'a>) -> Outcome,
    ) -> Outcome {
        let few = (batch.pieces().len() as u64) < cluster::PIECES_MIN;
        if few || batch.direction() == Direction::Read || self.is_unsupported.load(Relaxed) {
            return by_calls(batch);
        }
        transfer(batch, self.per_page, &by_calls, |cluster| {
            let _shared = self
                .truncation
                .read()
                .unwrap_or_else(PoisonError::into_inner);
            let stored = self.store(target, batch, cluster, &by_calls);
            if let Err(error) = &stored
                && is_final(error)
            {
                self.is_unsupported.store(true, Relaxed);
            }
            stored
        })
    }

    /// Stores the pieces of a cluster. After an error, some may have been written.
    fn store<'a>(
        &self,
        target: &Target<'_>,
        batch: &Batch<'a>,
        cluster: &Cluster,
        by_calls: impl Fn(&Batch<'a>) -> Outcome,
    ) -> io::Result<()> {
        let mut mapping = self.mapping(target, &cluster.range)?;
        // Only a write extends a file without truncating what others append
        // concurrently; it also checks the limit of the file's size and sets the
        // time of modification. The last byte is enough.
        let last = batch.subset(cluster.last..cluster.last + 1);
        by_calls(&last.suffix(last.bytes() - 1)).into_result()?;
        let pieces = cluster.pieces.clone();
        let populated = mapping.populate(&cluster.range, self.populate);
        match self.copier {
            Copier::Program => {
                populated?;
                mapping.store(batch, pieces);
            }
            Copier::Kernel => {
                // Kernels before 5.14 populate nothing: the copy does.
                populated.or_else(|error| match error.raw_os_error() {
                    Some(libc::EINVAL) => Ok(()),
                    _ => Err(error),
                })?;
                Staging::borrow()?.store(target.calls, &mut mapping, batch, pieces)?;
            }
        }
        *lock(&self.idle) = Some(mapping);
        Ok(())
    }

    /// A mapping that covers a range.
    fn mapping(&self, target: &Target<'_>, range: &Range<u64>) -> io::Result<Mapping> {
        let kept = lock(&self.idle).take();
        if let Some(mapping) = kept.filter(|mapping| mapping.covers(range)) {
            return Ok(mapping);
        }
        let file = match target.can_read {
            true => target.file,
            false => self.readable(target.file)?,
        };
        let start = range.start - range.start % REGION_BYTES;
        let end = range.end.checked_next_multiple_of(REGION_BYTES);
        let region = start..end.ok_or(io::ErrorKind::FileTooLarge)?;
        target
            .calls
            .make(SystemCall::Map, 0, |_| Mapping::new(file, region.clone()))
    }

    fn readable(&self, file: BorrowedFd<'_>) -> io::Result<BorrowedFd<'_>> {
        if let Some(open) = self.readable.get() {
            return Ok(open.as_fd());
        }
        let open = sys::reopen(file, libc::O_RDWR)?;
        Ok(self.readable.get_or_init(|| open).as_fd())
    }
}

/// Whether later mappings of the same file would fail too: the kernel does not
/// support it, the file may not be mapped for writing, or the file system does
/// not support mappings.
fn is_final(error: &io::Error) -> bool {
    let refused = matches!(
        error.raw_os_error(),
        Some(
            libc::EINVAL | libc::EACCES | libc::EPERM | libc::ENODEV | libc::ENOSYS | libc::ENOENT
        )
    );
    refused || error.kind() == io::ErrorKind::Unsupported
}

/// Moves a batch whose dense clusters can be stored.
fn transfer<'a>(
    batch: &Batch<'a>,
    per_page: Option<u64>,
    by_calls: impl Fn(&Batch<'a>) -> Outcome,
    store: impl Fn(&Cluster) -> io::Result<()>,
) -> Outcome {
    let count = batch.pieces().len();
    let mut moved = 0;
    // Everything before this piece has been written.
    let mut done = 0;
    for cluster in clusters(batch.pieces()).filter(|it| it.is_dense(per_page)) {
        if done < cluster.pieces.start {
            let before = by_calls(&batch.subset(done..cluster.pieces.start));
            moved += before.bytes;
            if before.error.is_some() {
                return Outcome {
                    bytes: moved,
                    ..before
                };
            }
            done = cluster.pieces.start;
        }
        if store(&cluster).is_ok() {
            moved += cluster.bytes;
            done = cluster.pieces.end;
        }
    }
    if done == 0 {
        return by_calls(batch);
    }
    let rest = by_calls(&batch.subset(done..count));
    Outcome {
        bytes: moved + rest.bytes,
        ..rest
    }
}
