//! File systems whose calls are requests to a server: small pieces with gaps are rewritten under
//! locks, without a hint.

use std::{path::Path, sync::Arc};

use pario::{AccessMethod, Datatype, File, Info, Result, View};
use pario_driver::{Driver, FileSystem, Log, Operation, Posix, WrappedDriver};
use pario_transport::{Transport, threads};

use crate::{
    NEW, STEP_MAX,
    careless::{Careless, Locks},
    complaint, disjoint, holes,
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

/// The ranges that two ranks lock when each writes every third piece, in windows of so many pieces.
fn locked(is_collective: bool, pieces_per_window: u64) -> Vec<(u64, u64)> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let log = Log::new();
    let driver = Arc::new(WrappedDriver::new(Arc::new(gluster()), log.clone()));
    let mut info = Info::new();
    for window in ["pario_slice_bytes", "cb_buffer_size", "ind_wr_buffer_size"] {
        let bytes = pieces_per_window * PIECE;
        info.set(window, &bytes.to_string()).unwrap();
    }
    let work = |comm: Arc<dyn Transport>| -> Result<()> {
        let rank = comm.rank().0;
        let file = File::open_with(&comm, driver.clone(), &path, NEW, &info)?;
        file.set_view(&third(rank.into())?)?;
        log.take();
        comm.barrier()?;
        let data = [1 + rank as u8; PIECE as usize * PIECES];
        match is_collective {
            true => drop(file.write_at_all(0, &data)?),
            false => drop(file.write_at(0, &data)?),
        }
        comm.barrier()?;
        assert!(log.count(Operation::Read) > 0, "the gaps are rewritten");
        comm.barrier()?;
        file.close()
    };
    for result in threads::run(2, work) {
        result.expect("no rank fails").unwrap();
    }
    let found = std::fs::read(&path).unwrap();
    for (index, piece) in found.chunks(PIECE as usize).enumerate() {
        let expected = [1, 2, 0][index % 3];
        assert!(piece.iter().all(|byte| *byte == expected), "piece {index}");
    }
    let mut events = log.take();
    events.retain(|event| event.operation == Operation::Lock);
    events.into_iter().flat_map(|event| event.places).collect()
}

/// A lock takes as long as writing a window.
#[test]
fn several_windows_are_written_under_one_lock() {
    let _watchdog = Watchdog::new(STEP_MAX);
    let end = (3 * PIECES as u64 - 1) * PIECE;
    assert_eq!(locked(true, 30), [(0, end)], "one rank locks for all");
    // 20 windows per rank, four of them under one lock; the last lock is shorter.
    let mut locks = locked(false, 30);
    locks.sort_unstable();
    let lens: Vec<_> = locks.iter().map(|(_, len)| *len).collect();
    assert_eq!(lens.len(), 10, "{locks:?}");
    let window = 30 * PIECE;
    assert!(
        lens.iter()
            .all(|len| *len > 3 * window && *len <= 4 * window),
        "{locks:?}"
    );
}

/// Three ranks write their pieces again and again by one algorithm; returns the first piece that
/// does not hold what was written to it last.
fn lost_by(algorithm: &str) -> Option<usize> {
    const RANKS: u32 = 3;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let driver = Careless::over(gluster(), Locks::Kept);
    let info = Info::from_pairs([
        ("pario_algorithm", algorithm),
        ("pario_exchange", "shared"),
        ("cb_nodes", "2"),
        ("cb_buffer_size", "300"),
        ("pario_slice_bytes", "300"),
    ])
    .unwrap();
    let byte = Datatype::of::<u8>();
    let piece = Datatype::contiguous(PIECE, &byte).unwrap();
    let tile = Datatype::resized(&piece, 0, 4 * PIECE as i64).unwrap();
    let work = |comm: Arc<dyn Transport>| -> Result<Option<usize>> {
        let rank = comm.rank().0;
        let file = File::open_with(&comm, driver.clone(), &path, NEW, &info)?;
        file.set_view(&View::new(u64::from(rank) * PIECE, &byte, &tile))?;
        let mut lost = None;
        for round in 1..=10u8 {
            let of = |rank: u8| 10 * round + rank;
            file.write_at_all(0, &[of(rank as u8); PIECE as usize * PIECES])?;
            let found = std::fs::read(&path).unwrap();
            let mut pieces = found.chunks(PIECE as usize).enumerate();
            let expected = |index: usize| [of(0), of(1), of(2), 0][index % 4];
            let wrong = pieces.find(|(at, piece)| piece.iter().any(|it| *it != expected(*at)));
            lost = lost.or(wrong.map(|(at, _)| at));
            comm.barrier()?;
        }
        file.close()?;
        Ok(lost)
    };
    let results = threads::run(RANKS, work);
    results
        .into_iter()
        .find_map(|result| result.expect("no rank fails").unwrap())
}

/// Some algorithms have several aggregators write to the same part of the file.
#[test]
fn aggregators_that_share_a_range_lose_nothing() {
    let watchdog = Watchdog::new(STEP_MAX);
    for algorithm in holes::ALGORITHMS {
        watchdog.step(algorithm.to_owned());
        assert_eq!(lost_by(algorithm), None, "{algorithm}");
    }
}
