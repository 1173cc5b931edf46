//! Several faults of several kinds in one run, drawn at random.

use std::{sync::Arc, time::Duration};

use pario::ErrorKind;
use pario_driver::{Driver, Fault, Faults, Mapped, Memory, Operation, Posix, Uring};

use crate::{
    ground::directory,
    run::{Place, Run, Setting},
    scenario::SCENARIOS,
    seeds::seeds,
    watchdog::Watchdog,
};

const RUN_MAX: Duration = Duration::from_secs(60);
const FAULTS_MAX: usize = 6;
/// Most scenarios have fewer operations than this on three ranks.
const OPERATIONS: u64 = 80;

fn faults(rng: &mut fastrand::Rng) -> Faults {
    let kinds = [
        Fault::Error(libc::EIO),
        Fault::Error(libc::ENOSPC),
        Fault::Partial(libc::ENOSPC),
        Fault::Partial(libc::EIO),
        Fault::Short,
        Fault::Interruption,
    ];
    let faults = Faults::new();
    for _ in 0..rng.usize(1..=FAULTS_MAX) {
        let operations = match rng.u8(0..3) {
            0 => Operation::ALL,
            1 => Operation::TRANSFERS,
            _ => std::slice::from_ref(rng.choice(Operation::ALL).unwrap()),
        };
        let fault = *rng.choice(&kinds).unwrap();
        faults.fail_nth(rng.u64(1..=OPERATIONS), operations, fault);
    }
    faults
}

#[test]
fn several_faults_in_a_run_keep_the_promises_too() {
    let watchdog = Watchdog::new(RUN_MAX);
    let directory = directory();
    let path = directory.path().join("file");
    let drivers: [(Arc<dyn Driver>, Place); 5] = [
        (Arc::new(Posix::new()), Place::WrappedDriver),
        (Arc::new(Posix::new()), Place::Below),
        (Arc::new(Uring), Place::WrappedDriver),
        (Arc::new(Mapped), Place::WrappedDriver),
        (Arc::new(Memory::separate()), Place::WrappedDriver),
    ];
    for seed in seeds(400) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let scenario = rng.choice(SCENARIOS).unwrap();
        let (inner, place) = rng.choice(&drivers).unwrap();
        let setting = Setting {
            scenario,
            ranks: *rng.choice(scenario.ranks).unwrap(),
            inner,
            place: *place,
            path: &path,
        };
        let name = format!("seed {seed}: {}", setting.name());
        watchdog.step(name.clone());
        let errors = vec![ErrorKind::Io, ErrorKind::NoSpace];
        let run = Run::new(&setting, faults(&mut rng), errors, name.clone());
        let results = setting.world().run(|comm| run.case.play(&comm));
        let panics: Vec<_> = results.into_iter().filter_map(Result::err).collect();
        assert!(panics.is_empty(), "{name}: {panics:#?}");
        run.check_file();
    }
}
