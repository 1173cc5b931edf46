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

use pario::{File, Info, Result};
use pario_driver::{
    Access, Create, Driver, Log, Mapped, OpenHow, Operation, Posix, Uring, WrappedDriver,
};
use pario_transport::{Transport, threads};

use crate::{
    NEW, STEP_MAX,
    careless::{Careless, Locks},
    neighbour::{PIECE, PIECES, view, write_holes, write_pieces},
    watchdog::Watchdog,
};

/// Ranks that write pieces while another program writes into the holes; what that one lost.
fn lost(driver: &Arc<dyn Driver>, ranks: u32) -> Option<u64> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| write_holes(&path, ranks, || stop.load(Ordering::Acquire)));
        let open = |comm: &Arc<dyn Transport>, info: &Info| {
            File::open_with(comm, driver.clone(), &path, NEW, info)
        };
        let results = threads::run(ranks, |comm| write_pieces(&comm, &open).unwrap());
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
            watchdog.step(format!("{name}, {ranks} ranks"));
            assert_eq!(lost(driver, ranks), None, "{name}, {ranks} ranks");
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
    if !has_leases(&directory.path().join("file")) {
        return;
    }
    let _watchdog = Watchdog::new(STEP_MAX);
    let forging = Careless::over(Posix::new(), Locks::Ignored);
    for ranks in [1, 3] {
        let losing = (0..20).any(|_| lost(&forging, ranks).is_some());
        assert!(losing, "without leases, read-modify-write must lose bytes");
    }
}

/// Reads that a collective write made.
fn reads_of_write(path: &Path, ranks: u32) -> usize {
    let log = Log::new();
    let driver: Arc<dyn Driver> = Arc::new(WrappedDriver::new(Arc::new(Posix::new()), log.clone()));
    let results = threads::run(ranks, |comm| -> Result<()> {
        let file = File::open_with(&comm, driver.clone(), path, NEW, &Info::new())?;
        file.set_view(&view(&*comm)?)?;
        file.write_at_all(0, &vec![1u8; (PIECES * PIECE) as usize])?;
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
    for ranks in [1, 2, 4] {
        assert!(reads_of_write(&path, ranks) > 0, "{ranks} ranks");
        let other = fs::File::open(&path).unwrap();
        assert_eq!(reads_of_write(&path, ranks), 0, "{ranks} ranks");
        drop(other);
    }
}
