//! Range locks between threads of a handle, between handles and between
//! processes.

use std::{
    ops::Range,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use super::{
    Check,
    background::TIMEOUT,
    process::Child,
    subject::{Subject, read, write},
};
use crate::{Access, Batch, Direction, Handle, LockMode, Outcome, lock::below_end};
use LockMode::{Exclusive, Shared};

pub(super) const CHECKS: &[Check] = &[
    ("conflicts of locks", conflicts),
    ("overlapping shared locks", shared_overlap),
    ("waiting for locks", waiting),
    ("locked increments", increments),
    ("locks between processes", processes),
    ("drivers after fork", after_fork),
];

fn is_free(file: &dyn Handle, range: Range<u64>, mode: LockMode) -> bool {
    file.try_lock(range, mode).unwrap().is_some()
}

fn conflicts(subject: &Subject) {
    let file = subject.create();
    let other = subject.open(Access::ReadWrite);
    // The same rules apply to another thread that uses the handle and to
    // another handle.
    for asking in [&file, &other] {
        for (held, mode) in [
            (10..20, Exclusive),
            (10..20, Shared),
            (0..u64::MAX, Exclusive),
        ] {
            let lock = file.lock(held.clone(), mode).unwrap();
            // Where handles have a flag, locks end before it.
            let allowed = [held.clone(), below_end(&held)];
            assert!(allowed.contains(&lock.range()), "{:?}", lock.range());
            assert_eq!(lock.mode(), mode);
            assert!(!is_free(&**asking, 15..16, Exclusive));
            assert_eq!(is_free(&**asking, 19..30, Shared), mode == Shared);
            assert_eq!(is_free(&**asking, 20..30, Exclusive), held.end == 20);
            assert_eq!(is_free(&**asking, 20..u64::MAX, Exclusive), held.end == 20);
            assert!(
                is_free(&**asking, 15..15, Exclusive),
                "an empty range locks nothing"
            );
            drop(lock);
            assert!(is_free(&**asking, 0..u64::MAX, Exclusive));
        }
        let end = file.lock(u64::MAX - 5..u64::MAX, Exclusive).unwrap();
        assert!(is_free(&**asking, 0..100, Exclusive));
        drop(end);
    }
    let nothing = file.lock(5..5, Exclusive).unwrap();
    assert!(is_free(&*other, 0..10, Exclusive));
    drop(nothing);
    access(subject);
    other.close().unwrap();
    subject.finish(&*file);
}

/// Locks on read-only and write-only handles.
fn access(subject: &Subject) {
    let reader = subject.open(Access::Read);
    let writer = subject.open(Access::Write);
    let lock = writer.lock(0..10, Shared).unwrap();
    drop(lock);
    let lock = writer.lock(0..10, Exclusive).unwrap();
    assert!(!is_free(&*reader, 0..1, Shared));
    drop(lock);
    assert!(reader.lock(0..10, Exclusive).is_err());
    assert!(reader.try_lock(0..10, Exclusive).is_err());
    let lock = reader.lock(0..10, Shared).unwrap();
    assert!(!is_free(&*writer, 0..1, Exclusive));
    drop(lock);
    assert!(is_free(&*writer, 0..1, Exclusive));
    reader.close().unwrap();
    writer.close().unwrap();
}

/// The kernel keeps one lock per byte and open file description; releasing one
/// of two overlapping locks must not release the other.
fn shared_overlap(subject: &Subject) {
    let file = subject.create();
    let other = subject.open(Access::ReadWrite);
    let one = file.lock(0..20, Shared).unwrap();
    let two = file.lock(10..30, Shared).unwrap();
    drop(one);
    assert!(is_free(&*other, 0..10, Exclusive));
    assert!(!is_free(&*other, 10..11, Exclusive));
    assert!(!is_free(&*other, 29..30, Exclusive));
    drop(two);
    assert!(is_free(&*other, 0..30, Exclusive));
    other.close().unwrap();
    subject.finish(&*file);
}

fn waiting(subject: &Subject) {
    let file = subject.create();
    let other = subject.open(Access::ReadWrite);
    for asking in [&file, &other] {
        let released = AtomicBool::new(false);
        let lock = file.lock(0..10, Exclusive).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                let lock = asking.lock(5..15, Exclusive).unwrap();
                assert!(
                    released.load(Ordering::SeqCst),
                    "the lock was granted too early"
                );
                drop(lock);
            });
            thread::sleep(Duration::from_millis(10));
            released.store(true, Ordering::SeqCst);
            drop(lock);
        });
    }
    other.close().unwrap();
    subject.finish(&*file);
}

/// Increments a number in the file under a lock.
fn increment(file: &dyn Handle) {
    let lock = file.lock(0..8, Exclusive).unwrap();
    let number = u64::from_le_bytes(read(file, 0, 8).try_into().unwrap());
    write(file, 0, &(number + 1).to_le_bytes());
    drop(lock);
}

fn number(file: &dyn Handle) -> u64 {
    u64::from_le_bytes(read(file, 0, 8).try_into().unwrap())
}

/// Threads that share a handle and threads with their own handles.
fn increments(subject: &Subject) {
    const EACH: u64 = 150;
    let file = subject.create();
    write(&*file, 0, &[0; 8]);
    thread::scope(|scope| {
        for thread in 0..4 {
            let file = match thread {
                0 | 1 => file.clone(),
                _ => subject.open(Access::ReadWrite),
            };
            scope.spawn(move || (0..EACH).for_each(|_| increment(&*file)));
        }
    });
    assert_eq!(number(&*file), 4 * EACH, "no increment is lost");
    subject.finish(&*file);
}

fn processes(subject: &Subject) {
    const EACH: u64 = 150;
    if !subject.driver.capabilities().between_processes {
        return;
    }
    let file = subject.create();
    write(&*file, 0, &[0; 8]);
    let part = || {
        let file = subject.open(Access::ReadWrite);
        (0..EACH).for_each(|_| increment(&*file));
        file.close().unwrap();
    };
    let children = [Child::run(part), Child::run(part)];
    (0..EACH).for_each(|_| increment(&*file));
    children.into_iter().for_each(Child::join);
    assert_eq!(number(&*file), 3 * EACH, "no increment is lost");
    subject.finish(&*file);
}

/// A forked child can use everything its parent has used.
fn after_fork(subject: &Subject) {
    if !subject.driver.capabilities().between_processes {
        return;
    }
    let file = subject.create();
    background_write(&*file, 0);
    let child = || {
        let file = subject.open(Access::ReadWrite);
        background_write(&*file, 4000);
        let mut memory = *b"listed pieces";
        let places = [(8000, 0, 6), (9000, 6, 7)];
        let batch = Batch::gather(Direction::Write, &mut memory, &places);
        assert_eq!(file.transfer(&batch).into_result().unwrap(), 13);
        file.close().unwrap();
    };
    Child::run(child).join();
    background_write(&*file, 2000);
    for offset in [0, 2000, 4000] {
        assert_eq!(read(&*file, offset, 4), b"data");
    }
    assert_eq!(read(&*file, 9000, 9), b" pieces");
    subject.finish(&*file);
}

fn background_write(file: &dyn Handle, offset: u64) {
    let (sender, receiver) = mpsc::channel();
    let done = move |outcome: Outcome| sender.send(outcome.bytes).unwrap();
    file.submit(Batch::write(offset, b"data"), Box::new(done));
    assert_eq!(receiver.recv_timeout(TIMEOUT), Ok(4));
}
