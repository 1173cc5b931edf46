//! Failure to create a ring: it used to make every later open fail, or to leave
//! every later file without a ring. Runs in its own process, because it uses up
//! all descriptors.
#![allow(unsafe_code)] // sets the descriptor limit
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    fs::{self, File},
    path::Path,
    sync::{Arc, mpsc},
};

use pario_driver::{
    Access, AsyncMethod, Batch, Create, Driver, Handle, OpenHow, Posix, Uring, require_uring,
};

/// Few enough to be used up quickly.
const DESCRIPTORS: u64 = 64;

fn open(driver: &dyn Driver, path: &Path, method: AsyncMethod) -> Arc<dyn Handle> {
    let how = OpenHow::new(Access::ReadWrite).create(Create::IfMissing);
    driver
        .open(path, &how.asynchronous(method))
        .expect("a ring is not needed to open a file")
}

/// Writes in the background.
fn write(file: &dyn Handle) {
    let (sender, receiver) = mpsc::channel();
    let done = move |outcome: pario_driver::Outcome| sender.send(outcome.into_result()).unwrap();
    file.submit(Batch::write(0, b"data"), Box::new(done));
    assert_eq!(receiver.recv().unwrap().unwrap(), 4);
}

/// Number of rings in this process.
fn rings() -> usize {
    let leads_to_ring = |entry: fs::DirEntry| {
        let target = fs::read_link(entry.path()).ok()?;
        target.to_str()?.contains("io_uring").then_some(())
    };
    let descriptors = fs::read_dir("/proc/self/fd").unwrap();
    descriptors
        .filter_map(|entry| leads_to_ring(entry.ok()?))
        .count()
}

fn limit_descriptors() {
    let limit = libc::rlimit {
        rlim_cur: DESCRIPTORS,
        rlim_max: DESCRIPTORS,
    };
    // SAFETY: the limit outlives the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
}

/// Opens descriptors until the limit is reached, then closes `free` of them.
fn exhaust_descriptors(free: usize) -> Vec<File> {
    let mut taken: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    taken.truncate(taken.len() - free);
    taken
}

#[test]
fn a_ring_that_could_not_be_created_is_retried_at_the_next_open() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    limit_descriptors();
    for method in [AsyncMethod::Uring, AsyncMethod::Automatic] {
        let taken = exhaust_descriptors(1);
        let file = open(&Posix::new(), &path, method);
        write(&*file);
        drop(taken);
        assert_eq!(rings(), 0, "there is no descriptor for a ring");
        // The same file continues with threads.
        write(&*file);
        assert_eq!(rings(), 0, "an open file does not retry");
        file.close().unwrap();
    }
    let taken = exhaust_descriptors(1);
    let file = open(&Uring, &path, AsyncMethod::Uring);
    assert!(require_uring().is_err());
    let mut memory = *b"a list of pieces";
    let list = Batch::gather(
        pario_driver::Direction::Write,
        &mut memory,
        &[(0, 0, 4), (10, 4, 4), (20, 8, 8)],
    );
    assert_eq!(file.transfer(&list).into_result().unwrap(), 16);
    drop((file, taken));
    let file = open(&Posix::new(), &path, AsyncMethod::Automatic);
    if let Err(error) = require_uring() {
        println!("the rest is skipped: {error}");
        return;
    }
    write(&*file);
    assert!(rings() > 0, "a ring carries the write");
}
