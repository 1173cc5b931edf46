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
};

use pario::{Atomicity, File, Info, Result, View};
use pario_driver::{
    Access, Create, Direction, Driver, Latency, Log, Mapped, OpenHow, Operation, Posix, Uring,
    WrappedDriver,
};
use pario_transport::{Transport, threads};

use crate::{
    NEW, STEP_MAX,
    careless::{Careless, Locks},
    neighbour::{self, Grid, write_holes, write_pieces},
    watchdog::Watchdog,
};

/// Ranks that write pieces while another program writes into the holes; what that one lost.
fn lost(driver: &Arc<dyn Driver>, ranks: u32, grid: &Grid) -> Option<u64> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| write_holes(&path, grid, || stop.load(Ordering::Acquire)));
        let open = |comm: &Arc<dyn Transport>, info: &Info| {
            File::open_with(comm, driver.clone(), &path, NEW, info)
        };
        let results = threads::run(ranks, |comm| write_pieces(&comm, &open, grid).unwrap());
        stop.store(true, Ordering::Release);
        for wrong in results {
            assert_eq!(wrong.unwrap(), None, "a rank lost its own data");
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
    for (name, driver) in &drivers {
        for ranks in [1, 3] {
            for grid in [Grid::records(ranks), Grid::blocks(ranks)] {
                watchdog.step(format!("{name}, {grid:?}"));
                assert_eq!(lost(driver, ranks, &grid), None, "{name}, {grid:?}");
            }
        }
    }
}

/// Whether files of this directory can be leased at all.
fn has_leases(path: &Path) -> bool {
    let how = OpenHow::new(Access::ReadWrite).create(Create::IfMissing);
    let file = Posix::new().open(path, &how).unwrap();
    let is_granted = file.lease().is_some();
    file.close().unwrap();
    is_granted
}

#[test]
fn the_test_of_leases_can_fail() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    if !has_leases(&path) {
        return;
    }
    let _watchdog = Watchdog::new(STEP_MAX);
    let forging = Careless::over(Posix::new(), Locks::Ignored);
    let mut grids = vec![(1, Grid::records(1)), (3, Grid::records(3))];
    if is_on_storage(&path) {
        grids.push((1, Grid::blocks(1)));
    }
    for (ranks, grid) in grids {
        let losing = (0..20).any(|_| lost(&forging, ranks, &grid).is_some());
        assert!(
            losing,
            "without leases, read-modify-write must lose bytes: {grid:?}"
        );
    }
}

/// Whether whole blocks are rewritten in this file's file system.
fn is_on_storage(path: &Path) -> bool {
    let file_system = Posix::new().file_system(path).unwrap();
    file_system.latency(Direction::Read) == Latency::WhereCached
}

/// Reads that writes of all ranks made.
fn reads_of(
    path: &Path,
    (ranks, grid): (u32, Grid),
    write: impl Fn(&File, &[u8]) -> Result<()> + Sync,
) -> usize {
    let log = Log::new();
    let driver: Arc<dyn Driver> = Arc::new(WrappedDriver::new(Arc::new(Posix::new()), log.clone()));
    let results = threads::run(ranks, |comm| -> Result<()> {
        let file = File::open_with(&comm, driver.clone(), path, NEW, &neighbour::info())?;
        file.set_view(&grid.view(&*comm)?)?;
        write(&file, &vec![1u8; grid.bytes()])?;
        file.close()
    });
    results
        .into_iter()
        .for_each(|result| result.unwrap().unwrap());
    log.count(Operation::Read)
}

#[test]
fn holes_are_written_back_only_if_nobody_else_has_the_file_open() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    if !has_leases(&path) {
        return;
    }
    type Write = fn(&File, &[u8]) -> Result<()>;
    let writes: [(&str, Write); 2] = [
        ("collective", |file, data| {
            file.write_at_all(0, data).map(drop)
        }),
        ("independent", |file, data| file.write_at(0, data).map(drop)),
    ];
    for (kind, write) in writes {
        for ranks in [1, 2, 4] {
            let case = format!("{kind}, {ranks} ranks");
            let records = (ranks, Grid::records(ranks));
            assert!(reads_of(&path, records, write) > 0, "{case}");
            let other = fs::File::open(&path).unwrap();
            assert_eq!(reads_of(&path, records, write), 0, "{case}");
            drop(other);
        }
    }
}

/// Ranks that fill the gaps between each other's blocks rewrite them, unless they would have to
/// be read from storage.
#[test]
fn whole_blocks_are_written_back_if_the_gaps_are_cached() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    if !has_leases(&path) || !is_on_storage(&path) {
        return;
    }
    let grid = Grid::blocks(3);
    let write = |file: &File, data: &[u8]| file.write_at(0, data).map(drop);
    assert!(reads_of(&path, (3, grid), write) > 0, "a new file");
    // Two ranks leave too much.
    let path = directory.path().join("sparse");
    assert_eq!(reads_of(&path, (2, grid), write), 0);
    // This driver finds nothing in the cache.
    let path = directory.path().join("stored");
    fs::write(&path, vec![7; 8 << 20]).unwrap();
    assert_eq!(reads_of(&path, (3, grid), write), 0);
}

/// Atomic mode needs a description per rank; afterwards the ranks share one again.
#[test]
fn ranks_share_a_lease_before_and_after_atomic_mode() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    if !has_leases(&path) {
        return;
    }
    let _watchdog = Watchdog::new(STEP_MAX);
    let log = Log::new();
    let grid = Grid::records(3);
    let driver: Arc<dyn Driver> = Arc::new(WrappedDriver::new(Arc::new(Posix::new()), log.clone()));
    let results = threads::run(3, |comm| -> Result<Vec<usize>> {
        let file = File::open_with(&comm, driver.clone(), &path, NEW, &neighbour::info())?;
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
    for result in results {
        let rewrites: Vec<_> = result.unwrap().unwrap();
        let rewrites: Vec<_> = rewrites.iter().map(|reads| *reads > 0).collect();
        assert_eq!(rewrites, [true, false, false, true]);
    }
}

/// A write in the background may have a lease, under the view that it began with.
#[test]
fn writes_through_the_next_view_are_not_lost() {
    let watchdog = Watchdog::new(STEP_MAX);
    for ranks in [1, 2] {
        let grid = Grid::records(ranks);
        let hole_at = grid.holes().next().unwrap();
        for round in 0..20u8 {
            watchdog.step(format!("{ranks} ranks, round {round}"));
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("file");
            let driver = Careless::over(Posix::new(), Locks::Kept);
            let results = threads::run(ranks, |comm| -> Result<Vec<u8>> {
                let file = File::open_with(&comm, driver.clone(), &path, NEW, &neighbour::info())?;
                file.set_view(&grid.view(&*comm)?)?;
                let request = file.iwrite_at(0, vec![1u8; grid.bytes()])?;
                file.set_view(&View::bytes())?;
                let at = hole_at + u64::from(comm.rank().0) * 8;
                let mut found = vec![0; 8];
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
            for found in results {
                assert_eq!(found.unwrap().unwrap(), [199; 8], "{ranks} ranks");
            }
        }
    }
}
