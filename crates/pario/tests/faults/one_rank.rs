//! Faults on one rank of several: what the others are told.

use std::{path::Path, sync::Arc};

use pario::{Atomicity, Error, ErrorKind, File, Info, Mode, Result};
use pario_driver::{Driver, Fault, Faults, Operation, Posix, WrappedDriver};
use pario_transport::{Rank, Transport, threads};

use crate::ground::{assert_no_descriptors, directory};

const RANKS: u32 = 3;
const NEW: Mode = Mode::CREATE.union(Mode::READ_WRITE);

/// Runs three ranks, of which one has a driver with a fault to come.
fn with_fault<R: Send>(
    faulty: u32,
    operations: &[Operation],
    fault: Fault,
    work: impl Fn(&Arc<dyn Transport>, Arc<dyn Driver>) -> R + Sync,
) -> Vec<R> {
    let results = threads::run(RANKS, |comm| {
        let faults = Faults::new();
        if comm.rank() == Rank(faulty) {
            faults.fail_nth(1, operations, fault);
        }
        work(
            &comm,
            Arc::new(WrappedDriver::new(Arc::new(Posix::new()), faults)),
        )
    });
    results.into_iter().map(|result| result.unwrap()).collect()
}

fn open(comm: &Arc<dyn Transport>, driver: Arc<dyn Driver>, path: &Path) -> Result<File> {
    File::open_with(comm, driver, path, NEW, &Info::new())
}

/// In atomic mode, each rank moves its own data in collective calls too.
fn open_atomic(comm: &Arc<dyn Transport>, driver: Arc<dyn Driver>, path: &Path) -> Result<File> {
    let file = open(comm, driver, path)?;
    file.set_atomicity(Atomicity::Atomic)?;
    Ok(file)
}

#[test]
fn an_open_that_fails_on_one_rank_fails_on_all_and_leaves_no_descriptor() {
    let directory = directory();
    let path = directory.path().join("file");
    for faulty in 0..RANKS {
        let fault = Fault::Error(libc::EACCES);
        let errors = with_fault(faulty, &[Operation::Open], fault, |comm, driver| {
            open(comm, driver, &path).unwrap_err()
        });
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Access, "{error}");
            assert_eq!(error.rank(), Some(faulty), "{error}");
            assert_eq!(error.operation(), "open", "{error}");
        }
        assert_no_descriptors(&path, "after the failure");
    }
}

#[test]
fn a_size_that_cannot_be_had_at_an_appending_open_fails_it_on_all() {
    let directory = directory();
    let path = directory.path().join("file");
    for faulty in 0..RANKS {
        let fault = Fault::Error(libc::EIO);
        let errors = with_fault(faulty, &[Operation::Size], fault, |comm, driver| {
            let mode = NEW | Mode::APPEND;
            File::open_with(comm, driver, &path, mode, &Info::new()).unwrap_err()
        });
        for error in errors {
            assert_eq!((error.kind(), error.rank()), (ErrorKind::Io, Some(faulty)));
        }
        assert_no_descriptors(&path, "after the failure");
    }
}

/// What each rank of a collective access was told it moved.
fn told(error: &Error) -> (ErrorKind, Option<u32>, u64) {
    (error.kind(), error.rank(), error.transferred())
}

#[test]
fn in_a_failed_collective_access_every_rank_learns_what_it_moved_itself() {
    let directory = directory();
    let path = directory.path().join("file");
    let half = Fault::Partial(libc::ENOSPC);
    let errors = with_fault(1, &[Operation::Write], half, |comm, driver| {
        let file = open_atomic(comm, driver, &path).unwrap();
        let rank = comm.rank().0;
        let data = vec![rank as u8 + 1; 100];
        let error = file.write_at_all(u64::from(rank) * 100, &data).unwrap_err();
        file.close().unwrap();
        error
    });
    let culprit = Some(1);
    let expected = [100, 50, 100].map(|bytes| (ErrorKind::NoSpace, culprit, bytes));
    assert_eq!(errors.iter().map(told).collect::<Vec<_>>(), expected);
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes[..150], [[1; 100].as_slice(), &[2; 50]].concat());
    assert_eq!(bytes[200..], [3; 100]);

    let errors = with_fault(
        2,
        &[Operation::Read],
        Fault::Partial(libc::EIO),
        |comm, driver| {
            let file = open_atomic(comm, driver, &path).unwrap();
            let mut data = [0u8; 100];
            let error = file.read_ordered(&mut data).unwrap_err();
            file.close().unwrap();
            if comm.rank() == Rank(0) {
                assert_eq!(data, [1; 100]);
            }
            error
        },
    );
    let expected = [100, 100, 50].map(|bytes| (ErrorKind::Io, Some(2), bytes));
    assert_eq!(errors.iter().map(told).collect::<Vec<_>>(), expected);
}

#[test]
fn a_file_that_deletes_itself_is_gone_even_if_closing_fails() {
    for faulty in 0..RANKS {
        let directory = directory();
        let path = directory.path().join("file");
        let fault = Fault::Error(libc::EIO);
        let errors = with_fault(faulty, &[Operation::Close], fault, |comm, driver| {
            let mode = NEW | Mode::DELETE_ON_CLOSE;
            let file = File::open_with(comm, driver, &path, mode, &Info::new()).unwrap();
            file.close().unwrap_err()
        });
        for error in errors {
            assert_eq!((error.kind(), error.rank()), (ErrorKind::Io, Some(faulty)));
        }
        assert!(!path.exists(), "rank {faulty} failed to close");
    }
}

#[test]
fn a_delete_that_fails_at_close_is_told_to_all() {
    let directory = directory();
    let path = directory.path().join("file");
    let fault = Fault::Error(libc::EBUSY);
    let kinds = with_fault(0, &[Operation::Delete], fault, |comm, driver| {
        let mode = NEW | Mode::DELETE_ON_CLOSE;
        let file = File::open_with(comm, driver, &path, mode, &Info::new()).unwrap();
        let kind = file.close().unwrap_err().kind();
        assert_eq!(file.close().unwrap_err().kind(), ErrorKind::Handle);
        kind
    });
    assert_eq!(kinds, [ErrorKind::FileInUse; RANKS as usize]);
    assert_no_descriptors(&path, "after the failure");
}

#[test]
fn a_sync_that_fails_before_closing_is_told_and_the_file_is_closed() {
    let directory = directory();
    let path = directory.path().join("file");
    let fault = Fault::Error(libc::EIO);
    let kinds = with_fault(2, &[Operation::Sync], fault, |comm, driver| {
        let info = Info::from_pairs([("pario_sync_on_close", "true")]).unwrap();
        let file = File::open_with(comm, driver, &path, NEW, &info).unwrap();
        file.close().unwrap_err().kind()
    });
    assert_eq!(kinds, [ErrorKind::Io; RANKS as usize]);
    assert_no_descriptors(&path, "after the failure");
}

/// A lock that cannot be released keeps other ranks waiting. All hear of it at
/// the next collective call, once it is released the file goes on, and closing
/// releases it in any case.
#[test]
fn a_lock_that_cannot_be_released_is_told_to_all_at_the_next_call() {
    let directory = directory();
    let path = directory.path().join("file");
    for faulty in 0..RANKS {
        let results = threads::run(RANKS, |comm| {
            let faults = Faults::new();
            let driver = Posix::new().with_interference(Arc::new(faults.clone()));
            let file = open_atomic(&comm, Arc::new(driver), &path)?;
            let mine = u64::from(comm.rank().0) * 10;
            let kinds = [Operation::Unlock, Operation::Open];
            let fail = || faults.fail_from_nth(1, &kinds, Fault::Error(libc::EIO));
            let write = || {
                if comm.rank() == Rank(faulty) {
                    fail();
                }
                file.write_at(mine, &[1u8; 10])
            };
            assert_eq!(write()?.bytes(), 10, "the data is written");
            let rejected = [
                file.sync(),
                file.set_size(30),
                file.write_at_all(mine, &[2u8; 10]).map(drop),
            ];
            for result in rejected {
                let error = result.unwrap_err();
                assert_eq!((error.kind(), error.rank()), (ErrorKind::Io, Some(faulty)));
                assert!(error.to_string().contains("released"), "{error}");
            }
            faults.clear();
            file.sync()?;
            write()?;
            let error = file.close().unwrap_err();
            assert_eq!(error.rank(), Some(faulty), "{error}");
            Ok::<(), Error>(())
        });
        results
            .into_iter()
            .for_each(|result| result.unwrap().unwrap());
        assert_no_descriptors(&path, "after the failure");
    }
}

/// The error of a write whose request was dropped was lost.
#[test]
fn a_write_that_nobody_waits_for_fails_the_next_sync_or_close() {
    let directory = directory();
    let path = directory.path().join("file");
    for faulty in 0..RANKS {
        for at_close in [false, true] {
            let fault = Fault::Error(libc::ENOSPC);
            let errors = with_fault(faulty, &[Operation::Write], fault, |comm, driver| {
                let file = open(comm, driver, &path)?;
                let mine = u64::from(comm.rank().0) * 10;
                drop(file.iwrite_at(mine, vec![1u8; 10])?);
                let error = match at_close {
                    true => file.close().unwrap_err(),
                    false => file.sync().unwrap_err(),
                };
                if !at_close {
                    file.sync()?;
                    file.close()?;
                }
                Ok::<Error, Error>(error)
            });
            for error in errors {
                let error = error.unwrap();
                assert_eq!(
                    (error.kind(), error.rank()),
                    (ErrorKind::NoSpace, Some(faulty)),
                    "{error}"
                );
            }
        }
    }
}
