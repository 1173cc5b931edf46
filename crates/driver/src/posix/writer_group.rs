//! Ranks of a node that write to a file through one open description.
//!
//! The kernel grants a lease on the only description of a file, and while it is held nobody
//! else has the file open ([`lease`](super::lease)). A description that several ranks share lets
//! each of them rewrite ranges, holes included, under one lease. Among themselves they use locks
//! on a file in memory, of which each rank has a description of its own. The kernel releases
//! the locks of a rank that dies.
//!
//! - A rank that rewrites holds a shared lock on [`REWRITERS`] from before the lease is taken until it
//!   is of no use any more, and an exclusive one on each range between reading and writing it.
//!   The first takes the lease, alone, and the last releases it.
//! - A rank that writes in any other way [announces](super::announcements) that and waits until nobody rewrites.
//!   Each side says so before it looks for the other, so at least one of them sees the other.
//!   Only ordinary writers wait, and not for long: a rank that rewrites looks for them before each range,
//!   and continues as one of them.
//!
//! A rank that needs a description of its own, for locks on the file, opens one: the kernel
//! then ends the lease and grants no other. The same is the way out if anything fails.

mod group_lease;

use std::{
    io,
    ops::Range,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc, Mutex, OnceLock, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use self::group_lease::GroupLease;
use super::{
    announcements::Announcements,
    descriptor::Descriptor,
    lease::{REOPEN_PAUSE, REOPEN_TRIES, is_transient},
    lock_wait::LockWait,
    sys::{self, KernelLock},
};
use crate::{
    Lease, LockMode, RangeLock,
    closing::{WeakAccess, lock},
};

/// Bytes of the lock file.
const REWRITERS: Range<u64> = 0..1;
/// Where the bytes of the file begin.
const RANGES_AT: u64 = 1;

/// How often a rank tries to enter while others are entering or leaving.
const ENTRY_TRIES: u32 = 8;

/// If ranks are counted that rewrite, but have had no lock for so long, they are lost.
const LOST_AFTER: Duration = Duration::from_millis(20);

/// How long to yield before the first sleep while a range is rewritten by another rank.
const YIELD_FOR: Duration = Duration::from_millis(1);

/// Attempts that are left out after a refusal, at most: two to this power.
const SKIPPED_POWER_MAX: u32 = 6;

/// Why a handle cannot be used any more.
pub(super) type Lost = Arc<OnceLock<(io::ErrorKind, String)>>;

/// One rank's part in a description that ranks share.
#[derive(Debug)]
pub struct WriterGroup {
    file: WeakAccess<Descriptor>,
    announcements: Announcements,
    /// `None` once it could not be used.
    lock_file: RwLock<Option<OwnedFd>>,
    /// Device and inode of the lock file: programs close descriptors that are not theirs.
    identity: (u64, u64),
    is_shared: AtomicBool,
    unsharing: Mutex<()>,
    lost: Lost,
    attempts: Mutex<Attempts>,
}

/// When a lease is tried: after each refusal, twice as many calls do without.
#[derive(Debug, Default)]
struct Attempts {
    skipped: u32,
    refusals: u32,
}

impl Attempts {
    fn is_due(&mut self) -> bool {
        let is_due = self.skipped == 0;
        self.skipped = self.skipped.saturating_sub(1);
        is_due
    }

    fn note(&mut self, entry: Entry) {
        self.refusals = match entry {
            Entry::Granted => 0,
            Entry::Busy => return,
            Entry::Refused => (self.refusals + 1).min(SKIPPED_POWER_MAX),
        };
        self.skipped = (1 << self.refusals) - 1;
    }
}

/// What became of an attempt to rewrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Granted,
    /// Another rank writes otherwise.
    Busy,
    /// Others have the file open, or wait to open it.
    Refused,
}

impl WriterGroup {
    /// A rank that uses the shared description from now on.
    pub(super) fn new(
        file: WeakAccess<Descriptor>,
        lock_file: BorrowedFd<'_>,
        lost: Lost,
    ) -> io::Result<WriterGroup> {
        let own = sys::reopen(lock_file, libc::O_RDWR)?;
        let identity = identity(own.as_fd())?;
        if identity != self::identity(lock_file)? {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(WriterGroup {
            file,
            announcements: Announcements::new(lock_file)?,
            lock_file: RwLock::new(Some(own)),
            identity,
            is_shared: AtomicBool::new(true),
            unsharing: Mutex::default(),
            lost,
            attempts: Mutex::default(),
        })
    }

    /// Whether this rank uses the shared description.
    pub fn is_shared(&self) -> bool {
        self.is_shared.load(Ordering::Acquire)
    }

    /// Uses the lock file, which is given up if that fails.
    fn with_locks<R>(&self, work: impl FnOnce(BorrowedFd<'_>) -> io::Result<R>) -> io::Result<R> {
        let lock_file = self
            .lock_file
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let fd = lock_file.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let result = work(fd.as_fd());
        drop(lock_file);
        if result.is_err() {
            self.give_up();
        }
        result
    }

    /// Ends this rank's part before its file is closed.
    pub(super) fn close(&self, file: BorrowedFd<'_>) {
        let _ = self.with_locks(|fd| end_unused_lease(fd, file));
        self.give_up();
    }

    /// Closes the lock file, which releases all locks of this rank.
    fn give_up(&self) {
        let mut lock_file = self
            .lock_file
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(fd) = lock_file.take()
            && check(fd.as_fd(), self.identity).is_err()
        {
            // The descriptor may be another file's by now.
            std::mem::forget(fd);
        }
    }

    /// Waits until no other rank rewrites, and keeps them from it until
    /// [`retract`](Self::retract). Not to be called again before that.
    pub fn announce(&self) {
        let is_free = self.announcements.announce();
        if is_free || !self.is_shared() {
            return;
        }
        if self.with_locks(|fd| self.wait_for_rewriters(fd)).is_err() {
            self.unshare_or_close();
        }
    }

    /// An error if those who rewrite are lost.
    fn wait_for_rewriters(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        check(fd, self.identity)?;
        let rewriters = || sys::lock_in_the_way(fd, REWRITERS, KernelLock::Exclusive);
        let mut wait = LockWait::new();
        let mut unlocked_since = None;
        while self.announcements.is_rewritten() {
            let now = Instant::now();
            unlocked_since = match rewriters()? {
                Some(_) => None,
                None => unlocked_since.or(Some(now)),
            };
            if unlocked_since.is_some_and(|since| now - since > LOST_AFTER) {
                // They cannot do it.
                if let Some(file) = self.file.enter() {
                    sys::release_lease(file.buffered());
                }
                return Err(io::ErrorKind::NotConnected.into());
            }
            wait.pause(&REWRITERS, Instant::now(), rewriters)?;
        }
        Ok(())
    }

    /// Ends what [`announce`](Self::announce) began.
    pub fn retract(&self) {
        self.announcements.retract();
    }

    /// Whether [`announce`](Self::announce) would wait.
    pub fn has_rewriters(&self) -> bool {
        self.is_shared() && self.announcements.is_rewritten()
    }

    /// A lease under which ranks may rewrite ranges that they [lock](Lease::lock). `None` if
    /// others have the file open, or another rank writes without that. This rank must have no
    /// other write under way.
    pub fn rewrite(self: &Arc<Self>) -> Option<Box<dyn Lease>> {
        if !self.is_shared() || !lock(&self.attempts).is_due() {
            return None;
        }
        let file = self.file.enter()?;
        let entry = self
            .with_locks(|fd| self.enter(fd, file.buffered()))
            .unwrap_or(Entry::Refused);
        lock(&self.attempts).note(entry);
        (entry == Entry::Granted).then(|| {
            let group = self.clone();
            let is_ordinary = AtomicBool::new(false);
            Box::new(GroupLease {
                group,
                file,
                is_ordinary,
            }) as Box<dyn Lease>
        })
    }

    /// Nobody takes a lease while somebody rewrites, so a lease that is intact has been all
    /// the time.
    fn enter(&self, fd: BorrowedFd<'_>, file: BorrowedFd<'_>) -> io::Result<Entry> {
        check(fd, self.identity)?;
        for _ in 0..ENTRY_TRIES {
            let is_first = sys::lock_try(fd, REWRITERS, KernelLock::Exclusive)?;
            if !is_first && !sys::lock_try(fd, REWRITERS, KernelLock::Shared)? {
                thread::yield_now();
                continue;
            }
            if !self.announcements.enter() {
                leave(fd, file)?;
                return Ok(Entry::Busy);
            }
            let is_taken = !is_first || sys::take_lease(file).is_ok();
            if is_taken && sys::has_lease(file) {
                // The first lets others in from now on.
                sys::lock_try(fd, REWRITERS, KernelLock::Shared)?;
                return Ok(Entry::Granted);
            }
            self.announcements.leave();
            leave(fd, file)?;
            if is_first {
                return Ok(Entry::Refused);
            }
            thread::yield_now();
        }
        Ok(Entry::Busy)
    }

    fn lock_range(self: &Arc<Self>, range: Range<u64>) -> io::Result<RangeLock> {
        let place = range.start.saturating_add(RANGES_AT)..range.end.saturating_add(RANGES_AT);
        self.with_locks(|fd| {
            let mut wait = LockWait::yielding(YIELD_FOR);
            while !sys::lock_try(fd, place.clone(), KernelLock::Exclusive)? {
                let look = || sys::lock_in_the_way(fd, place.clone(), KernelLock::Exclusive);
                wait.pause(&range, Instant::now(), look)?;
            }
            Ok(())
        })?;
        let group = self.clone();
        Ok(RangeLock::new(range, LockMode::Exclusive, move || {
            let _ = group.with_locks(|fd| sys::lock_try(fd, place, KernelLock::None));
        }))
    }

    /// Gives this rank a description of its own. Waits for the end of a lease.
    pub(super) fn unshare(&self) -> io::Result<()> {
        let _alone = lock(&self.unsharing);
        if self.is_shared()
            && let Some(file) = self.file.enter()
        {
            // Opening it again would wait for a lease that a rank has left behind.
            let _ = self.with_locks(|fd| end_unused_lease(fd, file.buffered()));
            file.unshare()?;
            self.is_shared.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// The same if the others cannot be waited for.
    fn unshare_or_close(&self) {
        let mut failed = None;
        for _ in 0..REOPEN_TRIES {
            match self.unshare() {
                Ok(()) => return,
                Err(error) if is_transient(&error) => {
                    thread::sleep(REOPEN_PAUSE);
                    failed = Some(error);
                }
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        if let Some(error) = failed {
            let message = format!(
                "writes cannot be coordinated with other ranks, and the file could not be opened \
                 again: {error}"
            );
            let _ = self.lost.set((error.kind(), message));
        }
        self.file.abandon();
    }
}

fn identity(fd: BorrowedFd<'_>) -> io::Result<(u64, u64)> {
    let identity = sys::identity(fd)?;
    Ok((identity.device, identity.inode))
}

fn check(fd: BorrowedFd<'_>, expected: (u64, u64)) -> io::Result<()> {
    match identity(fd)? == expected {
        true => Ok(()),
        false => Err(io::ErrorKind::NotConnected.into()),
    }
}

/// Ends this rank's part, and the lease if nobody else rewrites.
fn leave(fd: BorrowedFd<'_>, file: BorrowedFd<'_>) -> io::Result<()> {
    sys::lock_try(fd, REWRITERS, KernelLock::None)?;
    end_unused_lease(fd, file)
}

/// Ends the lease if nobody rewrites.
fn end_unused_lease(fd: BorrowedFd<'_>, file: BorrowedFd<'_>) -> io::Result<()> {
    // Whoever prevents this is in, and does the same later.
    if sys::lock_try(fd, REWRITERS, KernelLock::Exclusive)? {
        sys::release_lease(file);
        sys::lock_try(fd, REWRITERS, KernelLock::None)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
