//! Warnings: one line per job, however many ranks and files there are.

use std::ffi::OsString;
use std::sync::Arc;

use libtest_mimic::Trial;

use crate::host::Host;
use crate::job::{self, Ended, Line};
use crate::matrix::{LIMIT, has_checked, preloaded};
use crate::place::{Ground, Place};
use crate::program::Program;
use crate::run::{Run, TestResult, trial};

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

/// A program that opens files on communicators of its choice.
const WARNED: &str = "warned";

/// Where files are opened, the hint, and the words of the warnings that follow.
struct Opened {
    name: &'static str,
    arguments: [&'static str; 2],
    warning: &'static str,
}

const OPENED: [Opened; 6] = [
    Opened {
        name: "hint-self",
        arguments: ["self", "cb_nodes=many"],
        warning: "`many` for `cb_nodes`",
    },
    Opened {
        name: "hint-split",
        arguments: ["split", "cb_nodes=many"],
        warning: "`many` for `cb_nodes`",
    },
    // The first rank opens no file, and nobody speaks for the last one.
    Opened {
        name: "hint-last",
        arguments: ["last", "cb_nodes=many"],
        warning: "`many` for `cb_nodes`",
    },
    Opened {
        name: "driver-self",
        arguments: ["self", "pario_driver=nonesuch"],
        warning: "unknown driver nonesuch",
    },
    Opened {
        name: "uring-world",
        arguments: ["world", "pario_driver=uring"],
        warning: "a hint requests io_uring",
    },
    Opened {
        name: "uring-split",
        arguments: ["split", "pario_driver=uring"],
        warning: "a hint requests io_uring",
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
        for case in &OPENED {
            trials.push(trial(run, host, "warnings", case.name, move |run, host| {
                let line = preloaded(run, host.launch(RANKS))?;
                warns_of_files(line, host, case)
            }));
        }
        trials.push(trial(run, host, "warnings", "device-self", beside_device));
    }
    trials
}

/// Every rank has a file of its own, which is left to the host for the same reason.
fn beside_device(run: &Run, host: &Host) -> TestResult {
    let tool = Program::find("programs", "device_tool")?.compile(host, &[])?;
    let mut preload = OsString::from("LD_PRELOAD=");
    preload.push(run.library()?);
    preload.push(":");
    preload.push(&tool);
    let case = Opened {
        name: "device-self",
        arguments: ["self", "cb_nodes=1"],
        warning: "uses a graphics processor",
    };
    warns_of_files(host.launch(RANKS).word("env").word(preload), host, &case)
}

fn warns_of_files(line: Line, host: &Host, case: &Opened) -> TestResult {
    let binary = super::program(WARNED)?.compile(host, &[])?;
    let place = Place::new(Ground::Memory)?;
    let line = line.word(binary).word(place.path()).words(case.arguments);
    let ended = job::run(&line, LIMIT)?.success()?;
    has_checked(&ended, WARNED)?;
    are_expected(&ended, &[case.warning])
}

fn warns(run: &Run, host: &Host, case: &Case) -> TestResult {
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

fn are_expected(ended: &Ended, expected: &[&str]) -> TestResult {
    let lines = ended.stderr.lines();
    let warnings: Vec<_> = lines.filter(|line| line.contains("warning")).collect();
    let whole = warnings
        .iter()
        .all(|line| line.starts_with("pario: warning: "));
    let complete = expected
        .iter()
        .all(|words| warnings.iter().any(|line| line.contains(words)));
    match whole && complete && warnings.len() == expected.len() {
        true => Ok(()),
        false => {
            let reason = format!("the warnings should be {expected:?}, they are {warnings:?}");
            Err(ended.complaint(&reason))
        }
    }
}
