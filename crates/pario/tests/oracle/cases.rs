//! Many seeds, and the fewest steps of one that fails.

use std::{ops::Range, path::Path};

use fastrand::Rng;
use pario_driver::Log;

use crate::{
    compare::Check,
    drivers::DriverKind,
    generate,
    model::Model,
    representation,
    run::Trial,
    scenario::{Action, Scenario, Step},
};

/// How often a case is repeated to see whether it fails every time.
const REPEATS: usize = 3;

/// Lets all ranks live and says what came of each.
pub(crate) type World<'a> = dyn Fn(&Trial<'_>) -> Vec<Check> + 'a;

fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    let number = value.parse();
    Some(number.unwrap_or_else(|_| panic!("{name}={value} is not a number")))
}

/// The seeds to run: `PARIO_CASES` or `count` of them, from `PARIO_SEED` on. A
/// seed alone asks for that case.
pub(crate) fn seeds(count: u64) -> Range<u64> {
    let seed = setting("PARIO_SEED");
    let count = setting("PARIO_CASES").unwrap_or(if seed.is_some() { 1 } else { count });
    let first = seed.unwrap_or(1);
    first..first + count
}

/// Runs the case of a seed; the error says how to repeat it, and the fewest
/// steps of it that fail.
pub(crate) fn run_seed(
    seed: u64,
    drivers: &[DriverKind],
    directory: &Path,
    world: &World<'_>,
) -> Check {
    representation::register_all();
    let scenario = generate::scenario(&mut Rng::with_seed(seed), drivers);
    let path = directory.join(format!("PARIO_SEED={seed}"));
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
        log: Log::new(),
    };
    trial.run(world)
}

/// Drops steps, ranks, actions and hints, last first, as long as the rest fails too.
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
    for rank in (0..scenario.ranks()).rev() {
        if scenario.ranks() > 1 {
            try_without(&mut scenario, &|fewer| drop_rank(fewer, rank));
        }
    }
    for index in (0..scenario.opening.hints.len()).rev() {
        try_without(&mut scenario, &|fewer| {
            drop(fewer.opening.hints.remove(index))
        });
    }
    for step in 0..scenario.steps.len() {
        for index in (0..parts(&scenario, step)).rev() {
            try_without(&mut scenario, &|fewer| drop_part(fewer, step, index));
        }
        for rank in 0..scenario.ranks() {
            for action in (0..actions(&mut scenario, step, rank).map_or(0, |all| all.len())).rev() {
                try_without(&mut scenario, &|fewer| {
                    actions(fewer, step, rank).map(|all| all.remove(action));
                });
            }
        }
    }
    scenario
}

fn drop_rank(scenario: &mut Scenario, rank: usize) {
    scenario.nodes.remove(rank);
    for step in &mut scenario.steps {
        match step {
            Step::Each(plans) => drop(plans.remove(rank)),
            Step::Together(accesses) => drop(accesses.remove(rank)),
            Step::InFlight { calls, .. } => {
                calls.iter_mut().for_each(|call| drop(call.remove(rank)));
            }
            Step::SetView(views) => drop(views.remove(rank)),
            _ => {}
        }
    }
}

/// What a collective step can go without: data of a rank, a call, a hint.
fn parts(scenario: &Scenario, step: usize) -> usize {
    match &scenario.steps[step] {
        Step::Together(accesses) => accesses.len(),
        Step::InFlight { calls, .. } => calls.len(),
        Step::SetInfo(hints) => hints.len(),
        _ => 0,
    }
}

fn drop_part(scenario: &mut Scenario, step: usize, index: usize) {
    match &mut scenario.steps[step] {
        Step::Together(accesses) => accesses[index].memory.count = 0,
        Step::InFlight { calls, .. } => drop(calls.remove(index)),
        Step::SetInfo(hints) => drop(hints.remove(index)),
        _ => unreachable!("other steps have no such parts"),
    }
}

/// What a rank does in a step.
fn actions(scenario: &mut Scenario, step: usize, rank: usize) -> Option<&mut Vec<Action>> {
    match &mut scenario.steps[step] {
        Step::Each(plans) => Some(&mut plans[rank].actions),
        _ => None,
    }
}
