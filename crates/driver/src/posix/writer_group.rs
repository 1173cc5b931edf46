//! Ranks of a node that write to a file through one open description.
//!
//! The kernel grants a lease on the only description of a file, and while it is held nobody
//! else has the file open ([`lease`](super::lease)). A description that several ranks share lets
//! each of them rewrite ranges, holes included, under one lease. Among themselves they use locks
//! on a file in memory, of which each rank has a description of its own. The kernel releases
//! the locks of a rank that dies.
//!
//! - Who rewrites holds a shared lock on [`REWRITERS`] from before the lease is taken until it
//!   is of no use any more, and an exclusive one on each range between reading and writing it.
//!   The first takes the lease, alone, and the last releases it.
//! - Who writes otherwise [announces](super::announcements) that and waits until nobody rewrites.
//!   Each side says so before it looks for the other, so at least one of them sees the other.
//!   Only ordinary writers wait, and not for long: who rewrites looks for them before each range,
//!   and writes on as one of them.
//!
//! A rank that needs a description of its own, for locks on the file, opens one: the kernel
//! then ends the lease and grants no other. The same is the way out if anything fails.

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

use super::{
    announcements::Announcements,
    descriptor::Descriptor,
    lease::{REOPEN_PAUSE, REOPEN_TRIES, is_transient},
    lock_wait::LockWait,
    sys::{self, KernelLock},
};
use crate::{
    Lease, LockMode, RangeLock,
    closing::{ResourceGuard, WeakAccess, lock},
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
                // The first has others in from now on.
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

/// A lease on the shared description.
#[derive(Debug)]
struct GroupLease {
    group: Arc<WriterGroup>,
    file: ResourceGuard<Descriptor>,
    /// Set once this rank writes like any other, and no longer rewrites.
    is_ordinary: AtomicBool,
}

impl GroupLease {
    fn is_ordinary(&self) -> bool {
        self.is_ordinary.load(Ordering::Relaxed)
    }

    fn leave(&self) {
        self.group.announcements.leave();
        let _ = self.group.with_locks(|fd| leave(fd, self.file.buffered()));
    }

    /// Lets ordinary writers of other ranks in, and becomes one. No range may be locked: others
    /// who rewrite do the same, but only after the range that they are waiting for.
    fn become_ordinary(&self) {
        self.leave();
        self.is_ordinary.store(true, Ordering::Relaxed);
        self.group.announce();
    }
}

impl Lease for GroupLease {
    fn is_intact(&self) -> bool {
        let lock_file = self.group.lock_file.read();
        let lock_file = lock_file.unwrap_or_else(PoisonError::into_inner);
        !self.is_ordinary()
            && lock_file.is_some()
            && self.group.is_shared()
            && sys::has_lease(self.file.buffered())
    }

    fn lock(&self, range: Range<u64>) -> Option<RangeLock> {
        if self.is_ordinary() {
            return None;
        }
        let lock = match self.group.announcements.is_written() {
            true => None,
            false => self.group.lock_range(range).ok(),
        };
        if lock.is_none() {
            self.become_ordinary();
        }
        lock
    }
}

impl Drop for GroupLease {
    fn drop(&mut self) {
        match self.is_ordinary() {
            true => self.group.retract(),
            false => self.leave(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, Batch, Create, Driver, Handle, Mailbox, OpenHow, Posix};
    use std::{fs, os::fd::AsRawFd, path::PathBuf};

    struct Ranks {
        directory: tempfile::TempDir,
        handles: Vec<Arc<dyn Handle>>,
    }

    impl Ranks {
        /// Handles with one description; `None` if files here cannot be leased.
        fn new(count: usize) -> Option<Ranks> {
            let directory = tempfile::tempdir().unwrap();
            let how = OpenHow::new(Access::ReadWrite).create(Create::IfMissing);
            let open = || {
                let path = directory.path().join("file");
                Posix::new().open(&path, &how).unwrap()
            };
            let handles: Vec<_> = (0..count).map(|_| open()).collect();
            let offer = handles[0].offer_description(count)?;
            for handle in &handles[1..] {
                let mailbox = Mailbox::new().unwrap();
                offer.send(mailbox.address()).unwrap();
                assert!(handle.adopt_description(&mailbox.receive().unwrap()));
            }
            Some(Ranks { directory, handles })
        }

        fn path(&self) -> PathBuf {
            self.directory.path().join("file")
        }

        fn group(&self, rank: usize) -> Arc<WriterGroup> {
            self.handles[rank].writer_group().unwrap()
        }
    }

    fn finishes_only_after(work: impl FnOnce() + Send, event: impl FnOnce()) {
        thread::scope(|scope| {
            let work = scope.spawn(work);
            thread::sleep(Duration::from_millis(20));
            assert!(!work.is_finished());
            event();
            work.join().unwrap();
        });
    }

    #[test]
    fn ranks_have_a_lease_together() {
        let Some(ranks) = Ranks::new(3) else { return };
        let one = ranks.group(0).rewrite().unwrap();
        let other = ranks.group(1).rewrite().unwrap();
        drop(one);
        assert!(other.is_intact(), "the last one ends it");
        let opener = || drop(fs::File::open(ranks.path()).unwrap());
        finishes_only_after(opener, || drop(other));
        assert!(ranks.group(2).rewrite().is_some(), "after the opener");
    }

    #[test]
    fn there_is_no_lease_while_others_have_the_file_open() {
        let Some(ranks) = Ranks::new(2) else { return };
        let reader = fs::File::open(ranks.path()).unwrap();
        assert!(ranks.group(1).rewrite().is_none());
        drop(reader);
        assert!(
            ranks.group(1).rewrite().is_none(),
            "not tried again at once"
        );
        assert!(ranks.group(0).rewrite().is_some());
        assert!(ranks.group(1).rewrite().is_some());
    }

    /// Nobody joins in a lease that somebody waits for.
    #[test]
    fn whoever_opens_the_file_gets_it_in_the_end() {
        let Some(ranks) = Ranks::new(2) else { return };
        let lease = ranks.group(0).rewrite().unwrap();
        thread::scope(|scope| {
            let opener = scope.spawn(|| fs::File::open(ranks.path()).unwrap());
            while lease.is_intact() {
                thread::yield_now();
            }
            assert!(ranks.group(1).rewrite().is_none());
            assert!(!opener.is_finished());
            drop(lease);
            let file = opener.join().unwrap();
            assert!(ranks.group(0).rewrite().is_none());
            drop(file);
        });
    }

    #[test]
    fn ranges_exclude_ranks_from_each_other() {
        let Some(ranks) = Ranks::new(2) else { return };
        let (one, other) = (ranks.group(0).rewrite(), ranks.group(1).rewrite());
        let (one, other) = (one.unwrap(), other.unwrap());
        let held = one.lock(100..200).unwrap();
        drop(other.lock(0..100).unwrap());
        drop(other.lock(200..u64::MAX).unwrap());
        finishes_only_after(move || drop(other.lock(199..300).unwrap()), || drop(held));
    }

    #[test]
    fn ordinary_writes_and_rewriting_exclude_each_other() {
        let Some(ranks) = Ranks::new(3) else { return };
        let lease = ranks.group(0).rewrite().unwrap();
        assert!(ranks.group(1).has_rewriters());
        finishes_only_after(|| ranks.group(1).announce(), || drop(lease));
        ranks.group(2).announce();
        assert!(ranks.group(0).rewrite().is_none());
        ranks.group(1).retract();
        assert!(ranks.group(0).rewrite().is_none());
        ranks.group(2).retract();
        assert!(ranks.group(0).rewrite().is_some());
    }

    /// An ordinary writer waits for the range that is being rewritten, not for the whole call.
    #[test]
    fn who_rewrites_lets_ordinary_writers_in_before_the_next_range() {
        let Some(ranks) = Ranks::new(3) else { return };
        let lease = ranks.group(0).rewrite().unwrap();
        let range = lease.lock(0..10);
        assert!(range.is_some() && lease.is_intact());
        let writer = ranks.group(1);
        let (announced, next) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                writer.announce();
                announced.send(()).unwrap();
            });
            while !lease_is_wanted(&ranks) {
                thread::yield_now();
            }
            assert!(next.try_recv().is_err(), "a range is being rewritten");
            drop(range);
            assert!(lease.lock(10..20).is_none());
            next.recv().unwrap();
        });
        assert!(!lease.is_intact());
        assert!(ranks.group(2).rewrite().is_none(), "two ranks write");
        writer.retract();
        assert!(ranks.group(2).rewrite().is_none(), "one rank writes");
        drop(lease);
        assert!(ranks.group(2).rewrite().is_some());
    }

    fn lease_is_wanted(ranks: &Ranks) -> bool {
        ranks.group(2).announcements.is_written()
    }

    /// A lock on the file needs a description that only this rank has.
    #[test]
    fn locks_of_the_file_end_the_sharing() {
        let Some(ranks) = Ranks::new(2) else { return };
        let lease = ranks.group(1).rewrite().unwrap();
        let group = ranks.group(0);
        finishes_only_after(
            || drop(ranks.handles[0].lock(0..10, LockMode::Exclusive).unwrap()),
            || drop(lease),
        );
        assert!(ranks.handles[0].writer_group().is_none());
        assert!(group.rewrite().is_none());
        assert!(
            ranks.group(1).rewrite().is_none(),
            "there are two descriptions"
        );
        let held = ranks.handles[0].lock(0..10, LockMode::Exclusive).unwrap();
        let other = ranks.handles[1]
            .try_lock(5..6, LockMode::Exclusive)
            .unwrap();
        assert!(other.is_none());
        drop(held);
        ranks.handles[0]
            .transfer(&Batch::write(0, b"own"))
            .into_result()
            .unwrap();
        assert_eq!(fs::read(ranks.path()).unwrap(), b"own");
    }

    /// The program has closed the descriptor of the lock file and opened another file in its
    /// place.
    #[test]
    fn a_replaced_lock_file_ends_the_sharing() {
        let Some(ranks) = Ranks::new(2) else { return };
        let group = ranks.group(0);
        let number = group
            .lock_file
            .read()
            .unwrap()
            .as_ref()
            .unwrap()
            .as_raw_fd();
        let other = sys::memory_file(c"other").unwrap();
        let guard = group.lock_file.read().unwrap();
        sys::replace_description(guard.as_ref().unwrap().as_fd(), other.as_fd()).unwrap();
        drop(guard);
        assert!(group.rewrite().is_none());
        let lease = ranks.group(1).rewrite().unwrap();
        finishes_only_after(|| group.announce(), || drop(lease));
        assert!(!group.is_shared());
        assert!(
            ranks.group(1).rewrite().is_none(),
            "there are two descriptions"
        );
        group.retract();
        ranks.handles[0]
            .transfer(&Batch::write(0, b"still open"))
            .into_result()
            .unwrap();
        assert!(fs::metadata(format!("/proc/self/fd/{number}")).is_ok());
    }

    /// As if a rank had been killed: the kernel releases its locks, but it is still counted.
    #[test]
    fn ranks_that_are_lost_are_not_waited_for() {
        let Some(ranks) = Ranks::new(3) else { return };
        let lost = ranks.group(0).rewrite().unwrap();
        let range = lost.lock(0..10).unwrap();
        ranks.group(0).give_up();
        let other = ranks.group(1).rewrite().unwrap();
        drop(other.lock(0..10).unwrap());
        drop(other);
        let third = ranks.group(2);
        third.announce();
        assert!(!third.is_shared());
        assert!(!lost.is_intact());
        third.retract();
        drop((range, lost));
    }

    #[test]
    fn only_a_file_that_is_not_locked_is_shared() {
        let Some(ranks) = Ranks::new(1) else { return };
        let how = OpenHow::new(Access::ReadWrite);
        let open = |name: &str, how: &OpenHow| {
            let path = ranks.directory.path().join(name);
            Posix::new().open(&path, how).unwrap()
        };
        let offer = || ranks.handles[0].offer_description(2).unwrap();
        let other = open("file", &how);
        let held = other.lock(0..1, LockMode::Shared).unwrap();
        assert!(!other.adopt_description(&offer()));
        drop(held);
        assert!(other.adopt_description(&offer()));
        let another = open("another", &how.clone().create(Create::Exclusive));
        assert!(!another.adopt_description(&offer()));
        let reader = open("file", &OpenHow::new(Access::Read));
        assert!(!reader.adopt_description(&offer()));
    }
}
