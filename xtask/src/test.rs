//! Every test of the project, in one command.

use std::time::{Duration, Instant};

use crate::shell::{self, Outcome, cargo};
use crate::{ceph, hosts, nfs, readme, tools};

/// The fuzz targets' directory.
const FUZZ_DIRECTORY: &str = "crates/layout/fuzz";

/// How much to run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// For every change: a few minutes.
    Normal,
    /// For a release: hundreds of thousands of random cases, long fuzzing.
    Long,
    /// Also for a release: every program under every MPI and with many numbers of ranks.
    Full,
}

impl Effort {
    /// Random cases per property test; `None` leaves each test its default.
    fn cases(self) -> Option<u32> {
        match self {
            Effort::Normal | Effort::Full => None,
            Effort::Long => Some(300_000),
        }
    }

    /// How long a test may take: test programs print nothing in the meantime.
    fn silence_max(self) -> Duration {
        match self {
            Effort::Normal => Duration::from_secs(12 * 60),
            Effort::Long | Effort::Full => Duration::from_secs(3 * 60 * 60),
        }
    }

    /// Shared by all fuzz targets.
    fn fuzz_time(self) -> Duration {
        match self {
            Effort::Normal | Effort::Full => Duration::from_secs(30),
            Effort::Long => Duration::from_secs(600),
        }
    }
}

/// Minutes that a long run spends on random cases under real MPIs.
const LONG_MINUTES: &str = "60";

/// Schedules that a long run tries in each test of the exchange protocol.
const SCHEDULES: &str = "10000000";

/// Runs random cases under real MPIs for that many minutes in total, for hosts and ranks that match
/// `name`.
pub(crate) fn fuzz_mpi(minutes: &str, name: &str) -> Outcome {
    if minutes.parse::<u64>().is_err() {
        return Err(format!("`{minutes}` is not a number of minutes"));
    }
    shell::run(cargo(&["build", "--release"]))?;
    let mut command = cargo(&["test", "--package", "pario-dropin", "--test", "hosts"]);
    command.args(["--", "--nocapture", name]);
    command.env("PARIO_FUZZ_MINUTES", minutes);
    shell::run(command)
}

/// The results so far.
#[derive(Default)]
struct Tally {
    passed: u64,
    failed: u64,
    failures: Vec<String>,
    skipped: Vec<String>,
}

/// How one step ended.
enum Step {
    Done,
    /// Could not be run on this machine, and why.
    Skipped(String),
}

/// Runs all steps, even after one has failed, and prints a summary.
pub(crate) fn run(effort: Effort) -> Outcome {
    let started = Instant::now();
    let mut tally = Tally::default();
    // Tests of single crates look for an MPI too.
    step(&mut tally, "installing MPIs", install_hosts);
    step(&mut tally, "unit, integration and doc tests", |tally| {
        workspace(effort, tally)
    });
    if effort == Effort::Long {
        step(&mut tally, "schedules of the exchange protocol", schedules);
    }
    step(&mut tally, "programs under real MPIs", |tally| {
        programs(effort, tally)
    });
    step(&mut tally, "CephFS", ceph_fs);
    if effort == Effort::Long {
        step(&mut tally, "NFS between nodes", network);
    }
    step(&mut tally, "Miri on the copy kernels", miri);
    step(&mut tally, "loom models", loom);
    step(&mut tally, "fuzzing", |tally| fuzz(effort, tally));
    step(&mut tally, "README's commands", readme_commands);
    report(&tally, started.elapsed())
}

fn step(tally: &mut Tally, name: &str, work: impl FnOnce(&mut Tally) -> Outcome<Step>) {
    println!("\n==> {name}");
    let failed_before = tally.failed;
    match work(tally) {
        Ok(Step::Done) => {}
        Ok(Step::Skipped(reason)) => {
            println!("skipped: {reason}");
            tally.skipped.push(format!("{name}: {reason}"));
        }
        Err(reason) => {
            println!("FAILED: {reason}");
            // A step without a test runner, or whose tests did not even build, is one failure.
            if tally.failed == failed_before {
                tally.failed += 1;
            }
            tally.failures.push(format!("{name}: {reason}"));
        }
    }
}

/// If nothing can be installed the rest still runs, except on CI, where this would go unnoticed.
fn install_hosts(_: &mut Tally) -> Outcome<Step> {
    match hosts::install() {
        Err(reason) if !on_ci() => Ok(Step::Skipped(reason)),
        outcome => outcome.map(|()| Step::Done),
    }
}

fn on_ci() -> bool {
    std::env::var_os("CI").is_some()
}

/// Runs programs with the drop-in library preloaded, under all hosts.
fn programs(effort: Effort, tally: &mut Tally) -> Outcome<Step> {
    if !on_ci()
        && let Err(reason) = hosts::install()
    {
        return Ok(Step::Skipped(reason));
    }
    shell::run(cargo(&["build", "--release"]))?;
    // For the workspace rather than one package, to reuse what the previous step has built.
    let mut command = cargo(&["test", "--workspace", "--test", "hosts"]);
    let silence_max = effort.silence_max();
    match effort {
        Effort::Normal => {}
        Effort::Long => {
            command.env("PARIO_FUZZ_MINUTES", LONG_MINUTES);
        }
        Effort::Full => {
            command.env("PARIO_FULL", "1");
        }
    }
    shell::run_watched(command, silence_max, |line| tally.count(line))?;
    Ok(Step::Done)
}

fn workspace(effort: Effort, tally: &mut Tally) -> Outcome<Step> {
    if effort.cases().is_none() {
        // Compiling prints no line, and may take as long as a test that hangs.
        shell::run(cargo(&["test", "--workspace", "--no-run"]))?;
    }
    let mut command = cargo(&["test", "--workspace", "--no-fail-fast"]);
    if let Some(cases) = effort.cases() {
        command
            .arg("--release")
            .env("PARIO_CASES", cases.to_string());
    }
    if effort == Effort::Full {
        command.env("PARIO_FULL", "1");
    }
    shell::run_watched(command, effort.silence_max(), |line| tally.count(line))?;
    Ok(Step::Done)
}

/// Runs the exchange protocol under many more schedules: one takes microseconds.
fn schedules(tally: &mut Tally) -> Outcome<Step> {
    let mut command = cargo(&["test", "--release", "--package", "pario-exchange"]);
    command
        .args(["--test", "schedules"])
        .env("PARIO_CASES", SCHEDULES);
    let silence_max = Effort::Long.silence_max();
    shell::run_watched(command, silence_max, |line| tally.count(line))?;
    Ok(Step::Done)
}

/// Runs the driver for CephFS on a real one.
fn ceph_fs(tally: &mut Tally) -> Outcome<Step> {
    match ceph::test(ceph::Scope::Driver, |line| tally.count(line)) {
        Ok(()) => Ok(Step::Done),
        Err(ceph::Unable::NoCluster(reason)) if !on_ci() => Ok(Step::Skipped(reason)),
        Err(ceph::Unable::NoCluster(reason) | ceph::Unable::Failed(reason)) => Err(reason),
    }
}

/// Runs programs on several nodes of an NFS server, in a virtual machine. A machine where that is not possible skips it.
fn network(tally: &mut Tally) -> Outcome<Step> {
    match nfs::run(nfs::Effort::Long, "") {
        Ok(()) => {
            tally.passed += 1;
            Ok(Step::Done)
        }
        Err(nfs::Unable::NoMachine(reason)) => Ok(Step::Skipped(reason)),
        Err(nfs::Unable::Failed(reason)) => Err(reason),
    }
}

fn miri(tally: &mut Tally) -> Outcome<Step> {
    if let Err(reason) = tools::miri() {
        return Ok(Step::Skipped(reason));
    }
    let command = tools::nightly_cargo(&[
        "miri",
        "test",
        "--package",
        "pario-layout",
        "--lib",
        "kernels",
    ]);
    let before = tally.passed;
    shell::run_inspected(command, |line| tally.count(line))?;
    if tally.passed == before {
        return Err("Miri found no test with `kernels` in its name".into());
    }
    Ok(Step::Done)
}

/// Runs the shared-memory protocols of the transport under every schedule, within bounds. They are
/// compiled with a flag, so in a directory of their own.
fn loom(tally: &mut Tally) -> Outcome<Step> {
    let mut command = cargo(&["test", "--release", "--package", "pario-transport", "--lib"]);
    command
        .arg("--target-dir")
        .arg(shell::target_directory().join("loom"))
        .arg("models::")
        .env("RUSTFLAGS", "--cfg loom");
    let before = tally.passed;
    shell::run_inspected(command, |line| tally.count(line))?;
    if tally.passed == before {
        return Err("no test has `models::` in its name".into());
    }
    Ok(Step::Done)
}

/// Runs every fuzz target for a bounded time; one that survives counts as a passed test.
fn fuzz(effort: Effort, tally: &mut Tally) -> Outcome<Step> {
    let tools = match tools::cargo_fuzz() {
        Ok(directory) => directory,
        Err(reason) => return Ok(Step::Skipped(reason)),
    };
    let fuzz = |arguments: &[&str]| {
        let mut command = tools::nightly_cargo(&["fuzz"]);
        command.args(arguments);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut directories = vec![tools.clone()];
        directories.extend(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(directories).unwrap_or(path));
        command
    };
    let targets = shell::output(fuzz(&["list", "--fuzz-dir", FUZZ_DIRECTORY]))?;
    let seconds = effort.fuzz_time().as_secs() / targets.lines().count().max(1) as u64;
    let time = format!("-max_total_time={seconds}");
    for target in targets.lines() {
        let run = fuzz(&[
            "run",
            "--fuzz-dir",
            FUZZ_DIRECTORY,
            target,
            "--",
            &time,
            "-print_final_stats=1",
            "-verbosity=0",
            "-print_funcs=0",
        ]);
        shell::run(run)?;
        tally.passed += 1;
    }
    Ok(Step::Done)
}

/// Runs the commands of README.md, except for this one.
fn readme_commands(tally: &mut Tally) -> Outcome<Step> {
    for command in readme::commands(&readme::read()?) {
        let Some(arguments) = command.strip_prefix("cargo run ") else {
            continue;
        };
        let mut run = cargo(&["run"]);
        run.args(arguments.split_whitespace());
        shell::run(run)?;
        tally.passed += 1;
    }
    Ok(Step::Done)
}

impl Tally {
    /// Adds a summary line of the test runner: `test result: ok. 3 passed; 0 failed; ...`.
    fn count(&mut self, line: &str) {
        let Some(summary) = line.trim().strip_prefix("test result: ") else {
            return;
        };
        self.passed += number_before(summary, " passed");
        self.failed += number_before(summary, " failed");
    }
}

fn number_before(text: &str, word: &str) -> u64 {
    text.split_once(word)
        .and_then(|(head, _)| head.rsplit(' ').next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

fn report(tally: &Tally, took: Duration) -> Outcome {
    println!("\n==> summary after {} s", took.as_secs());
    for skipped in &tally.skipped {
        println!("skipped {skipped}");
    }
    for failure in &tally.failures {
        println!("FAILED {failure}");
    }
    println!("{} passed, {} failed", tally.passed, tally.failed);
    if tally.failures.is_empty() && tally.failed == 0 {
        Ok(())
    } else {
        Err("some tests failed, see above".into())
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn closing_lines_are_summed() {
        let mut tally = Tally::default();
        tally.count("test a ... ok");
        tally.count("test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s");
        tally.count(
            "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
        );
        assert_eq!((tally.passed, tally.failed), (15, 2));
    }
}
