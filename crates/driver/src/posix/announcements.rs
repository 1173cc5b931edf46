//! Counters in memory that the ranks of a description share: who writes, and whether anyone
//! rewrites. A system call per write would take as long as a small write.
//!
//! This file may contain `unsafe`: atomic words in a mapped file.
#![allow(unsafe_code)]

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    sync::atomic::{AtomicU32, Ordering},
};

use memmap2::{MmapOptions, MmapRaw};

use super::sys;

/// Words of different ranks are this far apart, so that ranks do not slow each other down.
const STRIDE: usize = 128;

/// The lines of the file: the number of ranks that rewrite, the number of slots in use, and then
/// a slot per rank, which is 1 while the rank has ordinary writes under way.
const REWRITERS_LINE: usize = 0;
const SLOTS_LINE: usize = 1;
const FIRST_SLOT_LINE: usize = 2;

/// One rank's view of the counters.
#[derive(Debug)]
pub(super) struct Announcements {
    memory: MmapRaw,
    lines: usize,
    /// The line of this rank.
    own: usize,
}

/// A file for the counters of so many ranks. Its memory is allocated, so that using it cannot
/// fail.
pub(super) fn file(ranks: usize) -> io::Result<OwnedFd> {
    let file = sys::memory_file(c"pario-writers")?;
    let bytes = (FIRST_SLOT_LINE + ranks) * STRIDE;
    let bytes = i64::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
    if sys::file_size_limit()? < bytes as u64 {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    sys::allocate(file.as_fd(), bytes)?;
    Ok(file)
}

impl Announcements {
    /// Takes a slot in such a file.
    pub(super) fn new(file: BorrowedFd<'_>) -> io::Result<Announcements> {
        let bytes = usize::try_from(sys::size(file)?).map_err(|_| io::ErrorKind::InvalidData)?;
        let memory = MmapOptions::new().len(bytes).map_raw(file.as_raw_fd())?;
        let mut announcements = Announcements {
            memory,
            lines: bytes / STRIDE,
            own: 0,
        };
        if announcements.lines <= FIRST_SLOT_LINE {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let slot = announcements
            .word(SLOTS_LINE)
            .fetch_add(1, Ordering::SeqCst);
        announcements.own = FIRST_SLOT_LINE.saturating_add(slot as usize);
        match announcements.own < announcements.lines {
            true => Ok(announcements),
            false => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// # Panics
    /// If there is no such line.
    fn word(&self, line: usize) -> &AtomicU32 {
        assert!(line < self.lines, "there is no such line");
        // SAFETY: inside the mapping and aligned, since mappings and lines are; all ranks access
        // the word by atomic operations only.
        unsafe { AtomicU32::from_ptr(self.memory.as_mut_ptr().add(line * STRIDE).cast()) }
    }

    /// Announces this rank's ordinary writes; returns whether nobody rewrites.
    pub(super) fn announce(&self) -> bool {
        self.word(self.own).store(1, Ordering::SeqCst);
        !self.is_rewritten()
    }

    pub(super) fn retract(&self) {
        self.word(self.own).store(0, Ordering::SeqCst);
    }

    /// Whether some rank rewrites.
    pub(super) fn is_rewritten(&self) -> bool {
        self.word(REWRITERS_LINE).load(Ordering::SeqCst) > 0
    }

    /// Counts this rank among those that rewrite, unless some rank has ordinary writes under
    /// way; returns whether it does.
    pub(super) fn enter(&self) -> bool {
        self.word(REWRITERS_LINE).fetch_add(1, Ordering::SeqCst);
        let is_written = self.is_written();
        if is_written {
            self.leave();
        }
        !is_written
    }

    /// Whether some rank has ordinary writes under way.
    pub(super) fn is_written(&self) -> bool {
        (FIRST_SLOT_LINE..self.lines).any(|line| self.word(line).load(Ordering::SeqCst) > 0)
    }

    pub(super) fn leave(&self) {
        self.word(REWRITERS_LINE).fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn there_is_a_slot_for_each_rank() {
        let file = file(2).unwrap();
        let ranks = [(); 2].map(|()| Announcements::new(file.as_fd()).unwrap());
        Announcements::new(file.as_fd()).unwrap_err();
        assert!(ranks[0].announce() && !ranks[1].enter());
        ranks[0].retract();
        assert!(ranks[1].enter() && !ranks[0].announce());
        ranks[1].leave();
        assert!(!ranks[0].is_rewritten());
    }

    /// At least one of two that come at the same time sees the other.
    #[test]
    fn nobody_rewrites_beside_an_ordinary_write() {
        const ROUNDS: u32 = 20_000;
        let file = file(2).unwrap();
        let [one, other] = [(); 2].map(|()| Announcements::new(file.as_fd()).unwrap());
        let inside = AtomicU32::new(0);
        let visit = |flag: u32| {
            assert_eq!(inside.fetch_add(flag, Ordering::SeqCst), 0);
            inside.fetch_sub(flag, Ordering::SeqCst);
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    if one.announce() {
                        visit(1);
                    }
                    one.retract();
                }
            });
            for _ in 0..ROUNDS {
                if other.enter() {
                    visit(2);
                    other.leave();
                }
            }
        });
    }
}
