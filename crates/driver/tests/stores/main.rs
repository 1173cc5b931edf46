//! Lists dense enough to be stored through a mapping: the same bytes as with
//! calls, in any order, in growing files and next to other writers.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod concurrent;
mod failing;
mod process;

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use pario_driver::{
    Access, AsyncMethod, Batch, CallAction, Create, Direction, Driver, Handle, Interference,
    IoMode, Mapped, OpenHow, Posix, ScatteredWrites, SystemCall,
};

const SEED: u64 = 20;

fn how(access: Access) -> OpenHow {
    OpenHow::new(access).create(Create::IfMissing)
}

fn open(driver: &dyn Driver, path: &Path) -> Arc<dyn Handle> {
    driver.open(path, &how(Access::ReadWrite)).unwrap()
}

/// A directory on each kind of file system that tests can use.
fn directories() -> [tempfile::TempDir; 2] {
    [std::env::temp_dir().as_path(), "/dev/shm".as_ref()]
        .map(|parent| tempfile::tempdir_in(parent).unwrap())
}

/// Counts the stores that the kernel makes.
#[derive(Debug, Default)]
struct StoreCount(AtomicUsize);

impl Interference for StoreCount {
    fn before(&self, call: SystemCall, _bytes: usize) -> CallAction {
        if call == SystemCall::Store {
            self.0.fetch_add(1, Relaxed);
        }
        CallAction::Proceed
    }
}

/// Pieces of eight bytes, every 16 bytes.
fn dense(count: u64) -> Vec<(u64, usize, usize)> {
    (0..count).map(|at| (at * 16, 0, 8)).collect()
}

/// A list of small pieces of `memory` in a file of about one megabyte: mostly
/// close together, in any order, some overlapping or adjacent, some long.
fn list(random: &mut fastrand::Rng, memory: usize) -> Vec<(u64, usize, usize)> {
    let stride = random.u64(8..1200);
    let base = random.u64(0..1 << 20);
    let long = random.usize(1..500);
    let mut pieces = Vec::new();
    let mut place = 0;
    while pieces.len() < 3000 {
        let most = if pieces.len() % long == 0 { memory } else { 64 };
        let len = random.usize(0..most).min(memory - place);
        let jitter = random.u64(0..16);
        let far = if len == 0 { 1 << 40 } else { 0 };
        pieces.push((
            base + pieces.len() as u64 * stride + jitter + far,
            place,
            len,
        ));
        place = (place + len) % memory;
    }
    match random.u8(0..3) {
        0 => random.shuffle(&mut pieces),
        1 => pieces.reverse(),
        _ => {}
    }
    pieces
}

fn check_lists(driver: &dyn Driver, path: &Path) {
    const MEMORY: usize = 100_000;
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut expected: Vec<u8> = Vec::new();
    for round in 0..40 {
        let access = match round % 2 {
            0 => Access::Write,
            _ => Access::ReadWrite,
        };
        let handle = driver.open(path, &how(access)).unwrap();
        let mut memory: Vec<u8> = (0..MEMORY).map(|_| random.u8(1..)).collect();
        let pieces = list(&mut random, memory.len());
        for &(offset, start, len) in pieces.iter().filter(|piece| piece.2 > 0) {
            let range = offset as usize..offset as usize + len;
            expected.resize(expected.len().max(range.end), 0);
            expected[range].copy_from_slice(&memory[start..start + len]);
        }
        let batch = Batch::gather(Direction::Write, &mut memory, &pieces);
        let outcome = handle.transfer(&batch);
        assert_eq!(outcome.bytes, batch.bytes(), "round {round}");
        assert!(outcome.error.is_none(), "round {round}: {outcome:?}");
        handle.close().unwrap();
        assert!(std::fs::read(path).unwrap() == expected, "round {round}");
    }
}

#[test]
fn small_pieces_are_written_correctly() {
    for directory in directories() {
        check_lists(&Mapped, &directory.path().join("mapped"));
        let stores = Arc::new(StoreCount::default());
        let driver = Posix::new().with_interference(stores.clone());
        check_lists(&driver, &directory.path().join("posix"));
        assert!(stores.0.load(Relaxed) > 40, "{stores:?}");
    }
}

/// Only a description that allows reading can be mapped; the handle's own does
/// not change.
#[test]
fn a_write_only_file_is_not_readable_through_the_handle() {
    let directory = tempfile::tempdir().unwrap();
    for driver in [&Mapped as &dyn Driver, &Posix::new()] {
        let handle = driver
            .open(&directory.path().join("file"), &how(Access::Write))
            .unwrap();
        let mut memory = [7; 8];
        let batch = Batch::gather(Direction::Write, &mut memory, &dense(1000));
        assert_eq!(handle.transfer(&batch).into_result().unwrap(), 8000);
        let outcome = handle.transfer(&Batch::read(0, &mut [0; 8]));
        let error = outcome.error.unwrap();
        assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
    }
}

/// The number of stores for one dense list.
fn stores(directory: &Path, how: OpenHow, list: &[(u64, usize, usize)]) -> usize {
    let stores = Arc::new(StoreCount::default());
    let driver = Posix::new().with_interference(stores.clone());
    let handle = driver.open(&directory.join("file"), &how).unwrap();
    let mut memory = [7; 100];
    let batch = Batch::gather(Direction::Write, &mut memory, list);
    assert_eq!(
        handle.transfer(&batch).into_result().unwrap(),
        batch.bytes()
    );
    stores.0.load(Relaxed)
}

#[test]
fn lists_are_stored_only_where_it_helps_and_no_one_objects() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let count = |how, list: &[_]| stores(directory.path(), how, list);
    let plain = how(Access::ReadWrite);
    assert_eq!(count(plain.clone(), &dense(1024)), 1);
    assert_eq!(count(plain.clone(), &dense(1025)), 2);
    assert_eq!(count(plain.clone(), &dense(8)), 0);
    let sparse: Vec<_> = (0..100).map(|at| (at * 2000, 0, 8)).collect();
    assert_eq!(count(plain.clone(), &sparse), 0);
    let contiguous: Vec<_> = (0..1000).map(|at| (at * 8, 0, 8)).collect();
    assert_eq!(count(plain.clone(), &contiguous), 0);

    let visible = plain.clone().scattered(ScatteredWrites::Calls);
    assert_eq!(count(visible, &dense(1024)), 0);
    let visible = plain.clone().asynchronous(AsyncMethod::Pool);
    assert_eq!(count(visible, &dense(1024)), 0);
    if Path::new("/dev/shm") != std::env::temp_dir() {
        let directory = tempfile::tempdir().unwrap();
        let direct = plain.writes(IoMode::Direct);
        assert_eq!(stores(directory.path(), direct, &dense(1024)), 0);
    }
}

#[test]
fn the_driver_tells_which_lists_it_stores() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = directory.path().join("file");
    let handle = open(&Posix::new(), &path);
    assert!(handle.stores_list(1000, 16_000));
    assert!(!handle.stores_list(8, 128));
    assert!(!handle.stores_list(1000, 2_000_000));
    let visible = how(Access::ReadWrite).scattered(ScatteredWrites::Calls);
    let handle = Posix::new().open(&path, &visible).unwrap();
    assert!(!handle.stores_list(1000, 16_000));
}

/// On `tmpfs`, stores to a mapping leave the time of modification unchanged.
#[test]
fn the_modification_time_is_updated() {
    for directory in directories() {
        let path = directory.path().join("file");
        let handle = open(&Posix::new(), &path);
        let mut memory = [7; 8];
        let batch = Batch::gather(Direction::Write, &mut memory, &dense(1000));
        let modified = || {
            handle.transfer(&batch).into_result().unwrap();
            path.metadata().unwrap().modified().unwrap()
        };
        let first = modified();
        std::thread::sleep(Duration::from_millis(50));
        assert!(modified() > first);
    }
}
