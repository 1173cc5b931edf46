//! Rule 9: a rank that is gone gives the others an error, not a hang.
#![allow(unsafe_code)] // a rank kills itself

use std::{fs, path::Path, sync::Arc, thread, time::Duration};

use pario::{Atomicity, ErrorKind, File, Info, Result, View};
use pario_driver::Driver;
use pario_transport::{Loss, Rank, Transport, processes::World};

use crate::{
    common::{
        NEW, directory, info, mismatch,
        probe::{Event, Probe},
    },
    harness::{self, Test, results},
    sharing::{names, shared_names},
};

pub(crate) const TESTS: &[Test] = &[
    (
        "losses::rule_09_a_killed_rank_fails_collective_calls",
        killed,
    ),
    (
        "losses::rule_09_a_rank_that_panics_fails_collective_calls",
        panicked,
    ),
    (
        "losses::rule_09_a_rank_that_leaves_fails_collective_calls",
        left,
    ),
    ("losses::mismatched_calls_are_named", mismatched),
    (
        "losses::rule_09_a_killed_rank_lets_go_of_its_locks",
        locks_go,
    ),
    (
        "losses::rule_09_a_rank_killed_before_open_fails_open",
        killed_before_open,
    ),
];

fn mismatched() {
    let directory = directory();
    let path = directory.path().join("file");
    harness::ranks(3, |comm| mismatch::check(&comm, &path));
}

fn kill_self() -> ! {
    // SAFETY: the signal ends this process and touches no other.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    unreachable!("SIGKILL cannot be survived")
}

/// Runs three ranks of which rank 1 fails as it does; the others must return.
fn survive(work: impl Fn(Arc<dyn Transport>) -> Result<()>) -> Option<Loss> {
    let mut lost = None;
    for (rank, result) in results(&World::new(3), work).into_iter().enumerate() {
        match (rank, result) {
            (1, Err(failure)) => lost = Some(failure.reason),
            (_, Ok(_)) => {}
            (_, Err(failure)) => panic!("{failure}"),
        }
    }
    lost
}

/// Every collective call fails, and says by whose loss; accesses of one rank
/// go on.
fn only_collective_calls_fail(file: &File, says: &str) -> Result<()> {
    let calls = [
        ("write_at_all", file.write_at_all(0, &[1u8]).map(drop)),
        ("read_ordered", file.read_ordered(&mut [0u8]).map(drop)),
        ("set_view", file.set_view(&View::bytes())),
        ("set_size", file.set_size(10)),
        ("sync", file.sync()),
        ("set_info", file.set_info(&Info::new())),
        ("close", file.close()),
    ];
    for (call, result) in calls {
        let error = result.expect_err(call);
        assert_eq!(error.kind(), ErrorKind::PeerLost, "{error}");
        assert_eq!(error.operation(), call);
        assert!(error.to_string().contains(says), "{error}");
    }
    let place = 100 * u64::from(file.comm().rank());
    file.write_at(place, &[7u8; 100])?;
    file.iwrite_at(place + 50, vec![8u8; 50])?.wait()?;
    file.write_shared(&[9u8])?;
    Ok(())
}

fn assert_left(directory: &Path) {
    assert_eq!(names(directory), ["data"]);
    assert_eq!(shared_names(), [""; 0]);
    let bytes = fs::read(directory.join("data")).unwrap();
    assert_eq!(bytes[260], 8, "what the others wrote is there");
}

fn killed() {
    for method in ["memory", "file"] {
        let directory = directory();
        let lost = survive(|comm| {
            let hints = info(&[("pario_shared_pointer", method)]);
            let file = File::open(&comm, directory.path().join("data"), NEW, &hints)?;
            if comm.rank() == Rank(1) {
                let _pending = file.iwrite_at(0, vec![1u8; 10])?;
                kill_self();
            }
            only_collective_calls_fail(&file, "rank 1 is lost: signal 9")
        });
        assert_eq!(
            lost,
            Some(Loss::Killed {
                signal: libc::SIGKILL
            })
        );
        assert_left(directory.path());
    }
}

fn panicked() {
    let directory = directory();
    let lost = survive(|comm| {
        let file = File::open(&comm, directory.path().join("data"), NEW, &Info::new())?;
        if comm.rank() == Rank(1) {
            std::panic::set_hook(Box::new(|_| {}));
            panic!("this panic is part of a test");
        }
        only_collective_calls_fail(&file, "rank 1 is lost: it panicked")
    });
    assert_eq!(lost, Some(Loss::Panicked));
    assert_left(directory.path());
}

fn left() {
    let directory = directory();
    let lost = survive(|comm| {
        let file = File::open(&comm, directory.path().join("data"), NEW, &Info::new())?;
        if comm.rank() == Rank(1) {
            return Ok(());
        }
        // It may be the other that has returned by then.
        only_collective_calls_fail(&file, "is lost: it has returned")
    });
    assert_eq!(lost, None);
    assert_left(directory.path());
}

fn killed_before_open() {
    let directory = directory();
    let lost = survive(|comm| {
        if comm.rank() == Rank(1) {
            kill_self();
        }
        let hints = info(&[("pario_shared_pointer", "file")]);
        let error = File::open(&comm, directory.path().join("data"), NEW, &hints).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PeerLost, "{error}");
        Ok(())
    });
    assert_eq!(
        lost,
        Some(Loss::Killed {
            signal: libc::SIGKILL
        })
    );
    assert_eq!(shared_names(), [""; 0]);
    let left = names(directory.path());
    assert!(left.iter().all(|name| name == "data"), "{left:?}");
}

fn locks_go() {
    let directory = directory();
    let (path, marker) = (
        directory.path().join("data"),
        directory.path().join("locked"),
    );
    let lost = survive(|comm| {
        let dies = comm.rank() == Rank(1);
        let at = marker.clone();
        let driver: Arc<dyn Driver> = Probe::new(move |event| {
            if dies && matches!(event, Event::Write(_)) {
                fs::write(&at, "")?;
                thread::sleep(Duration::from_millis(100));
                kill_self();
            }
            Ok(())
        });
        let file = File::open_with(&comm, driver, &path, NEW, &Info::new())?;
        file.set_atomicity(Atomicity::Atomic)?;
        if dies {
            file.write_at(0, &[1u8; 100])?;
        }
        while !marker.exists() {
            thread::sleep(Duration::from_millis(1));
        }
        let value = comm.rank().0 as u8 + 2;
        file.write_at(0, &[value; 100])?;
        Ok(())
    });
    assert_eq!(
        lost,
        Some(Loss::Killed {
            signal: libc::SIGKILL
        })
    );
    let bytes = fs::read(&path).unwrap();
    assert!(bytes == [2; 100] || bytes == [4; 100], "{bytes:?}");
}
