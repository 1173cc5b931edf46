//! How transfers cope with short, interrupted and failing system calls.

use std::{fs, path::Path, sync::Arc};

use pario_driver::{
    Access, Batch, Create, Direction, Driver, Fault, Faults, FileSystem, Handle, IoMode, LockMode,
    OpenHow, Operation, Posix, conformance::Suite,
};

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory can be created")
}

fn open(driver: &dyn Driver, path: &Path, mode: IoMode) -> Arc<dyn Handle> {
    let how = OpenHow::new(Access::ReadWrite).create(Create::IfMissing);
    let how = how.reads(mode).writes(mode);
    driver.open(path, &how).expect("the file can be opened")
}

/// Memory aligned for direct transfers.
fn aligned(memory: &mut Vec<u8>, len: usize) -> &mut [u8] {
    const PAGE: usize = 4096;
    memory.resize(len + PAGE, b'.');
    let start = memory.as_ptr().addr().next_multiple_of(PAGE) - memory.as_ptr().addr();
    &mut memory[start..start + len]
}

/// Half of all transfers are short and some calls are interrupted; the whole
/// suite still passes.
#[test]
fn short_and_interrupted_calls_are_continued() {
    for mode in [IoMode::Buffered, IoMode::Direct] {
        let faults = Faults::new();
        for nth in 1..2000 {
            faults.fail_nth(nth * 2, Operation::TRANSFERS, Fault::Short);
            faults.fail_nth(nth * 7, Operation::ALL, Fault::Interruption);
        }
        let driver = Posix::new().with_interference(Arc::new(faults.clone()));
        let how = OpenHow::new(Access::ReadWrite).reads(mode).writes(mode);
        let directory = directory();
        Suite::new(Arc::new(driver), directory.path())
            .opening(how)
            .run();
        assert!(faults.fired() > 1000, "only {} faults", faults.fired());
    }
}

/// A disk that fills up in the middle of a list: the counted bytes are written.
#[test]
fn a_full_disk_counts_the_prefix() {
    let directory = directory();
    for nth in 1..5 {
        let faults = Faults::new();
        let driver = Posix::new().with_interference(Arc::new(faults.clone()));
        let path = directory.path().join("file");
        let file = open(&driver, &path, IoMode::Buffered);
        faults.fail_nth(nth, &[Operation::Write], Fault::Partial(libc::ENOSPC));
        let mut memory: Vec<u8> = (1..=40).collect();
        let places: Vec<_> = (0..4).map(|at| (at * 20, at as usize * 10, 10)).collect();
        let batch = Batch::gather(Direction::Write, &mut memory, &places);
        let outcome = file.transfer(&batch);
        assert_eq!(outcome.bytes, nth * 10 - 5);
        let error = outcome.error.expect("a full disk is an error");
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
        let written = fs::read(&path).expect("the file exists");
        assert_eq!(written.len() as u64, (nth - 1) * 20 + 5);
        for (at, &byte) in written.iter().enumerate() {
            let expected = if at % 20 < 10 {
                at / 20 * 10 + at % 20 + 1
            } else {
                0
            };
            assert_eq!(byte as usize, expected, "byte {at}");
        }
        fs::remove_file(&path).expect("the file can be deleted");
    }
}

/// Without `fallocate`, zeros are appended and existing data is unchanged.
#[test]
fn preallocation_without_fallocate_keeps_data() {
    let directory = directory();
    for nth in 1..=4 {
        let faults = Faults::new();
        faults.fail_from_nth(1, &[Operation::Preallocate], Fault::Error(libc::EOPNOTSUPP));
        faults.fail_nth(nth, &[Operation::Write], Fault::Short);
        let path = directory.path().join("file");
        fs::write(&path, b"data").expect("the directory is writable");
        let driver = Posix::new().with_interference(Arc::new(faults));
        let file = open(&driver, &path, IoMode::Buffered);
        file.preallocate(200_000).expect("appending zeros works");
        let bytes = fs::read(&path).expect("the file exists");
        assert_eq!(bytes.len(), 200_000);
        assert_eq!(&bytes[..4], b"data");
        assert!(bytes[4..].iter().all(|&byte| byte == 0));
        file.preallocate(10).expect("there is nothing to do");
        assert_eq!(fs::read(&path).expect("the file exists").len(), 200_000);
    }
}

/// A client of servers may know an old end of the file, where zeros would
/// overwrite what another client has appended. Zeros used to be written there.
#[test]
fn preallocation_on_servers_writes_nothing() {
    let directory = directory();
    let faults = Faults::new();
    faults.fail_from_nth(1, &[Operation::Preallocate], Fault::Error(libc::EOPNOTSUPP));
    faults.fail_from_nth(1, &[Operation::Write], Fault::Error(libc::EIO));
    let path = directory.path().join("file");
    fs::write(&path, b"data").expect("the directory is writable");
    let driver = Posix::new()
        .assuming(FileSystem::Lustre)
        .with_interference(Arc::new(faults));
    let file = open(&driver, &path, IoMode::Buffered);
    for (bytes, expected) in [(200_000, 200_000), (10, 200_000)] {
        file.preallocate(bytes).expect("extending the file works");
        let contents = fs::read(&path).expect("the file exists");
        assert_eq!(contents.len(), expected);
        assert_eq!(&contents[..4], b"data");
    }
}

/// The kernel reports a failure to write data back once, to one `fsync`. Later
/// syncs used to succeed.
#[test]
fn a_failed_sync_is_reported_by_later_syncs_and_by_close() {
    let directory = directory();
    let faults = Faults::new();
    faults.fail_nth(2, &[Operation::Sync], Fault::Error(libc::EDQUOT));
    let driver = Posix::new().with_interference(Arc::new(faults));
    let file = open(&driver, &directory.path().join("file"), IoMode::Buffered);
    file.sync().expect("nothing has failed yet");
    for result in [file.sync(), file.sync(), file.close()] {
        let error = result.expect_err("the data is lost");
        assert_eq!(error.raw_os_error(), Some(libc::EDQUOT));
    }
}

/// A direct read into aligned memory used to fill it up to the end of the
/// file's last block, beyond the bytes that it counted.
#[test]
fn direct_reads_touch_no_memory_beyond_the_end() {
    let directory = directory();
    let path = directory.path().join("file");
    fs::write(&path, [7; 10_000]).expect("the directory is writable");
    let file = open(&Posix::new(), &path, IoMode::Direct);
    let mut memory = Vec::new();
    let target = aligned(&mut memory, 16_384);
    let outcome = file.transfer(&Batch::read(0, target));
    assert_eq!((outcome.bytes, outcome.error.is_none()), (10_000, true));
    assert!(target[..10_000].iter().all(|&byte| byte == 7));
    assert!(target[10_000..].iter().all(|&byte| byte == b'.'));
}

/// Neighbours write both sides of every page, one of them with direct I/O: a
/// read-modify-write of whole pages would lose bytes.
#[test]
fn direct_edges_preserve_neighbouring_bytes() {
    const SHARE: usize = 5000;
    const ROUNDS: u64 = 60;
    let directory = directory();
    let path = directory.path().join("file");
    let modes = [IoMode::Direct, IoMode::Buffered, IoMode::Direct];
    std::thread::scope(|scope| {
        for (rank, mode) in modes.into_iter().enumerate() {
            let file = open(&Posix::new(), &path, mode);
            scope.spawn(move || {
                let share = vec![rank as u8 + 1; SHARE];
                for round in 0..ROUNDS {
                    let offset = (round * 3 + rank as u64) * SHARE as u64;
                    let outcome = file.transfer(&Batch::write(offset, &share));
                    assert_eq!(outcome.into_result().expect("writing works"), SHARE as u64);
                }
            });
        }
    });
    let bytes = fs::read(&path).expect("the file exists");
    assert_eq!(bytes.len() as u64, ROUNDS * 3 * SHARE as u64);
    for (at, &byte) in bytes.iter().enumerate() {
        assert_eq!(byte as usize, at / SHARE % 3 + 1, "byte {at}");
    }
}

/// Two handles of a file; unlocking fails on the first as configured by `fail`.
fn with_failing_unlocks(
    fail: impl FnOnce(&Faults),
    check: impl FnOnce(&dyn Handle, &dyn Handle, &Faults),
) {
    let directory = directory();
    let path = directory.path().join("file");
    let faults = Faults::new();
    let driver = Posix::new().with_interference(Arc::new(faults.clone()));
    let faulty = open(&driver, &path, IoMode::Buffered);
    let other = open(&Posix::new(), &path, IoMode::Buffered);
    fail(&faults);
    let lock = faulty.lock(0..10, LockMode::Exclusive);
    drop(lock.expect("the lock is free"));
    check(&*faulty, &*other, &faults);
}

/// A failed unlock used to be ignored: the lock stayed, and the next one to
/// request it waited forever.
#[test]
fn a_transient_unlock_failure_is_retried() {
    for fault in [Fault::Interruption, Fault::Error(libc::EIO)] {
        let fail = |faults: &Faults| {
            for nth in 1..=3 {
                faults.fail_nth(nth, &[Operation::Unlock], fault);
            }
        };
        with_failing_unlocks(fail, |faulty, other, faults| {
            assert_eq!(faults.fired(), 3);
            assert!(
                other
                    .try_lock(0..10, LockMode::Exclusive)
                    .unwrap()
                    .is_some()
            );
            faulty.sync().unwrap();
        });
    }
}

/// Unlocks fail and go on failing.
fn fail_unlocks(faults: &Faults) {
    faults.fail_from_nth(1, &[Operation::Unlock], Fault::Error(libc::EIO));
}

/// Unlocks fail, and so does opening the file again.
fn fail_unlocks_and_opens(faults: &Faults) {
    let kinds = [Operation::Unlock, Operation::Open];
    faults.fail_from_nth(1, &kinds, Fault::Error(libc::EIO));
}

/// A lock whose unlock failed for good was there until the file was closed, and
/// other ranks waited for it. Locks go with their description, so the handle
/// takes another one, and the program does not notice.
#[test]
fn an_unlock_that_never_succeeds_frees_the_lock_all_the_same() {
    with_failing_unlocks(fail_unlocks, |faulty, other, _| {
        for _ in 0..3 {
            let free = other.try_lock(0..10, LockMode::Exclusive).unwrap();
            assert!(free.is_some());
            drop(free);
            faulty.check().unwrap();
            faulty
                .transfer(&Batch::write(0, b"x"))
                .into_result()
                .unwrap();
            drop(faulty.lock(0..10, LockMode::Exclusive).unwrap());
        }
        faulty.sync().unwrap();
        faulty.close().unwrap();
    });
}

/// The new description is of the same file, though another has its name by now,
/// or none.
#[test]
fn the_file_stays_the_same_whatever_its_name() {
    let directory = tempfile::tempdir().unwrap();
    for renamed in [true, false] {
        let path = directory.path().join(format!("file-{renamed}"));
        let faults = Faults::new();
        let driver = Posix::new().with_interference(Arc::new(faults.clone()));
        let faulty = open(&driver, &path, IoMode::Buffered);
        let moved = directory.path().join("moved");
        match renamed {
            true => fs::rename(&path, &moved).unwrap(),
            false => fs::remove_file(&path).unwrap(),
        }
        fs::write(&path, b"another").unwrap();
        fail_unlocks(&faults);
        drop(faulty.lock(0..10, LockMode::Exclusive).unwrap());
        faulty
            .transfer(&Batch::write(0, b"mine"))
            .into_result()
            .unwrap();
        assert_eq!(faulty.size().unwrap(), 4);
        assert_eq!(fs::read(&path).unwrap(), b"another");
        if renamed {
            assert_eq!(fs::read(&moved).unwrap(), b"mine");
        }
    }
}

/// Closing the description would release what another thread holds, so that
/// waits until nothing is held.
#[test]
fn locks_of_other_threads_outlive_an_unlock_that_fails() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let faults = Faults::new();
    let driver = Posix::new().with_interference(Arc::new(faults.clone()));
    let faulty = open(&driver, &path, IoMode::Buffered);
    let other = open(&Posix::new(), &path, IoMode::Buffered);
    let is_free = |range| {
        let lock = other.try_lock(range, LockMode::Exclusive).unwrap();
        lock.is_some()
    };
    let held = faulty.lock(20..30, LockMode::Exclusive).unwrap();
    fail_unlocks(&faults);
    drop(faulty.lock(0..10, LockMode::Exclusive).unwrap());
    faulty.sync().expect("the lock goes with the other one");
    assert!(!is_free(20..30));
    drop(held);
    assert!(is_free(0..30));
}

/// Where the file cannot be opened again either, whatever is done next with the
/// handle reports the lock, as long as it is there.
#[test]
fn a_lock_that_cannot_be_released_by_any_means_is_reported() {
    with_failing_unlocks(fail_unlocks_and_opens, |faulty, other, faults| {
        let is_stuck = || other.try_lock(5..6, LockMode::Shared).unwrap().is_none();
        let mut byte = [0];
        let errors = [
            faulty.transfer(&Batch::write(0, b"x")).error,
            faulty.transfer(&Batch::read(0, &mut byte)).error,
            faulty.sync().err(),
            faulty.set_size(1).err(),
            faulty.lock(20..30, LockMode::Exclusive).err(),
        ];
        for error in errors {
            let error = error.expect("a lock is stuck").to_string();
            assert!(error.contains("bytes 0..10"), "{error}");
        }
        assert!(is_stuck());
        faults.clear();
        faulty.sync().expect("the lock can be released now");
        assert!(!is_stuck());
    });
    with_failing_unlocks(fail_unlocks_and_opens, |faulty, other, _| {
        assert!(faulty.close().is_err(), "close reports it too");
        let free = other.try_lock(0..10, LockMode::Exclusive).unwrap();
        assert!(free.is_some());
    });
}

/// Waiting for a lock is a loop in the driver, not in the kernel: it continues
/// after interruptions and ends when the lock is free.
#[test]
fn waiting_for_a_lock_polls() {
    let directory = directory();
    let path = directory.path().join("file");
    let faults = Faults::new();
    let driver = Posix::new().with_interference(Arc::new(faults.clone()));
    let (one, other) = (
        open(&driver, &path, IoMode::Buffered),
        open(&driver, &path, IoMode::Buffered),
    );
    let held = one.lock(0..10, LockMode::Exclusive).unwrap();
    for nth in 1..20 {
        faults.fail_nth(nth, &[Operation::Lock], Fault::Interruption);
    }
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| other.lock(0..1, LockMode::Shared).map(drop));
        while faults.fired() < 19 {
            std::thread::yield_now();
        }
        assert!(!waiting.is_finished());
        drop(held);
        waiting.join().unwrap().unwrap();
    });
}
