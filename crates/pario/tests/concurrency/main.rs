//! Ranks and threads that use one file at the same time: nothing is lost, and
//! atomic mode is atomic. `processes.rs` beside this file does the same with
//! ranks that are processes.
#![allow(clippy::unwrap_used)] // tests may

mod atomic;
mod careless;
mod checker;
mod directories;
mod disjoint;
mod holes;
mod leases;
mod neighbour;
mod requests;
#[path = "../common/seeds.rs"]
mod seeds;
mod serial;
mod several_threads;
#[path = "../common/watchdog.rs"]
mod watchdog;
mod ways;

use std::{
    path::Path,
    sync::{Arc, atomic::AtomicU64, atomic::Ordering},
    time::Duration,
};

use careless::{Careless, Locks};
use directories::directories;
use pario::{Atomicity, File, Info, Mode};
use pario_driver::{Driver, FileSystem, Mapped, Memory, Posix, Uring};
use pario_transport::{Transport, threads};
use seeds::seeds;
use tempfile::TempDir;
use watchdog::Watchdog;

pub(crate) const NEW: Mode = Mode::CREATE.union(Mode::READ_WRITE);
pub(crate) const STEP_MAX: Duration = Duration::from_secs(60);

/// Makes a driver for one case: files in memory are the case's own.
type Make = fn() -> Arc<dyn Driver>;

const DRIVERS: [(&str, Make); 5] = [
    ("posix", || Arc::new(Posix::new())),
    ("requests", || {
        Arc::new(Posix::new().assuming(FileSystem::Gluster))
    }),
    ("uring", || Arc::new(Uring)),
    ("mapped", || Arc::new(Mapped)),
    ("mem", || Arc::new(Memory::separate())),
];

/// Runs `work` on thread ranks with a fresh file behind a driver; returns the
/// first complaint.
fn complaint(
    ranks: u32,
    driver: &Arc<dyn Driver>,
    mode: Mode,
    work: impl Fn(&Arc<dyn Transport>, disjoint::Open<'_>) -> pario::Result<Option<String>> + Sync,
) -> Option<String> {
    complaint_in(&tempfile::tempdir().unwrap(), ranks, driver, mode, work)
}

/// The same with a fresh file in a directory.
fn complaint_in(
    directory: &TempDir,
    ranks: u32,
    driver: &Arc<dyn Driver>,
    mode: Mode,
    work: impl Fn(&Arc<dyn Transport>, disjoint::Open<'_>) -> pario::Result<Option<String>> + Sync,
) -> Option<String> {
    let directory = tempfile::tempdir_in(directory).unwrap();
    let path = directory.path().join("file");
    let open = |comm: &Arc<dyn Transport>, info: &Info| {
        File::open_with(comm, driver.clone(), Path::new(&path), mode, info)
    };
    let results = threads::run(ranks, |comm| work(&comm, &open).unwrap());
    let complaints = results
        .into_iter()
        .map(|result| result.expect("no rank fails"));
    complaints.flatten().next()
}

/// Every combination of the hints that are the same on all ranks, and of the
/// methods to write. With none given, each rank takes one of its own.
fn hint_combinations() -> Vec<disjoint::Hints> {
    let mut combinations: Vec<disjoint::Hints> = vec![Vec::new()];
    for method in ["direct", "list", "sieve", "automatic"] {
        combinations.push(vec![("pario_write_method", method.to_owned())]);
    }
    for (name, values) in [
        ("pario_rmw", ["never", "locked"]),
        ("direct_write", ["false", "true"]),
        ("direct_read", ["false", "true"]),
        ("pario_async", ["pool", "uring"]),
    ] {
        let with = |hints: &disjoint::Hints, value: &str| {
            let mut hints = hints.clone();
            hints.push((name, value.to_owned()));
            hints
        };
        combinations = combinations
            .iter()
            .flat_map(|hints| values.map(|value| with(hints, value)))
            .collect();
    }
    combinations
}

#[test]
fn disjoint_interleaved_writes_lose_nothing_with_any_driver_way_and_hint() {
    let watchdog = Watchdog::new(STEP_MAX);
    for seed in seeds(1) {
        for (name, make) in DRIVERS {
            for (index, hints) in hint_combinations().iter().enumerate() {
                let case = format!("seed {seed}: {name}, {hints:?}");
                watchdog.step(case.clone());
                let lost = complaint(2 + index as u32 % 3, &make(), NEW, |comm, open| {
                    disjoint::work(comm, open, hints, seed * 1000 + index as u64)
                });
                assert_eq!(lost, None, "{case}");
            }
        }
    }
}

#[test]
fn files_that_no_one_else_opens_lose_nothing_either() {
    let watchdog = Watchdog::new(STEP_MAX);
    for seed in seeds(5) {
        for (name, make) in DRIVERS {
            let case = format!("seed {seed}: {name}");
            watchdog.step(case.clone());
            let lost = complaint(3, &make(), NEW | Mode::UNIQUE_OPEN, |comm, open| {
                disjoint::work(comm, open, &Vec::new(), seed)
            });
            assert_eq!(lost, None, "{case}");
            let lost = complaint(1, &make(), NEW | Mode::UNIQUE_OPEN, |comm, open| {
                disjoint::work(comm, open, &Vec::new(), seed)
            });
            assert_eq!(lost, None, "{case}, one rank");
        }
    }
}

fn locked() -> disjoint::Hints {
    vec![("pario_rmw", "locked".to_owned())]
}

#[test]
fn sieving_ranks_and_direct_ones_lose_nothing_where_others_get_in_between() {
    let watchdog = Watchdog::new(STEP_MAX);
    for seed in seeds(10) {
        for (index, driver) in [
            Careless::over(Memory::separate(), Locks::Kept),
            Careless::over(Posix::new(), Locks::Kept),
        ]
        .iter()
        .enumerate()
        {
            watchdog.step(format!("seed {seed}, driver {index}"));
            let lost = complaint(3, driver, NEW, |comm, open| {
                disjoint::work(comm, open, &locked(), seed)
            });
            assert_eq!(lost, None, "seed {seed}, driver {index}");
        }
    }
}

/// Some ranks rewrite ranges under the lease that they have together, others write one piece
/// after the other; or all of them rewrite.
#[test]
fn ranks_that_share_a_lease_lose_nothing() {
    let watchdog = Watchdog::new(STEP_MAX);
    let hints = vec![("pario_rmw", "automatic".to_owned())];
    let mut sieving = hints.clone();
    sieving.push(("pario_write_method", "sieve".to_owned()));
    let drivers: [(&str, Arc<dyn Driver>); 4] = [
        ("posix", Arc::new(Posix::new())),
        ("uring", Arc::new(Uring)),
        ("mapped", Arc::new(Mapped)),
        ("careless", Careless::over(Posix::new(), Locks::Kept)),
    ];
    for directory in directories() {
        for seed in seeds(20) {
            for (name, driver) in &drivers {
                let case = format!("seed {seed}: {name}, {directory:?}");
                watchdog.step(case.clone());
                let ranks = 2 + seed as u32 % 3;
                let lost = complaint_in(&directory, ranks, driver, NEW, |comm, open| {
                    disjoint::work(comm, open, &hints, seed)
                });
                assert_eq!(lost, None, "{case}");
                let lost = complaint_in(&directory, ranks, driver, NEW, |comm, open| {
                    disjoint::work_at_once(comm, open, &sieving, seed)
                });
                assert_eq!(lost, None, "{case}, all of them rewrite");
            }
        }
    }
}

#[test]
fn the_test_of_disjoint_writes_can_fail() {
    let losing = (0..20).any(|seed| {
        let driver = Careless::over(Memory::separate(), Locks::Ignored);
        let lost = complaint(3, &driver, NEW, |comm, open| {
            disjoint::work(comm, open, &locked(), seed)
        });
        lost.is_some()
    });
    assert!(losing, "without locks, read-modify-write must lose bytes");
}

/// Hints for a case of atomic mode.
fn atomic_info(seed: u64) -> Info {
    let mut rng = fastrand::Rng::with_seed(seed);
    let methods = ["direct", "list", "sieve", "automatic"];
    let mut choose = |values: &[&'static str]| *rng.choice(values).unwrap();
    let pairs = [
        ("pario_write_method", choose(&methods)),
        ("pario_read_method", choose(&methods)),
        ("pario_rmw", choose(&["never", "locked"])),
        ("pario_async", choose(&["pool", "uring"])),
        ("pario_list_pieces", choose(&["1", "1024"])),
        ("ind_wr_buffer_size", choose(&["16", "5000", "524288"])),
        ("ind_rd_buffer_size", choose(&["16", "5000", "524288"])),
        ("direct_write", choose(&["false", "true"])),
    ];
    Info::from_pairs(pairs).unwrap()
}

#[test]
fn atomic_mode_has_a_serial_order_with_every_driver() {
    const ROUNDS: u64 = 25;
    let watchdog = Watchdog::new(STEP_MAX);
    for seed in seeds(8) {
        for (name, make) in DRIVERS {
            watchdog.step(format!("seed {seed}: {name}"));
            let info = atomic_info(seed);
            let ranks = 2 + seed as u32 % 3;
            let torn = complaint(ranks, &make(), NEW, |comm, open| {
                atomic::work(comm, open, &info, Atomicity::Atomic, (seed, ROUNDS))
            });
            assert_eq!(torn, None, "{name}");
        }
    }
}

/// One call per piece, on a driver that lets others in before each.
fn torn_apart(atomicity: Atomicity, locks: Locks, seed: u64) -> Option<String> {
    const ROUNDS: u64 = 30;
    let methods = [
        ("pario_write_method", "direct"),
        ("pario_read_method", "direct"),
    ];
    let info = Info::from_pairs(methods).unwrap();
    let driver = Careless::over(Memory::separate(), locks);
    complaint(4, &driver, NEW, |comm, open| {
        atomic::work(comm, open, &info, atomicity, (seed, ROUNDS))
    })
}

#[test]
fn atomic_mode_has_a_serial_order_where_others_get_in_between() {
    let _watchdog = Watchdog::new(STEP_MAX);
    for seed in seeds(3) {
        assert_eq!(torn_apart(Atomicity::Atomic, Locks::Kept, seed), None);
    }
}

#[test]
fn the_checker_finds_no_serial_order_without_atomic_mode_or_without_locks() {
    let _watchdog = Watchdog::new(STEP_MAX);
    assert!(torn_apart(Atomicity::NonAtomic, Locks::Kept, 1).is_some());
    assert!(torn_apart(Atomicity::Atomic, Locks::Ignored, 1).is_some());
}

#[test]
fn a_read_of_a_contiguous_block_sees_one_writer() {
    const BLOCK: usize = 200_000;
    let _watchdog = Watchdog::new(STEP_MAX);
    for (name, make) in DRIVERS {
        let reads = AtomicU64::new(0);
        let torn = complaint(4, &make(), NEW, |comm, open| {
            let file = open(comm, &Info::new())?;
            file.set_atomicity(Atomicity::Atomic)?;
            let mut seen = vec![0u8; BLOCK];
            for round in 0..20u8 {
                file.write_at(0, &vec![1 + round * 4 + comm.rank().0 as u8; BLOCK])?;
                file.read_at(0, &mut seen)?;
                reads.fetch_add(1, Ordering::Relaxed);
                if let Some(at) = seen.iter().position(|byte| *byte != seen[0]) {
                    return Ok(Some(format!("byte {at} is another writer's")));
                }
            }
            file.close()?;
            Ok(None)
        });
        assert_eq!(torn, None, "{name}");
        assert_eq!(reads.into_inner(), 80);
    }
}
