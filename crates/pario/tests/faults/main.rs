//! The fault countdown: the n-th operation of a driver fails, for n = 1, 2, 3
//! and so on until a run meets no fault, through all calls of a file. Never a
//! hang, never a success that isn't, never a byte changed outside of what was
//! asked, and collective calls end in the same way on all ranks.
#![allow(clippy::unwrap_used)] // tests may

mod lens;
mod limits;
mod model;
mod one_rank;
mod player;
mod scenario;
#[path = "../common/watchdog.rs"]
mod watchdog;

use std::{
    fs::{self, DirEntry},
    io,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use model::Model;
use pario::{
    ErrorKind, Rank,
    driver::{
        Access, Around, Batch, Driver, Fault, Faults, Memory, OpenHow, Operation, Posix, Uring,
    },
    threads,
};
use player::Case;
use scenario::{FILE_BYTES, SCENARIOS, Scenario};
use watchdog::Watchdog;

/// How long a thread of the library may keep what it no longer needs.
const LETTING_GO_MAX: Duration = Duration::from_secs(5);
const RUN_MAX: Duration = Duration::from_secs(20);
/// No scenario has more operations than this.
const COUNTDOWN_MAX: u64 = 1000;

/// Where faults come from.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// What the driver is asked goes wrong.
    Around,
    /// The system calls below the POSIX driver go wrong.
    Below,
}

/// How long faults last once they begin.
#[derive(Clone, Copy, Debug)]
enum Lasting {
    Once,
    Forever,
}

impl Lasting {
    /// From one run's number to the next: what fails for good fails in much
    /// the same way a few operations later.
    fn stride(self, nth: u64) -> u64 {
        match self {
            Lasting::Once => 1,
            Lasting::Forever => 1 + nth / 4,
        }
    }
}

/// What goes wrong in a countdown, and the error that must come of it.
#[derive(Clone, Copy, Debug)]
struct Trouble {
    fault: Fault,
    lasting: Lasting,
    operations: &'static [Operation],
    error: Option<ErrorKind>,
}

const EVERYTHING: &[Operation] = Operation::ALL;
/// What a full disk gets in the way of.
const CHANGES: &[Operation] = &[
    Operation::Open,
    Operation::Write,
    Operation::SetSize,
    Operation::Preallocate,
    Operation::Sync,
    Operation::Close,
];

const BROKEN_ONCE: Trouble = Trouble {
    fault: Fault::Error(libc::EIO),
    lasting: Lasting::Once,
    operations: EVERYTHING,
    error: Some(ErrorKind::Io),
};
const BROKEN_FOR_GOOD: Trouble = Trouble {
    lasting: Lasting::Forever,
    ..BROKEN_ONCE
};
const FULL_ONCE: Trouble = Trouble {
    fault: Fault::Partial(libc::ENOSPC),
    lasting: Lasting::Once,
    operations: CHANGES,
    error: Some(ErrorKind::NoSpace),
};
const FULL_FOR_GOOD: Trouble = Trouble {
    lasting: Lasting::Forever,
    ..FULL_ONCE
};
const SHORT: Trouble = Trouble {
    fault: Fault::Short,
    lasting: Lasting::Once,
    operations: EVERYTHING,
    error: None,
};
const INTERRUPTED: Trouble = Trouble {
    fault: Fault::Interruption,
    ..SHORT
};

fn canaries() -> Vec<u8> {
    (0..FILE_BYTES).map(|byte| (byte * 7 + 3) as u8).collect()
}

/// A folder in memory where there is one: thousands of files come and go.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

/// The file as it is, read without faults.
fn contents(driver: &dyn Driver, path: &Path) -> Vec<u8> {
    let file = driver.open(path, &OpenHow::new(Access::Read)).unwrap();
    let mut bytes = vec![0; file.size().unwrap() as usize];
    file.transfer(&Batch::read(0, &mut bytes))
        .into_result()
        .unwrap();
    bytes
}

/// No descriptor of this process leads to a file in the folder of this one,
/// deleted ones too. The thread that carried the last nonblocking operation
/// may take a moment to let go.
fn assert_no_descriptors(path: &Path, name: &str) {
    let folder = path.parent().unwrap();
    let leads_here = |entry: io::Result<DirEntry>| {
        let target = fs::read_link(entry.unwrap().path()).ok()?;
        target.starts_with(folder).then_some(target)
    };
    let give_up = Instant::now() + LETTING_GO_MAX;
    loop {
        let descriptors = fs::read_dir("/proc/self/fd").unwrap();
        let open: Vec<_> = descriptors.filter_map(leads_here).collect();
        if open.is_empty() {
            return;
        }
        assert!(Instant::now() < give_up, "{name}: {open:?} are still open");
        thread::yield_now();
    }
}

fn fill(driver: &dyn Driver, path: &Path) {
    let how = OpenHow::new(Access::Write).create(pario::driver::Create::IfMissing);
    let file = driver.open(path, &how).unwrap();
    file.set_size(0).unwrap();
    file.transfer(&Batch::write(0, &canaries()))
        .into_result()
        .unwrap();
}

/// One run of a scenario, with the n-th operation going wrong.
struct Run<'a> {
    case: Case<'a>,
    inner: &'a dyn Driver,
    faults: Faults,
    name: String,
}

/// All runs of a scenario.
#[derive(Clone, Copy)]
struct Countdown<'a> {
    scenario: &'a Scenario,
    ranks: u32,
    inner: &'a Arc<dyn Driver>,
    place: Place,
    trouble: Trouble,
    path: &'a Path,
}

impl<'a> Countdown<'a> {
    fn name(&self, nth: u64) -> String {
        let Countdown {
            scenario,
            ranks,
            inner,
            place,
            trouble,
            ..
        } = self;
        let (scenario, driver) = (scenario.name, inner.name());
        format!("{scenario}, {ranks} ranks, {place:?} {driver}, {trouble:?}, n = {nth}")
    }

    fn prepare(&self, nth: u64) -> Run<'a> {
        fill(&**self.inner, self.path);
        let faults = Faults::new();
        let driver: Arc<dyn Driver> = match self.place {
            Place::Around => Arc::new(Around::new(self.inner.clone(), faults.clone())),
            Place::Below => Arc::new(Posix::new().with_interference(Arc::new(faults.clone()))),
        };
        let trouble = self.trouble;
        match trouble.lasting {
            Lasting::Once => faults.fail_nth(nth, trouble.operations, trouble.fault),
            Lasting::Forever => faults.fail_from_nth(nth, trouble.operations, trouble.fault),
        }
        let case = Case {
            scenario: self.scenario,
            driver,
            path: self.path,
            model: Mutex::new(Model::new(canaries())),
            error: trouble.error,
            failures: AtomicU64::new(0),
        };
        Run {
            case,
            inner: &**self.inner,
            faults,
            name: self.name(nth),
        }
    }

    /// Goes on until a run meets no fault; returns how many runs that were.
    /// The ranks stay for all of them.
    fn run(&self, watchdog: &Watchdog) -> u64 {
        let (last, runs) = (AtomicU64::new(0), AtomicU64::new(0));
        let current = Mutex::new(None);
        let results = threads::run(self.ranks, |comm| {
            let mut nth = 0;
            while nth < COUNTDOWN_MAX {
                nth += self.trouble.lasting.stride(nth);
                if comm.rank() == Rank(0) {
                    last.store(nth, Ordering::Relaxed);
                    runs.fetch_add(1, Ordering::Relaxed);
                    watchdog.step(self.name(nth));
                    *current.lock().unwrap() = Some(Arc::new(self.prepare(nth)));
                }
                comm.barrier().unwrap();
                let run = current.lock().unwrap().clone().expect("rank 0 prepared it");
                run.case.play(&comm);
                comm.barrier().unwrap();
                if comm.rank() == Rank(0) {
                    run.check();
                }
                if run.faults.fired() == 0 {
                    return;
                }
            }
            panic!("no end of operations");
        });
        let name = self.name(last.into_inner());
        let panics: Vec<_> = results.into_iter().filter_map(Result::err).collect();
        assert!(panics.is_empty(), "{name}: {panics:#?}");
        runs.into_inner()
    }
}

impl Run<'_> {
    /// What must hold once all ranks are through.
    fn check(&self) {
        let Run { case, name, .. } = self;
        let found = contents(self.inner, case.path);
        let model = case.model.lock().unwrap();
        assert_eq!(model.wrong_size(found.len() as u64), None, "{name}");
        assert_eq!(model.wrong_bytes(0.., &found), None, "{name}");
        assert_no_descriptors(case.path, name);
        let failed = case.failures.load(Ordering::Relaxed) > 0;
        let told = self.faults.fired() > 0 && case.error.is_some();
        assert_eq!(failed, told, "{name}: someone must be told of a fault");
    }
}

/// All scenarios with each kind of trouble on one driver.
fn count_down(inner: Arc<dyn Driver>, place: Place, troubles: &[Trouble]) {
    let watchdog = Watchdog::new(RUN_MAX);
    let folder = folder();
    let path = folder.path().join("file");
    for trouble in troubles {
        let mut runs = 0;
        for scenario in SCENARIOS {
            for ranks in scenario.ranks {
                let countdown = Countdown {
                    scenario,
                    ranks: *ranks,
                    inner: &inner,
                    place,
                    trouble: *trouble,
                    path: &path,
                };
                runs += countdown.run(&watchdog);
            }
        }
        println!("{} {place:?}: {runs} runs with {trouble:?}", inner.name());
    }
}

const AROUND: &[Trouble] = &[BROKEN_ONCE, BROKEN_FOR_GOOD, FULL_ONCE, SHORT];
const BELOW: &[Trouble] = &[BROKEN_ONCE, FULL_ONCE, FULL_FOR_GOOD, SHORT, INTERRUPTED];

#[test]
fn countdown_of_posix() {
    count_down(Arc::new(Posix::new()), Place::Around, AROUND);
}

#[test]
fn countdown_of_system_calls_below_posix() {
    count_down(Arc::new(Posix::new()), Place::Below, BELOW);
}

#[test]
fn countdown_of_uring() {
    count_down(Arc::new(Uring), Place::Around, AROUND);
}

#[test]
fn countdown_of_memory() {
    count_down(Arc::new(Memory::separate()), Place::Around, AROUND);
}
