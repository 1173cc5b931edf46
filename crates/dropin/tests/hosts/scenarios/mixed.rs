//! Jobs in which not all ranks have pario.

use std::path::Path;
use std::sync::Arc;

use libtest_mimic::Trial;

use crate::host::Host;
use crate::job;
use crate::matrix::{LIMIT, has_checked};
use crate::place::{Ground, Place};
use crate::run::{Run, TestResult, trial};

const RANKS: u32 = 4;
const PROGRAM: &str = "mixed";

/// Starts the program with the library (`$1`), but the last rank as `$2` says.
const SCRIPT: &str = r#"library=$1; last=$2; shift 2
case ${PMIX_RANK:-${PMI_RANK:-$OMPI_COMM_WORLD_RANK}}-$last in
    3-without) exec "$@" ;;
    3-disabled) export PARIO_DISABLE=1 ;;
    3-forked) "$@"; exit $? ;;
esac
LD_PRELOAD=$library exec "$@""#;

pub(super) fn trials(run: &Arc<Run>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for host in super::hosts(
        run,
        &["mpich", "openmpi", "mpich-new", "openmpi-new", "impi"],
    ) {
        for last in ["without", "disabled", "forked"] {
            trials.push(trial(run, host, "mixed", last, move |run, host| {
                goes_on(run, host, last)
            }));
        }
        trials.push(trial(run, host, "mixed", "alike", |run, host| {
            let served = ["even", "odd", "world", "odd again", "even again"];
            let served = served.map(|what| (what, "pario"));
            serves(run, host, "alike", &served, 0)
        }));
        trials.push(trial(run, host, "mixed", "renamed", |run, host| {
            let place = Place::new(Ground::Memory)?;
            let renamed = place.path().join("another-name.so");
            std::fs::copy(run.library()?, &renamed).map_err(|error| error.to_string())?;
            let served = [("odd", "pario"), ("world", "pario")];
            serves_with(host, &renamed, "alike", &served, 0)
        }));
    }
    trials
}

fn goes_on(run: &Run, host: &Host, last: &str) -> TestResult {
    let served = [
        ("even", "pario"),
        ("even again", "pario"),
        ("odd", "the host"),
        ("odd again", "the host"),
        ("world", "the host"),
    ];
    serves(run, host, last, &served, 1)
}

fn serves(
    run: &Run,
    host: &Host,
    last: &str,
    served: &[(&str, &str)],
    warnings: usize,
) -> TestResult {
    serves_with(host, run.library()?, last, served, warnings)
}

fn serves_with(
    host: &Host,
    library: &Path,
    last: &str,
    served: &[(&str, &str)],
    warnings: usize,
) -> TestResult {
    let binary = super::program(PROGRAM)?.compile(host, &[])?;
    let place = Place::new(Ground::Memory)?;
    let line = host.launch(RANKS).words(["sh", "-c", SCRIPT, "sh"]);
    let line = line.word(library).word(last);
    let line = line.word(binary).word(place.path());
    let ended = job::run(&line, LIMIT)?.success()?;
    has_checked(&ended, PROGRAM)?;
    for (what, by) in served {
        if !ended.says(&format!("mixed: {what} served by {by}")) {
            return Err(ended.complaint(&format!("{what} should be served by {by}")));
        }
    }
    let lines = ended.stderr.lines();
    let found = lines
        .filter(|line| line.contains("without libpario.so"))
        .count();
    match found == warnings {
        true => Ok(()),
        false => Err(ended.complaint(&format!("{found} warnings, not {warnings}"))),
    }
}
