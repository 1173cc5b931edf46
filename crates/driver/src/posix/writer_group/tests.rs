use super::{super::test_directories::with_leases, *};
use crate::{Access, Batch, Create, Driver, Handle, Mailbox, OpenHow, Posix};
use std::{fs, os::fd::AsRawFd, path::PathBuf};
use tempfile::TempDir;

struct Ranks {
    directory: TempDir,
    handles: Vec<Arc<dyn Handle>>,
}

impl Ranks {
    /// Handles with one description, in each directory in which files can be leased.
    fn everywhere(count: usize) -> impl Iterator<Item = Ranks> {
        let directories = with_leases().into_iter();
        directories.map(move |directory| Ranks::new(directory, count))
    }

    fn new(directory: TempDir, count: usize) -> Ranks {
        let how = OpenHow::new(Access::ReadWrite).create(Create::IfMissing);
        let open = || {
            let path = directory.path().join("file");
            Posix::new().open(&path, &how).unwrap()
        };
        let handles: Vec<_> = (0..count).map(|_| open()).collect();
        let offer = handles[0].offer_description(count).unwrap();
        for handle in &handles[1..] {
            let mailbox = Mailbox::new().unwrap();
            offer.send(mailbox.address()).unwrap();
            assert!(handle.adopt_description(&mailbox.receive().unwrap()));
        }
        Ranks { directory, handles }
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
    for ranks in Ranks::everywhere(3) {
        let one = ranks.group(0).rewrite().unwrap();
        let other = ranks.group(1).rewrite().unwrap();
        drop(one);
        assert!(other.is_intact(), "the last one ends it");
        let opener = || drop(fs::File::open(ranks.path()).unwrap());
        finishes_only_after(opener, || drop(other));
        assert!(ranks.group(2).rewrite().is_some(), "after the opener");
    }
}

#[test]
fn there_is_no_lease_while_others_have_the_file_open() {
    for ranks in Ranks::everywhere(2) {
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
}

/// Nobody joins in a lease that somebody waits for.
#[test]
fn whoever_opens_the_file_gets_it_in_the_end() {
    for ranks in Ranks::everywhere(2) {
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
}

#[test]
fn ranges_exclude_ranks_from_each_other() {
    for ranks in Ranks::everywhere(2) {
        let (one, other) = (ranks.group(0).rewrite(), ranks.group(1).rewrite());
        let (one, other) = (one.unwrap(), other.unwrap());
        let held = one.lock(100..200).unwrap();
        drop(other.lock(0..100).unwrap());
        drop(other.lock(200..u64::MAX).unwrap());
        finishes_only_after(move || drop(other.lock(199..300).unwrap()), || drop(held));
    }
}

#[test]
fn ordinary_writes_and_rewriting_exclude_each_other() {
    for ranks in Ranks::everywhere(3) {
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
}

/// An ordinary writer waits for the range that is being rewritten, not for the whole call.
#[test]
fn who_rewrites_lets_ordinary_writers_in_before_the_next_range() {
    for ranks in Ranks::everywhere(3) {
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
}

fn lease_is_wanted(ranks: &Ranks) -> bool {
    ranks.group(2).announcements.is_written()
}

/// A lock on the file needs a description that only this rank has.
#[test]
fn locks_of_the_file_end_the_sharing() {
    for ranks in Ranks::everywhere(2) {
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
}

/// The program has closed the descriptor of the lock file and opened another file in its
/// place.
#[test]
fn a_replaced_lock_file_ends_the_sharing() {
    for ranks in Ranks::everywhere(2) {
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
}

/// As if a rank had been killed: the kernel releases its locks, but it is still counted.
#[test]
fn ranks_that_are_lost_are_not_waited_for() {
    for ranks in Ranks::everywhere(3) {
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
}

#[test]
fn only_a_file_that_is_not_locked_is_shared() {
    for ranks in Ranks::everywhere(1) {
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
