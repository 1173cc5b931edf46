//! Every driver passes the suite, on a disk file system and in memory.

use std::{path::Path, sync::Arc};

use pario_driver::{
    Access, AsyncMethod, Driver, IoMode, Mapped, Memory, OpenHow, Posix, Uring, conformance::Suite,
};

/// Runs the suite in the temporary directory and in `/dev/shm`.
fn check(driver: impl Driver + Clone + 'static, how: OpenHow) {
    for parent in [std::env::temp_dir().as_path(), Path::new("/dev/shm")] {
        let directory = tempfile::tempdir_in(parent).expect("the directory is writable");
        let driver = Arc::new(driver.clone());
        Suite::new(driver, directory.path())
            .opening(how.clone())
            .run();
        let left: Vec<_> = directory
            .path()
            .read_dir()
            .expect("the directory exists")
            .collect();
        assert!(left.is_empty(), "files left behind: {left:?}");
    }
}

fn plain() -> OpenHow {
    OpenHow::new(Access::ReadWrite)
}

#[test]
fn posix_with_threads() {
    check(Posix::new(), plain().asynchronous(AsyncMethod::Pool));
}

#[test]
fn posix_with_ring() {
    check(Posix::new(), plain().asynchronous(AsyncMethod::Uring));
}

#[test]
fn posix_automatic() {
    check(Posix::new(), plain());
}

#[test]
fn posix_direct() {
    check(
        Posix::new(),
        plain().reads(IoMode::Direct).writes(IoMode::Direct),
    );
}

#[test]
fn posix_direct_in_one_direction() {
    check(Posix::new(), plain().reads(IoMode::Direct));
    check(Posix::new(), plain().writes(IoMode::Direct));
}

#[test]
fn uring() {
    check(Uring, plain());
}

#[test]
fn mapped() {
    check(Mapped, plain());
}

#[test]
fn memory() {
    check(Memory::separate(), plain());
}
