//! File systems whose calls are requests to a server: small pieces with gaps are rewritten under
//! locks, without a hint.

use std::{path::Path, sync::Arc};

use pario::{AccessMethod, Datatype, File, Info, Result, View};
use pario_driver::{Driver, FileSystem, Posix};
use pario_transport::{Transport, threads};

use crate::{
    NEW, STEP_MAX,
    careless::{Careless, Locks},
    complaint, disjoint,
    seeds::seeds,
    watchdog::Watchdog,
};

const PIECE: u64 = 10;
const PIECES: usize = 200;

fn gluster() -> Posix {
    Posix::new().assuming(FileSystem::Gluster)
}

#[test]
fn ranks_that_rewrite_under_locks_lose_nothing() {
    let watchdog = Watchdog::new(STEP_MAX);
    let driver = Careless::over(gluster(), Locks::Kept);
    for seed in seeds(20) {
        watchdog.step(format!("seed {seed}"));
        let lost = complaint(1 + seed as u32 % 4, &driver, NEW, |comm, open| {
            disjoint::work(comm, open, &Vec::new(), seed)
        });
        assert_eq!(lost, None, "seed {seed}");
    }
}

#[test]
fn the_test_of_rewriting_under_locks_can_fail() {
    let _watchdog = Watchdog::new(STEP_MAX);
    let driver = Careless::over(gluster(), Locks::Ignored);
    let loses = |seed| {
        let lost = complaint(4, &driver, NEW, |comm, open| {
            disjoint::work_at_once(comm, open, &Vec::new(), seed)
        });
        lost.is_some()
    };
    assert!((0..20).any(loses), "without locks, bytes must be lost");
}

/// Every third piece, from the one with this number on.
fn third(number: u64) -> Result<View> {
    let byte = Datatype::of::<u8>();
    let piece = Datatype::contiguous(PIECE, &byte)?;
    let strided = Datatype::resized(&piece, 0, 3 * PIECE as i64)?;
    Ok(View::new(number * PIECE, &byte, &strided))
}

fn rewrites(file: &File) -> Result<bool> {
    let data = [0; PIECE as usize * PIECES];
    let selected = file.explain_write_at(0, &data)?;
    Ok(selected.method() == AccessMethod::Sieve)
}

/// One of two handles rewrites only if the other locks what it writes; opened before, the other
/// does not.
#[test]
fn handles_know_whether_the_other_rewrites() {
    let _watchdog = Watchdog::new(STEP_MAX);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let driver: Arc<dyn Driver> = Arc::new(gluster());
    let work = |comm: Arc<dyn Transport>| -> Result<()> {
        let rank = u64::from(comm.rank().0);
        let open = || File::open_with(&comm, driver.clone(), Path::new(&path), NEW, &Info::new());
        let (first, second) = (open()?, open()?);
        first.set_view(&third(rank)?)?;
        assert!(!rewrites(&first)?, "the second handle does not lock");
        second.close()?;
        first.set_view(&third(rank)?)?;
        assert!(rewrites(&first)?, "it is the only handle");

        let second = open()?;
        second.set_view(&third(2)?)?;
        assert!(!rewrites(&second)?, "only one handle may");
        for round in 0..30u8 {
            match rank {
                0 => first.write_at(0, &[round; PIECE as usize * PIECES])?,
                _ => second.write_at(0, &[100 + round; PIECE as usize * PIECES])?,
            };
        }
        comm.barrier()?;
        first.close()?;
        second.close()
    };
    for result in threads::run(2, work).into_iter() {
        result.expect("no rank fails").unwrap();
    }
    let found = std::fs::read(&path).unwrap();
    for (index, piece) in found.chunks(PIECE as usize).enumerate() {
        let expected = [29, 0, 129][index % 3];
        assert!(piece.iter().all(|byte| *byte == expected), "piece {index}");
    }
}
