//! Holes that are written back under a lease: other programs, which know nothing of this
//! library, write into them and lose nothing.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use pario::{Atomicity, File, Info, Result, View};
use pario_driver::{
    Direction, Driver, Latency, Log, Mapped, Operation, Posix, Uring, WrappedDriver,
};
use pario_transport::{Transport, threads};
use tempfile::TempDir;

use crate::{
    NEW, STEP_MAX,
    careless::{Careless, Locks},
    directories::{directories, with_leases},
    neighbour::{self, Expected, Grid, StoreCount, Work, write_holes, write_pieces},
    watchdog::Watchdog,
    ways::{Mapping, Way},
};

/// Ranks that write pieces while another program writes into the holes; what that one lost.
fn lost(directory: &TempDir, driver: &Arc<dyn Driver>, ranks: u32, work: &Work) -> Option<u64> {
    let directory = tempfile::tempdir_in(directory).unwrap();
    let path = directory.path().join("file");
    let (begun, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let open = || -> std::io::Result<Box<dyn Way>> {
                let file = fs::File::options().read(true).write(true).open(&path)?;
                Ok(Box::new(file))
            };
            let begin = || begun.store(true, Ordering::Release);
            write_holes(open, (&work.grid, 0), begin, || {
                stop.load(Ordering::Acquire)
            })
        });
        let open = |comm: &Arc<dyn Transport>, info: &Info| {
            File::open_with(comm, driver.clone(), &path, NEW, info)
        };
        let has_begun = || begun.load(Ordering::Acquire);
        let results = threads::run(ranks, |comm| {
            write_pieces(&comm, &open, work, &has_begun).unwrap()
        });
        stop.store(true, Ordering::Release);
        for wrong in results {
            assert_eq!(wrong.unwrap(), None, "a rank");
        }
        writer.join().unwrap()
    })
}

#[test]
fn other_programs_lose_nothing_that_they_write_into_holes() {
    let watchdog = Watchdog::new(STEP_MAX);
    let drivers: [(&str, Arc<dyn Driver>); 4] = [
        ("posix", Arc::new(Posix::new())),
        ("uring", Arc::new(Uring)),
        ("mapped", Arc::new(Mapped)),
        ("careless", Careless::over(Posix::new(), Locks::Kept)),
    ];
    for directory in directories() {
        for (name, driver) in &drivers {
            for ranks in [1, 3] {
                for grid in [Grid::records(ranks), Grid::blocks(ranks)] {
                    let case = format!("{name}, {grid:?}, {directory:?}");
                    watchdog.step(case.clone());
                    let work = Work::new(grid, neighbour::info());
                    assert_eq!(lost(&directory, driver, ranks, &work), None, "{case}");
                }
            }
        }
    }
}

#[test]
fn other_programs_lose_nothing_beside_stores() {
    let watchdog = Watchdog::new(STEP_MAX);
    for directory in directories() {
        for ranks in [1, 3] {
            let case = format!("{ranks} ranks, {directory:?}");
            watchdog.step(case.clone());
            let stores = Arc::new(StoreCount::default());
            let driver: Arc<dyn Driver> = Arc::new(Posix::new().with_interference(stores.clone()));
            let work = Work {
                expected: Expected::Stores(stores),
                ..Work::new(Grid::records(ranks), neighbour::storing())
            };
            assert_eq!(lost(&directory, &driver, ranks, &work), None, "{case}");
        }
    }
}

#[test]
fn the_test_of_leases_can_fail() {
    let watchdog = Watchdog::new(STEP_MAX);
    let forging = Careless::over(Posix::new(), Locks::Ignored);
    for directory in with_leases() {
        let mut grids = vec![(1, Grid::records(1)), (3, Grid::records(3))];
        if is_on_storage(directory.path()) {
            grids.push((1, Grid::blocks(1)));
        }
        for (ranks, grid) in grids {
            let case = format!("{grid:?}, {directory:?}");
            watchdog.step(case.clone());
            let work = Work::new(grid, neighbour::info());
            let losing = (0..20).any(|_| lost(&directory, &forging, ranks, &work).is_some());
            assert!(
                losing,
                "without leases, read-modify-write must lose bytes: {case}"
            );
        }
    }
}

/// Whether whole blocks are rewritten in this file's file system.
fn is_on_storage(path: &Path) -> bool {
    let file_system = Posix::new().file_system(path).unwrap();
    file_system.latency(Direction::Read) == Latency::WhereCached
}

/// Attempts at something that needs a lease. Processes that other tests fork have copies of all
/// descriptors of this one: what a rank closes stays open, and there is no lease, until they end.
fn attempts<T>(mut attempt: impl FnMut() -> T) -> impl Iterator<Item = T> {
    const PAUSE: Duration = Duration::from_millis(100);
    (0..30).map(move |number| {
        if number > 0 {
            thread::sleep(PAUSE);
        }
        attempt()
    })
}

/// What writes of all ranks made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Made {
    reads: usize,
    stores: usize,
}

fn made_by(
    path: &Path,
    (ranks, grid): (u32, Grid),
    write: impl Fn(&File, &[u8]) -> Result<()> + Sync,
) -> Made {
    let (log, stores) = (Log::new(), Arc::new(StoreCount::default()));
    let posix = Posix::new().with_interference(stores.clone());
    let driver: Arc<dyn Driver> = Arc::new(WrappedDriver::new(Arc::new(posix), log.clone()));
    let results = threads::run(ranks, |comm| -> Result<()> {
        let file = File::open_with(&comm, driver.clone(), path, NEW, &neighbour::info())?;
        file.set_view(&grid.view(&*comm)?)?;
        write(&file, &vec![1u8; grid.bytes()])?;
        file.close()
    });
    results
        .into_iter()
        .for_each(|result| result.unwrap().unwrap());
    Made {
        reads: log.count(Operation::Read),
        stores: stores.get(),
    }
}

/// Otherwise the pieces are stored.
#[test]
fn holes_are_written_back_only_if_nobody_else_has_the_file_open() {
    type Write = fn(&File, &[u8]) -> Result<()>;
    let writes: [(&str, Write); 2] = [
        ("collective", |file, data| {
            file.write_at_all(0, data).map(drop)
        }),
        ("independent", |file, data| file.write_at(0, data).map(drop)),
    ];
    for directory in with_leases() {
        let path = directory.path().join("file");
        for (kind, write) in writes {
            for ranks in [1, 2, 4] {
                let case = format!("{kind}, {ranks} ranks, {directory:?}");
                let records = (ranks, Grid::records(ranks));
                let alone = attempts(|| made_by(&path, records, write));
                let is_rewritten = |made: &Made| made.reads > 0 && made.stores == 0;
                let mut seen = Vec::new();
                let found = alone.inspect(|made| seen.push(*made)).find(is_rewritten);
                assert!(found.is_some(), "{case}: {seen:?}");
                let other = fs::File::open(&path).unwrap();
                let beside = made_by(&path, records, write);
                assert!(beside.reads == 0 && beside.stores > 0, "{case}: {beside:?}");
                drop(other);
                let other = Mapping::new(&path, records.1.end()).unwrap();
                let beside = made_by(&path, records, write);
                assert!(beside.reads == 0 && beside.stores > 0, "{case}: {beside:?}");
                drop(other);
            }
        }
    }
}

/// Ranks that fill the gaps between each other's blocks rewrite them, unless they would have to
/// be read from storage. In memory, pieces are as fast.
#[test]
fn whole_blocks_are_written_back_if_the_gaps_are_cached() {
    let grid = Grid::blocks(3);
    let write = |file: &File, data: &[u8]| file.write_at(0, data).map(drop);
    let reads_of = |path: &Path, ranks| made_by(path, (ranks, grid), write).reads;
    for directory in with_leases() {
        let path = directory.path().join("file");
        if !is_on_storage(directory.path()) {
            assert_eq!(reads_of(&path, 3), 0, "{directory:?}");
            continue;
        }
        assert!(reads_of(&path, 3) > 0, "a new file");
        // Two ranks leave too much.
        let path = directory.path().join("sparse");
        assert_eq!(reads_of(&path, 2), 0);
        // This driver finds nothing in the cache.
        let path = directory.path().join("stored");
        fs::write(&path, vec![7; 8 << 20]).unwrap();
        assert_eq!(reads_of(&path, 3), 0);
    }
}

/// Atomic mode needs a description per rank; afterwards the ranks share one again.
#[test]
fn ranks_share_a_lease_before_and_after_atomic_mode() {
    let _watchdog = Watchdog::new(STEP_MAX);
    for directory in with_leases() {
        let mut names = 0..;
        let attempts = attempts(|| {
            let name = names.next().map(|number: u32| number.to_string());
            rewritten_before_and_after_atomic_mode(&directory.path().join(name.unwrap()))
        });
        let mut seen = Vec::new();
        let expected = [true, false, false, true];
        let is_expected = |found: &Vec<[bool; 4]>| found.iter().all(|rank| *rank == expected);
        let found = attempts
            .inspect(|found| seen.push(found.clone()))
            .find(is_expected);
        assert!(found.is_some(), "{directory:?}: {seen:?}");
    }
}

/// By rank, in which of four writes of all ranks gaps were rewritten; the second is atomic.
fn rewritten_before_and_after_atomic_mode(path: &Path) -> Vec<[bool; 4]> {
    let log = Log::new();
    let grid = Grid::records(3);
    let driver: Arc<dyn Driver> = Arc::new(WrappedDriver::new(Arc::new(Posix::new()), log.clone()));
    let results = threads::run(3, |comm| -> Result<Vec<usize>> {
        let file = File::open_with(&comm, driver.clone(), path, NEW, &neighbour::info())?;
        file.set_view(&grid.view(&*comm)?)?;
        let mut reads = Vec::new();
        let mut write = |round: u8| -> Result<()> {
            comm.barrier()?;
            let before = log.count(Operation::Read);
            comm.barrier()?;
            let data = vec![round; grid.bytes()];
            file.write_at(0, &data)?;
            comm.barrier()?;
            reads.push(log.count(Operation::Read) - before);
            comm.barrier()?;
            let mut found = vec![0; data.len()];
            file.read_at(0, &mut found)?;
            assert_eq!(found, data);
            Ok(())
        };
        write(1)?;
        file.set_atomicity(Atomicity::Atomic)?;
        write(2)?;
        file.set_atomicity(Atomicity::NonAtomic)?;
        write(3)?;
        file.set_view(&grid.view(&*comm)?)?;
        write(4)?;
        file.close()?;
        Ok(reads)
    });
    let reads = results.into_iter().map(|result| result.unwrap().unwrap());
    reads
        .map(|reads| [0, 1, 2, 3].map(|write| reads[write] > 0))
        .collect()
}

/// A write in the background may have a lease, under the view that it began with.
#[test]
fn writes_through_the_next_view_are_not_lost() {
    let watchdog = Watchdog::new(STEP_MAX);
    for directory in directories() {
        for ranks in [1, 2] {
            for round in 0..20 {
                let case = format!("{ranks} ranks, round {round}, {directory:?}");
                watchdog.step(case.clone());
                let path = directory.path().join(format!("{ranks} {round}"));
                for found in write_through_the_next_view(&path, ranks) {
                    assert_eq!(found, [199; 8], "{case}");
                }
            }
        }
    }
}

/// What each rank finds at last where it has written 199.
fn write_through_the_next_view(path: &Path, ranks: u32) -> Vec<[u8; 8]> {
    let grid = Grid::records(ranks);
    let hole_at = grid.holes().next().unwrap();
    let driver = Careless::over(Posix::new(), Locks::Kept);
    let results = threads::run(ranks, |comm| -> Result<[u8; 8]> {
        let file = File::open_with(&comm, driver.clone(), path, NEW, &neighbour::info())?;
        file.set_view(&grid.view(&*comm)?)?;
        let request = file.iwrite_at(0, vec![1u8; grid.bytes()])?;
        file.set_view(&View::bytes())?;
        let at = hole_at + u64::from(comm.rank().0) * 8;
        let mut found = [0; 8];
        for value in 1..200u8 {
            file.write_at(at, &[value; 8])?;
            file.read_at(at, &mut found)?;
            if found != [value; 8] {
                break;
            }
        }
        request.wait()?;
        file.read_at(at, &mut found)?;
        file.close()?;
        Ok(found)
    });
    results
        .into_iter()
        .map(|found| found.unwrap().unwrap())
        .collect()
}
