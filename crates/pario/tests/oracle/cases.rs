//! Many seeds, and the fewest steps of one that fails.

use std::{
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use fastrand::Rng;

use crate::{
    generate,
    model::Model,
    representation,
    run::{Check, Trial},
    scenario::{Action, Carrier, Scenario, Step},
    watchdog::Watchdog,
};

/// A case that takes longer hangs.
const CASE_TIME_MAX: Duration = Duration::from_secs(60);
/// How often a case is repeated to see whether it fails every time.
const REPEATS: usize = 3;

/// Lets all ranks live and says what came of each.
pub(crate) type World<'a> = dyn Fn(u32, &Trial<'_>) -> Vec<Check> + 'a;

/// The seeds to run.
pub(crate) struct Cases {
    first: u64,
    count: u64,
}

fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    let number = value.parse();
    Some(number.unwrap_or_else(|_| panic!("{name}={value} is not a number")))
}

impl Cases {
    pub(crate) fn from_environment(count: u64) -> Cases {
        let seed = setting("PARIO_SEED");
        // A seed alone asks for that case.
        let count = setting("PARIO_CASES").unwrap_or(if seed.is_some() { 1 } else { count });
        Cases {
            first: seed.unwrap_or(1),
            count,
        }
    }

    /// Runs them on two threads, so that cases also disturb each other, and
    /// panics with the first that fails.
    pub(crate) fn run(
        &self,
        carriers: &[Carrier],
        world: impl Fn(u32, &Trial<'_>) -> Vec<Check> + Sync,
    ) {
        representation::register_all();
        let folder = tempfile::tempdir().expect("a folder for files");
        let next = AtomicU64::new(self.first);
        let failure = Mutex::new(None);
        let worker = || {
            let watchdog = Watchdog::new(CASE_TIME_MAX);
            let timed = |ranks: u32, trial: &Trial<'_>| {
                watchdog.step(trial.path.display().to_string());
                world(ranks, trial)
            };
            while failure.lock().expect("no worker panics").is_none() {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= self.first + self.count {
                    return;
                }
                if let Err(report) = run_seed(seed, carriers, folder.path(), &timed) {
                    *failure.lock().expect("no worker panics") = Some(report);
                }
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(worker);
            scope.spawn(worker);
        });
        if let Some(report) = failure.into_inner().expect("no worker panics") {
            panic!("{report}");
        }
    }

    /// Runs them one after the other on this thread, for worlds that fork.
    #[allow(dead_code, reason = "used by the binary that forks")]
    pub(crate) fn run_alone(&self, carriers: &[Carrier], world: &World<'_>) -> Check {
        representation::register_all();
        let folder = tempfile::tempdir().expect("a folder for files");
        let mut seeds = self.first..self.first + self.count;
        seeds.try_for_each(|seed| run_seed(seed, carriers, folder.path(), world))
    }
}

fn run_seed(seed: u64, carriers: &[Carrier], folder: &Path, world: &World<'_>) -> Check {
    let scenario = generate::scenario(&mut Rng::with_seed(seed), carriers);
    let path = folder.join(format!("PARIO_SEED={seed}"));
    let Err(why) = check(&scenario, &path, world) else {
        return Ok(());
    };
    let fails = |scenario: &Scenario| {
        Model::run(scenario).is_some()
            && (0..REPEATS).any(|_| check(scenario, &path, world).is_err())
    };
    let least = shrink(scenario.clone(), fails);
    let why_least = check(&least, &path, world).err();
    Err(format!(
        "repeat with PARIO_SEED={seed}\n{why}\nof {} steps these fail ({}):\n{least:#?}",
        scenario.steps.len(),
        why_least.unwrap_or_else(|| "not every time".into()),
    ))
}

fn check(scenario: &Scenario, path: &Path, world: &World<'_>) -> Check {
    let (outcomes, last) = Model::run(scenario).expect("scenarios do not depend on timing");
    let trial = Trial {
        scenario,
        outcomes,
        last,
        path,
    };
    trial.run(world)
}

/// Drops steps, actions and hints, last first, as long as the rest fails too.
fn shrink(mut scenario: Scenario, fails: impl Fn(&Scenario) -> bool) -> Scenario {
    let try_without = |scenario: &mut Scenario, drop: &dyn Fn(&mut Scenario)| {
        let mut fewer = scenario.clone();
        drop(&mut fewer);
        if fails(&fewer) {
            *scenario = fewer;
        }
    };
    for index in (0..scenario.steps.len()).rev() {
        try_without(&mut scenario, &|fewer| drop(fewer.steps.remove(index)));
    }
    for index in (0..scenario.opening.hints.len()).rev() {
        try_without(&mut scenario, &|fewer| {
            drop(fewer.opening.hints.remove(index))
        });
    }
    for step in 0..scenario.steps.len() {
        for rank in 0..scenario.ranks as usize {
            for action in (0..actions(&mut scenario, step, rank).map_or(0, |all| all.len())).rev() {
                try_without(&mut scenario, &|fewer| {
                    actions(fewer, step, rank).map(|all| all.remove(action));
                });
            }
        }
    }
    scenario
}

/// What a rank does in a step.
fn actions(scenario: &mut Scenario, step: usize, rank: usize) -> Option<&mut Vec<Action>> {
    match &mut scenario.steps[step] {
        Step::Each(plans) => Some(&mut plans[rank].actions),
        _ => None,
    }
}
