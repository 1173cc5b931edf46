//! Warnings: one line per job, however many ranks and files there are.

use std::sync::Arc;

use libtest_mimic::Trial;

use crate::host::Host;
use crate::job::{self, Ended};
use crate::matrix::{LIMIT, has_checked, preloaded};
use crate::place::{Ground, Place};
use crate::program::Program;
use crate::run::{Run, Verdict, trial};

const RANKS: u32 = 4;

/// A program that opens many files and sets hints and views.
const PROGRAM: &str = "manage";

/// Hints of the environment, and the words of the warnings that follow.
struct Case {
    name: &'static str,
    hints: &'static str,
    warnings: &'static [&'static str],
}

const CASES: [Case; 4] = [
    Case {
        name: "none",
        hints: "cb_nodes=1;striping_factor=4",
        warnings: &[],
    },
    Case {
        name: "malformed",
        hints: "cb_nodes=many;romio_ds_read=perhaps",
        warnings: &["`many` for `cb_nodes`", "`perhaps` for `romio_ds_read`"],
    },
    Case {
        name: "host-elsewhere",
        hints: "cb_config_list=elsewhere:1",
        warnings: &["cb_config_list=elsewhere:1 is ignored"],
    },
    Case {
        name: "host-among-others",
        hints: "cb_config_list=elsewhere:1,*:1",
        warnings: &[],
    },
];

pub(super) fn trials(run: &Arc<Run>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for host in super::hosts(run, &["mpich", "openmpi"]) {
        for case in &CASES {
            trials.push(trial(run, host, "warnings", case.name, move |run, host| {
                warns(run, host, case)
            }));
        }
    }
    trials
}

fn warns(run: &Run, host: &Host, case: &Case) -> Verdict {
    let program = Program::find("programs", PROGRAM)?;
    let binary = program.compile(host, &[])?;
    let place = Place::new(Ground::Memory)?;
    let line = preloaded(run, host.launch(RANKS))?;
    let line = line.word(format!("PARIO_HINTS={}", case.hints));
    let line = line.word(binary).word(place.path());
    let ended = job::run(&line, LIMIT)?.success()?;
    has_checked(&ended, PROGRAM)?;
    are_expected(&ended, case.warnings)
}

fn are_expected(ended: &Ended, expected: &[&str]) -> Verdict {
    let lines = ended.stderr.lines();
    let warnings: Vec<_> = lines.filter(|line| line.contains("warning")).collect();
    let whole = warnings
        .iter()
        .all(|line| line.starts_with("pario: warning: "));
    let said = expected
        .iter()
        .all(|words| warnings.iter().any(|line| line.contains(words)));
    match whole && said && warnings.len() == expected.len() {
        true => Ok(()),
        false => {
            let reason = format!("the warnings should be {expected:?}, they are {warnings:?}");
            Err(ended.complaint(&reason))
        }
    }
}
