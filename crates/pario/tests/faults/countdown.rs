//! The countdown: for n = 1, 2, 3, … the n-th operation goes wrong, until a
//! run meets no fault.

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use pario::ErrorKind;
use pario_driver::{CephFs, Driver, Fault, Faults, Memory, Operation, Posix, Uring};
use pario_transport::Rank;

use crate::{
    ground::directory,
    methods,
    run::{Place, Run, Setting},
    scenario::{SCENARIOS, Scenario},
    watchdog::Watchdog,
};

const RUN_MAX: Duration = Duration::from_secs(60);
/// No scenario has more operations than this.
const COUNTDOWN_MAX: u64 = 1000;

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
const ALWAYS_SHORT: Trouble = Trouble {
    lasting: Lasting::Forever,
    ..SHORT
};
const INTERRUPTED: Trouble = Trouble {
    fault: Fault::Interruption,
    ..SHORT
};
const ALWAYS_INTERRUPTED: Trouble = Trouble {
    lasting: Lasting::Forever,
    ..INTERRUPTED
};

impl Trouble {
    /// The faults of the run in which the n-th operation goes wrong.
    fn faults(&self, nth: u64) -> Faults {
        let faults = Faults::new();
        match self.lasting {
            Lasting::Once => faults.fail_nth(nth, self.operations, self.fault),
            Lasting::Forever => faults.fail_from_nth(nth, self.operations, self.fault),
        }
        faults
    }
}

/// All runs of a scenario with one kind of trouble; returns how many they
/// were. The ranks stay for all of them.
fn count_down_scenario(setting: &Setting<'_>, trouble: Trouble, watchdog: &Watchdog) -> u64 {
    let (last, runs) = (AtomicU64::new(0), AtomicU64::new(0));
    let name = |nth| format!("{}, {trouble:?}, n = {nth}", setting.name());
    let current = Mutex::new(None);
    let results = setting.world().run(|comm| {
        let root = comm.rank() == Rank(0);
        let mut nth = 0;
        while nth < COUNTDOWN_MAX {
            nth += trouble.lasting.stride(nth);
            if root {
                watchdog.step(name(nth));
                last.store(nth, Ordering::Relaxed);
                runs.fetch_add(1, Ordering::Relaxed);
                let errors = trouble.error.into_iter().collect();
                let run = Run::new(setting, trouble.faults(nth), errors, name(nth));
                *current.lock().unwrap() = Some(Arc::new(run));
            }
            comm.barrier().unwrap();
            let run = current.lock().unwrap().clone();
            let run = run.expect("rank 0 prepared it");
            run.case.play(&comm);
            comm.barrier().unwrap();
            if root {
                run.check_file();
                run.check_telling();
            }
            if run.faults.fired() == 0 {
                return;
            }
        }
        panic!("no end of operations");
    });
    let panics: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    let name = name(last.into_inner());
    assert!(panics.is_empty(), "{name}: {panics:#?}");
    runs.into_inner()
}

/// All scenarios with each kind of trouble on one driver.
fn count_down(scenarios: &[Scenario], inner: Arc<dyn Driver>, place: Place, troubles: &[Trouble]) {
    let directory = directory();
    let path = directory.path().join("file");
    count_down_at(&path, scenarios, inner, place, troubles);
}

fn count_down_at(
    path: &Path,
    scenarios: &[Scenario],
    inner: Arc<dyn Driver>,
    place: Place,
    troubles: &[Trouble],
) {
    let watchdog = Watchdog::new(RUN_MAX);
    for trouble in troubles {
        let mut runs = 0;
        for scenario in scenarios {
            for ranks in scenario.ranks {
                let setting = Setting {
                    scenario,
                    ranks: *ranks,
                    inner: &inner,
                    place,
                    path,
                };
                runs += count_down_scenario(&setting, *trouble, &watchdog);
            }
        }
        println!("{} {place:?}: {runs} runs with {trouble:?}", inner.name());
    }
}

/// The wrapper itself continues what it cut short or interrupted.
const AROUND: &[Trouble] = &[
    BROKEN_ONCE,
    BROKEN_FOR_GOOD,
    FULL_ONCE,
    ALWAYS_SHORT,
    ALWAYS_INTERRUPTED,
];
/// The driver must continue; an interruption for ever would be the end of it.
const BELOW: &[Trouble] = &[
    BROKEN_ONCE,
    FULL_ONCE,
    FULL_FOR_GOOD,
    SHORT,
    ALWAYS_SHORT,
    INTERRUPTED,
];

#[test]
fn countdown_of_posix() {
    count_down(
        SCENARIOS,
        Arc::new(Posix::new()),
        Place::WrappedDriver,
        AROUND,
    );
}

#[test]
fn countdown_of_system_calls_below_posix() {
    count_down(SCENARIOS, Arc::new(Posix::new()), Place::Below, BELOW);
}

#[test]
fn countdown_of_uring() {
    count_down(SCENARIOS, Arc::new(Uring), Place::WrappedDriver, AROUND);
}

#[test]
fn countdown_of_memory() {
    count_down(
        SCENARIOS,
        Arc::new(Memory::separate()),
        Place::WrappedDriver,
        AROUND,
    );
}

/// A few scenarios: every operation is a request to a server.
#[test]
#[ignore = "needs a CephFS: cargo xtask ceph"]
fn countdown_of_cephfs() {
    const SCENARIOS_ON_SERVERS: usize = 3;
    let path = format!("/countdown-{}", std::process::id());
    let inner = Arc::new(CephFs::new());
    let scenarios = &SCENARIOS[..SCENARIOS_ON_SERVERS];
    let around = Place::WrappedDriver;
    count_down_at(
        path.as_ref(),
        scenarios,
        inner,
        around,
        &[BROKEN_ONCE, FULL_ONCE],
    );
}

/// What methods of collective calls meet.
const METHODS: &[Trouble] = &[BROKEN_ONCE, BROKEN_FOR_GOOD, FULL_ONCE];

#[test]
fn countdown_of_every_collective_method_in_memory() {
    let inner = Arc::new(Memory::separate());
    count_down(&methods::scenarios(), inner, Place::WrappedDriver, METHODS);
}

#[test]
fn countdown_of_every_collective_method_on_posix() {
    let inner = Arc::new(Posix::new());
    count_down(&methods::scenarios(), inner, Place::Below, &[FULL_FOR_GOOD]);
}
