//! Files on FUSE are not moved through io_uring, which could repeat their last bytes. In a process of its own, since
//! other tests create rings.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::{fs, sync::mpsc};

use pario_driver::{
    Access, AsyncMethod, Batch, Create, Driver, FileSystem, OpenHow, Outcome, Posix, require_uring,
};

/// Number of rings in this process.
fn rings() -> usize {
    let descriptors = fs::read_dir("/proc/self/fd").unwrap();
    let targets = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    targets
        .filter(|target| target.to_string_lossy().contains("io_uring"))
        .count()
}

/// Writes in the background; a ring is requested.
fn write(driver: &Posix) {
    let directory = tempfile::tempdir().unwrap();
    let how = OpenHow::new(Access::ReadWrite)
        .create(Create::IfMissing)
        .asynchronous(AsyncMethod::Uring);
    let file = driver.open(&directory.path().join("file"), &how).unwrap();
    let (sender, receiver) = mpsc::channel();
    let done = move |outcome: Outcome| sender.send(outcome.into_result()).unwrap();
    file.submit(Batch::write(0, b"data"), Box::new(done));
    assert_eq!(receiver.recv().unwrap().unwrap(), 4);
    file.close().unwrap();
}

#[test]
fn files_on_fuse_are_moved_by_threads() {
    let subtype = "sshfs".to_owned();
    for fuse in [
        FileSystem::Gluster,
        FileSystem::Fuse { subtype },
        FileSystem::HostShare,
    ] {
        write(&Posix::new().assuming(fuse));
        assert_eq!(rings(), 0);
    }
    write(&Posix::new());
    assert_eq!(rings() > 0, require_uring().is_ok());
}
