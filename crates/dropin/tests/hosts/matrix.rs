//! Every program under every host.

use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;

use crate::host::Host;
use crate::job::{self, Ended, Line};
use crate::place::Place;
use crate::program::{self, Need, Program};
use crate::run::{Effort, Run, Skip, TestResult, skipped, trial};
use crate::scenarios::mounts;

/// More than a program's own watchdog, which says more about a hang.
pub(crate) const LIMIT: Duration = Duration::from_secs(100);

/// Hosts under which the short form runs every program; a few programs on the others.
const MAIN_HOSTS: [&str; 2] = ["mpich", "openmpi"];

/// Programs that the short form runs under all hosts: together they use most kinds of calls.
const CHOSEN: [&str; 11] = [
    "manage",
    "views",
    "explicit",
    "shared",
    "nonblocking",
    "handles",
    "errors",
    "datareps",
    "datarep_counts",
    "fortran_mpi",
    "handlers_cxx",
];

/// Rank counts of the short form: even and odd.
const SHORT_RANKS: [u32; 2] = [2, 3];

/// The plain trials.
pub(crate) fn trials(run: &Arc<Run>) -> Vec<Trial> {
    let programs = match program::all("programs") {
        Ok(programs) => programs,
        Err(reason) => return vec![Trial::test("programs", || Err(reason.into()))],
    };
    let mut trials = Vec::new();
    let mut usable = Vec::new();
    for program in programs {
        match program {
            Ok(program) => usable.push(program),
            Err(reason) => trials.push(Trial::test("programs", || Err(reason.into()))),
        }
    }
    for host in &run.hosts {
        for program in &usable {
            if let Some(reason) = program.obstacle(host) {
                trials.push(skipped(run, Skip::new(host.name, &program.name, reason)));
                continue;
            }
            for ranks in rank_counts(run.effort, host, program) {
                trials.push(plain(run, host.name, program.clone(), ranks));
            }
        }
    }
    trials
}

fn rank_counts(effort: Effort, host: &Host, program: &Program) -> Vec<u32> {
    if program.needs(Need::Tool) {
        return Vec::new();
    }
    if effort == Effort::Full {
        return program.ranks.clone();
    }
    let is_main = MAIN_HOSTS.contains(&host.name);
    if program.needs(Need::Long) || !is_main && !CHOSEN.contains(&program.name.as_str()) {
        return Vec::new();
    }
    let wanted = if is_main {
        &SHORT_RANKS[..]
    } else {
        &SHORT_RANKS[..1]
    };
    let possible = wanted.iter().filter(|ranks| program.ranks.contains(ranks));
    let chosen: Vec<u32> = possible.copied().collect();
    if chosen.is_empty() {
        // A program for one rank, or for many.
        program.ranks.iter().min().copied().into_iter().collect()
    } else {
        chosen
    }
}

fn plain(run: &Arc<Run>, host: &'static str, program: Program, ranks: u32) -> Trial {
    let suite = program.name.clone();
    trial(run, host, &suite, &ranks.to_string(), move |run, host| {
        self_checking(run, host, &program, ranks, &Setting::default())
    })
}

/// How a run differs from a plain one.
#[derive(Clone, Default)]
pub(crate) struct Setting {
    /// Variables of the ranks.
    pub(crate) variables: Vec<(&'static str, String)>,
    /// Options of the launcher.
    pub(crate) options: Vec<&'static str>,
}

/// Runs a program that checks itself, with the library preloaded.
pub(crate) fn self_checking(
    run: &Run,
    host: &Host,
    program: &Program,
    ranks: u32,
    setting: &Setting,
) -> TestResult {
    let binary = program.compile(host, &[])?;
    let place = Place::new(program.ground())?;
    let count = ranks.to_string();
    let mut line = host.launch_with(&setting.options).words(["-n", &count]);
    line = preloaded(run, line)?;
    for (name, value) in &setting.variables {
        line = line.word(format!("{name}={value}"));
    }
    line = line.word(&binary).word(place.path());
    let line = mounts::around(line, program, place.path())?;
    let ended = job::run(&line, LIMIT)?.success()?;
    has_checked(&ended, &program.name)?;
    is_served(&ended)
}

/// Lets the words that follow be run with the library preloaded.
pub(crate) fn preloaded(run: &Run, line: Line) -> TestResult<Line> {
    let mut preload = std::ffi::OsString::from("LD_PRELOAD=");
    preload.push(run.library()?);
    Ok(line.word("env").word(preload).word("PARIO_VERBOSE=1"))
}

/// Fails unless the program says how many of its checks passed.
pub(crate) fn has_checked(ended: &Ended, name: &str) -> TestResult {
    let prefix = format!("{name}: ");
    let passed = ended.stdout.lines().find_map(|line| {
        let start = line.find(&prefix)?;
        let number = line[start + prefix.len()..].strip_suffix(" checks passed")?;
        number.parse::<u64>().ok()
    });
    match passed {
        Some(0) => Err(ended.complaint("it checked nothing")),
        Some(_) => Ok(()),
        None => Err(ended.complaint("it does not say that its checks passed")),
    }
}

/// Fails unless pario says that it opened a file: neither a preload that did nothing nor files left to
/// the host may look like success.
pub(crate) fn is_served(ended: &Ended) -> TestResult {
    if ended
        .stderr
        .lines()
        .any(|line| line.starts_with("pario: MPI: "))
    {
        Ok(())
    } else {
        Err(ended.complaint("nothing shows that pario was in use"))
    }
}

/// Fails unless a program says that this one served its file: pario, or the host.
pub(crate) fn served_by(ended: &Ended, program: &str, server: &str) -> TestResult {
    if ended.says(&format!("{program}: served by {server}\n")) {
        return Ok(());
    }
    Err(ended.complaint(&format!("{server} should have served the file")))
}

/// Fails unless pario left the file of the program `who` to the host, and warned once of it.
pub(crate) fn is_left_to_host(ended: &Ended) -> TestResult {
    let lines = ended.stderr.lines();
    let warnings = lines.filter(|line| line.starts_with("pario: warning: "));
    match warnings.count() {
        1 => served_by(ended, "who", "the host"),
        count => Err(ended.complaint(&format!("there are {count} warnings, not one"))),
    }
}
