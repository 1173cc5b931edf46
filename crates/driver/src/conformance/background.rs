//! Background transfers.

use std::{
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

use super::{
    Check,
    buffer::Buffer,
    random::Random,
    subject::{Subject, read, write},
};
use crate::{Access, Batch, Direction, Handle, Outcome};

pub(super) const CHECKS: &[Check] = &[
    ("many in flight", many_in_flight),
    ("background lists", lists),
    ("background errors", errors),
    ("end of the file in the background", end),
    ("chain of callbacks", chain),
    ("locks in a callback", locks_in_callback),
    ("panic in a callback", panicking_callback),
    ("submission from threads that end", short_lived_threads),
    ("close from a callback", close_from_callback),
];

/// A callback that takes longer than this is considered lost. Servers, and a machine with other work, may take a minute.
pub(super) const TIMEOUT: Duration = Duration::from_secs(300);

/// A pending outcome.
struct Pending(mpsc::Receiver<Outcome>);

fn submit(file: &dyn Handle, batch: Batch<'static>) -> Pending {
    let (sender, receiver) = mpsc::channel();
    // The receiver is gone if a check has failed.
    file.submit(batch, Box::new(move |outcome| drop(sender.send(outcome))));
    Pending(receiver)
}

impl Pending {
    fn outcome(self) -> Outcome {
        let outcome = self
            .0
            .recv_timeout(TIMEOUT)
            .expect("a submission must be called back");
        assert!(
            self.0.recv().is_err(),
            "a submission must be called back only once"
        );
        outcome
    }

    fn bytes(self) -> u64 {
        self.outcome()
            .into_result()
            .expect("the transfer must succeed")
    }
}

fn many_in_flight(subject: &Subject) {
    const COUNT: usize = 400;
    let file = subject.create();
    let mut random = Random::new();
    let mut end = 0;
    let mut blocks = Vec::new();
    for _ in 0..COUNT {
        let len = random.choose(&[1, 100, 4096, 40_000]);
        blocks.push((end, random.bytes(len)));
        end += len as u64;
    }
    random.shuffle(&mut blocks);
    let write = |(offset, block): &(u64, Vec<u8>)| {
        submit(
            &*file,
            Buffer::new(block.clone()).whole(Direction::Write, *offset),
        )
    };
    let pending: Vec<_> = blocks.iter().map(write).collect();
    for (pending, (_, block)) in pending.into_iter().zip(&blocks).rev() {
        assert_eq!(pending.bytes(), block.len() as u64);
    }
    assert_eq!(file.size().unwrap(), end);
    let read = |(offset, block): &(u64, Vec<u8>)| {
        let buffer = Buffer::new(vec![0; block.len()]);
        (
            buffer,
            submit(&*file, buffer.whole(Direction::Read, *offset)),
        )
    };
    let pending: Vec<_> = blocks.iter().map(read).collect();
    for ((buffer, pending), (offset, block)) in pending.into_iter().zip(&blocks) {
        assert_eq!(pending.bytes(), block.len() as u64);
        assert!(
            buffer.bytes() == *block,
            "{} bytes at {offset}",
            block.len()
        );
    }
    subject.finish(&*file);
}

fn lists(subject: &Subject) {
    const PIECES: usize = 1500;
    let file = subject.create();
    let mut random = Random::new();
    for pieces in [0, 1, 5, PIECES] {
        let source = random.bytes(pieces * 4);
        let place = |at: usize| (at as u64 * 9, (pieces - 1 - at) * 4, 4);
        let places: Vec<_> = (0..pieces).map(place).collect();
        let batch = Buffer::new(source.clone()).batch(Direction::Write, &places);
        assert_eq!(submit(&*file, batch).bytes(), source.len() as u64);
        let target = Buffer::new(vec![0; source.len()]);
        let pending = submit(&*file, target.batch(Direction::Read, &places));
        assert_eq!(pending.bytes(), source.len() as u64);
        assert!(target.bytes() == source, "{pieces} pieces");
    }
    subject.finish(&*file);
}

fn errors(subject: &Subject) {
    let file = subject.create();
    let reader = subject.open(Access::Read);
    let rejected = submit(&*reader, Batch::write(0, b"no")).outcome();
    assert!(rejected.bytes == 0 && rejected.error.is_some());
    let beyond = submit(&*file, Batch::write(u64::MAX - 1, b"no")).outcome();
    assert!(beyond.bytes == 0 && beyond.error.is_some());
    assert_eq!(file.size().unwrap(), 0);
    reader.close().unwrap();
    subject.finish(&*file);
}

fn end(subject: &Subject) {
    let file = subject.create();
    write(&*file, 0, b"0123456789");
    let buffer = Buffer::new(vec![b'.'; 9]);
    let batch = buffer.batch(Direction::Read, &[(0, 0, 2), (8, 2, 4), (12, 6, 3)]);
    assert_eq!(submit(&*file, batch).bytes(), 4);
    assert_eq!(buffer.bytes(), b"0189.....");
    assert_eq!(submit(&*file, Batch::new(Direction::Read)).bytes(), 0);
    subject.finish(&*file);
}

/// Each callback submits the next transfer.
fn chain(subject: &Subject) {
    const LINKS: u64 = 300;
    fn link(file: Arc<dyn Handle>, number: u64, finished: mpsc::Sender<u64>) {
        if number == LINKS {
            return finished.send(number).unwrap();
        }
        let batch = Buffer::new(vec![number as u8]).whole(Direction::Write, number);
        let next = file.clone();
        let done = move |outcome: Outcome| {
            assert_eq!(outcome.bytes, 1);
            link(next, number + 1, finished);
        };
        file.submit(batch, Box::new(done));
    }
    let file = subject.create();
    let (sender, receiver) = mpsc::channel();
    link(file.clone(), 0, sender);
    assert_eq!(receiver.recv_timeout(TIMEOUT), Ok(LINKS), "no link failed");
    let expected: Vec<u8> = (0..LINKS).map(|number| number as u8).collect();
    assert_eq!(read(&*file, 0, LINKS as usize), expected);
    subject.finish(&*file);
}

/// A callback may take a lock that the caller of `submit` holds.
fn locks_in_callback(subject: &Subject) {
    let file = subject.create();
    for batch in [Batch::write(0, b"x"), Batch::write(u64::MAX, b"x")] {
        let results = Arc::new(Mutex::new(Vec::new()));
        let (sender, receiver) = mpsc::channel();
        let guard = results.lock().unwrap();
        let theirs = results.clone();
        let done = move |outcome: Outcome| {
            theirs.lock().unwrap().push(outcome.bytes);
            sender.send(()).unwrap();
        };
        file.submit(batch, Box::new(done));
        assert!(guard.is_empty());
        drop(guard);
        receiver.recv_timeout(TIMEOUT).unwrap();
        assert_eq!(results.lock().unwrap().len(), 1);
    }
    subject.finish(&*file);
}

fn panicking_callback(subject: &Subject) {
    let file = subject.create();
    for _ in 0..20 {
        let done = |_| panic!("this panic is part of a check");
        file.submit(Batch::write(0, b"x"), Box::new(done));
    }
    assert_eq!(submit(&*file, Batch::write(1, b"y")).bytes(), 1);
    subject.finish(&*file);
}

fn short_lived_threads(subject: &Subject) {
    let file = subject.create();
    let start = |number: u64| {
        let block = vec![number as u8 + 1; 1 << 18];
        let batch = Buffer::new(block).whole(Direction::Write, number << 18);
        let file = file.clone();
        thread::spawn(move || submit(&*file, batch)).join().unwrap()
    };
    let pending: Vec<_> = (0..16).map(start).collect();
    for pending in pending {
        assert_eq!(pending.bytes(), 1 << 18);
    }
    let bytes = read(&*file, 0, 16 << 18);
    assert!(
        bytes
            .iter()
            .enumerate()
            .all(|(at, &byte)| byte as usize == (at >> 18) + 1)
    );
    subject.finish(&*file);
}

fn close_from_callback(subject: &Subject) {
    let file = subject.create();
    let (sender, receiver) = mpsc::channel();
    let theirs = file.clone();
    let done = move |_| sender.send(theirs.close()).unwrap();
    file.submit(Batch::write(0, b"last"), Box::new(done));
    receiver.recv_timeout(TIMEOUT).unwrap().unwrap();
    let file = subject.open(Access::Read);
    assert_eq!(read(&*file, 0, 9), b"last");
    subject.finish(&*file);
}
