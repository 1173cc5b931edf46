//! What programs do without end: memory, descriptors, threads and mappings stay as they were.

use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;

use crate::host::Host;
use crate::job;
use crate::matrix::{has_checked, is_served, preloaded};
use crate::place::{Ground, Place};
use crate::run::{Effort, Run, TestResult, trial};

const LIMIT: Duration = Duration::from_secs(900);

/// Cycles on a new communicator each time.
const FRESH: [&str; 3] = ["fresh_duplicates", "fresh_splits", "fresh_alone"];

pub(super) fn trials(run: &Arc<Run>) -> Vec<Trial> {
    let mut trials = Vec::new();
    let (ranks, count): (&[u32], _) = match run.effort {
        Effort::Short => (&[2], 400),
        Effort::Full => (&[1, 2, 4], 10_000),
    };
    for host in run.hosts.iter().map(|host| host.name) {
        for &ranks in ranks {
            let detail = ranks.to_string();
            trials.push(trial(run, host, "cycles", &detail, move |run, host| {
                cycles(run, host, ranks, count, &[])
            }));
            for kind in FRESH {
                let detail = format!("{ranks}+{kind}");
                let body = move |run: &Run, host: &Host| {
                    cycles(run, host, ranks, count.max(2500), &[kind])
                };
                let trial = trial(run, host, "cycles", &detail, body);
                trials.push(trial);
            }
        }
    }
    trials
}

fn cycles(run: &Run, host: &Host, ranks: u32, count: u32, kinds: &[&str]) -> TestResult {
    let program = super::program("cycles")?;
    let binary = program.compile(host, &[])?;
    let place = Place::new(Ground::Memory)?;
    let line = preloaded(run, host.launch(ranks))?.word(binary);
    let line = line.word(place.path()).word(count.to_string()).words(kinds);
    let ended = job::run(&line, LIMIT)?.success()?;
    has_checked(&ended, &program.name)?;
    // The numbers, for those who run it with --nocapture.
    for line in ended.stdout.lines().filter(|line| line.contains(" of ")) {
        println!("{} {ranks}: {line}", host.name);
    }
    is_served(&ended)
}
