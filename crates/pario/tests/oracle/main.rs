//! Random sequences of calls against a naive model of the file.
//!
//! A case draws everything from its seed: how many ranks there are, how the
//! file is opened, the views, buffers and calls. The model says what every
//! call must return and what the file must hold; cases whose outcome depends
//! on timing are not drawn.
//!
//! `PARIO_CASES` sets the number of cases and `PARIO_SEED` the first seed. A
//! failing case is repeated with fewer steps, and the fewest that still fail
//! are printed.

mod access;
mod cases;
mod compare;
mod coverage;
mod drivers;
mod generate;
mod hints;
mod model;
#[path = "../common/probe.rs"]
#[allow(dead_code, reason = "no program uses all of it")]
mod probe;
mod representation;
mod run;
mod scenario;
mod spec;
mod traffic;
mod types;
#[path = "../common/watchdog.rs"]
mod watchdog;

use std::{
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use pario_driver::{Access, CephFs, Create, Driver, OpenHow};
use pario_transport::threads;

use crate::{compare::Check, drivers::DriverKind, run::Trial, watchdog::Watchdog};

const CASES: u64 = 3000;
/// Every access is a request to a server there.
const CASES_ON_SERVERS: u64 = 120;
/// A case that takes longer hangs.
const CASE_TIME_MAX: Duration = Duration::from_secs(60);

/// Lets all ranks of a case live, as threads.
fn world(trial: &Trial<'_>) -> Vec<Check> {
    let nodes = &trial.scenario.nodes;
    let world = threads::World::new(nodes.len() as u32).nodes(nodes);
    world
        .run(|comm| trial.live(&comm))
        .into_iter()
        .map(|life| life.unwrap_or_else(|panic| Err(panic.to_string())))
        .collect()
}

/// Cases run two at a time, so that they also disturb each other.
fn run_cases(count: u64, drivers: &[DriverKind], directory: &Path) {
    let seeds = cases::seeds(count);
    let next = AtomicU64::new(seeds.start);
    let failure = Mutex::new(None);
    let worker = || {
        let watchdog = Watchdog::new(CASE_TIME_MAX);
        let watched = |trial: &Trial<'_>| {
            watchdog.step(trial.path.display().to_string());
            world(trial)
        };
        while failure.lock().expect("no worker panics").is_none() {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if !seeds.contains(&seed) {
                return;
            }
            if let Err(report) = cases::run_seed(seed, drivers, directory, &watched) {
                *failure.lock().expect("no worker panics") = Some(report);
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(worker);
        scope.spawn(worker);
    });
    let failure = failure.into_inner().expect("no worker panics");
    assert!(failure.is_none(), "{}", failure.unwrap_or_default());
}

#[test]
fn every_call_does_what_the_model_says() {
    let directory = tempfile::tempdir().expect("a directory for files");
    run_cases(CASES, &DriverKind::ALL, directory.path());
}

#[test]
#[ignore = "needs a CephFS: cargo xtask ceph"]
fn every_call_does_what_the_model_says_on_cephfs() {
    // Kept open for all cases: a process that closes its last file unmounts, which takes a second.
    let path = format!("/oracle-{}", std::process::id());
    let how = OpenHow::new(Access::Write).create(Create::IfMissing);
    let driver = CephFs::new();
    let kept = driver.open(path.as_ref(), &how).expect("the file opens");
    run_cases(CASES_ON_SERVERS, &[DriverKind::CephFs], Path::new("/"));
    kept.close().expect("nothing was written");
    driver.delete(path.as_ref()).expect("the file exists");
}
