//! Stores that cannot be made: no signal, and the result that calls would give.

use std::{
    fs, io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use pario_driver::{
    Access, Batch, Direction, Driver, Fault, Faults, Mapped, Operation, Posix, ScatteredWrites,
};

use super::{dense, directories, how, open, process::Child};

#[test]
fn a_handle_does_not_truncate_during_a_store() {
    const ROUNDS: usize = 300;
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    for driver in [&Mapped as &dyn Driver, &Posix::new()] {
        let handle = open(driver, &directory.path().join("file"));
        let mut memory = [7; 8];
        let batch = Batch::gather(Direction::Write, &mut memory, &dense(20_000));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    handle.set_size(0).unwrap();
                }
            });
            for _ in 0..ROUNDS {
                let moved = handle.transfer(&batch).into_result().unwrap();
                assert_eq!(moved, batch.bytes());
            }
        });
    }
}

/// Another program truncates the file all the time: pieces are written as if
/// by calls, and nothing raises a signal.
#[test]
fn truncation_by_others_raises_no_signal() {
    const ROUNDS: usize = 200;
    for directory in directories() {
        let path = directory.path().join("file");
        let handle = open(&Posix::new(), &path);
        let list = dense(20_000);
        let child = Child::run(|| {
            let mut memory = [7; 8];
            let batch = Batch::gather(Direction::Write, &mut memory, &list);
            for _ in 0..ROUNDS {
                let moved = handle.transfer(&batch).into_result().unwrap();
                assert_eq!(moved, batch.bytes());
            }
            0
        });
        let finished = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
                let mut random = fastrand::Rng::with_seed(super::SEED);
                while !finished.load(Relaxed) {
                    file.set_len(random.u64(0..400_000)).unwrap();
                }
            });
            let code = child.exit_code();
            finished.store(true, Relaxed);
            assert_eq!(code, 0);
        });
        for (at, byte) in fs::read(&path).unwrap().into_iter().enumerate() {
            let written = at % 16 < 8;
            assert!(byte == 0 || written && byte == 7, "byte {at} is {byte}");
        }
    }
}

/// Writes a dense list with stores or calls; returns the prefix, the errno and
/// the file.
fn attempt(path: &Path, scattered: ScatteredWrites, pieces: u64) -> (u64, Option<i32>, Vec<u8>) {
    let how = how(Access::ReadWrite).scattered(scattered);
    let handle = Posix::new().open(path, &how).unwrap();
    let mut memory = [7; 8];
    let list = dense(pieces);
    let batch = Batch::gather(Direction::Write, &mut memory, &list);
    let outcome = handle.transfer(&batch);
    handle.close().unwrap();
    let found = fs::read(path).unwrap();
    fs::remove_file(path).unwrap();
    let errno = outcome.error.and_then(|error| error.raw_os_error());
    (outcome.bytes, errno, found)
}

fn is_written(found: &[u8], moved: u64) -> bool {
    let pieces = (moved / 8) as usize;
    (0..pieces).all(|at| found[at * 16..at * 16 + 8] == [7; 8])
}

#[test]
fn a_limit_of_the_file_size_counts_the_prefix() {
    const LIMIT: u64 = 300_000;
    for directory in directories() {
        let path = directory.path().join("file");
        let child = Child::run(|| {
            limit_file_size(LIMIT);
            let by_stores = attempt(&path, ScatteredWrites::Automatic, 40_000);
            let by_calls = attempt(&path, ScatteredWrites::Calls, 40_000);
            assert_eq!(by_stores, by_calls);
            assert_eq!((by_calls.0, by_calls.1), (LIMIT / 2, Some(libc::EFBIG)));
            // Too small for the staging file.
            limit_file_size(20_000);
            let by_stores = attempt(&path, ScatteredWrites::Automatic, 2000);
            assert_eq!((by_stores.0, by_stores.1), (10_000, Some(libc::EFBIG)));
            0
        });
        assert_eq!(child.exit_code(), 0);
    }
}

#[allow(unsafe_code)]
fn limit_file_size(bytes: u64) {
    let limit = libc::rlimit {
        rlim_cur: bytes,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the limit outlives the call; ignoring a signal runs no code.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
    }
}

/// Mounts a file system of one megabyte in a namespace of the process.
#[allow(unsafe_code)]
fn mount_small(at: &Path) -> io::Result<()> {
    use std::{ffi::CString, os::unix::ffi::OsStrExt};
    let at = CString::new(at.as_os_str().as_bytes())?;
    // SAFETY: no memory is passed.
    let (user, group, entered) = unsafe {
        let (user, group) = (libc::getuid(), libc::getgid());
        let entered = libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) == 0;
        (user, group, entered)
    };
    if !entered {
        return Err(io::Error::last_os_error());
    }
    // Without numbers in the namespace, user and group cannot own files.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1"))?;
    // SAFETY: all strings are terminated.
    let mounted = unsafe {
        libc::mount(
            c"none".as_ptr(),
            at.as_ptr(),
            c"tmpfs".as_ptr(),
            0,
            c"size=1m".as_ptr().cast(),
        ) == 0
    };
    match mounted {
        true => Ok(()),
        false => Err(io::Error::last_os_error()),
    }
}

#[test]
fn a_full_file_system_counts_the_prefix() {
    const NO_MOUNT: i32 = 77;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let child = Child::run(|| {
        if mount_small(directory.path()).is_err() {
            return NO_MOUNT;
        }
        let (moved, errno, found) = attempt(&path, ScatteredWrites::Automatic, 200_000);
        assert_eq!(errno, Some(libc::ENOSPC));
        assert!(moved > 400_000 && is_written(&found, moved), "{moved}");
        let (moved, errno, found) = attempt(&path, ScatteredWrites::Automatic, 40_000);
        assert_eq!((moved, errno), (320_000, None));
        assert!(is_written(&found, moved));
        0
    });
    match child.exit_code() {
        0 => {}
        NO_MOUNT => eprintln!("skipped: this process may not mount a file system"),
        code => panic!("the child failed: {code}"),
    }
}

/// The n-th system call fails or is short, for every n: a prefix is counted, and
/// it is in the file.
#[test]
fn any_failing_call_counts_the_prefix() {
    const PIECES: u64 = 5000;
    let list = dense(PIECES);
    for fault in [
        Fault::Error(libc::EIO),
        Fault::Partial(libc::ENOSPC),
        Fault::Short,
        Fault::Interruption,
    ] {
        for directory in directories() {
            let path = directory.path().join("file");
            for nth in 1.. {
                let faults = Faults::new();
                let driver = Posix::new().with_interference(Arc::new(faults.clone()));
                let handle = open(&driver, &path);
                faults.fail_nth(nth, Operation::ALL, fault);
                let mut memory = [7; 8];
                let batch = Batch::gather(Direction::Write, &mut memory, &list);
                let outcome = handle.transfer(&batch);
                handle.close().unwrap();
                let found = fs::read(&path).unwrap();
                fs::remove_file(&path).unwrap();
                assert!(is_written(&found, outcome.bytes), "call {nth}: {fault:?}");
                assert!(outcome.error.is_some() || outcome.bytes == PIECES * 8);
                if faults.fired() == 0 {
                    assert!(nth > 5, "a map, a write and five stores");
                    break;
                }
            }
        }
    }
}
