//! Who serves a file: the variables and hints that decide it, and what pario says.

use std::ffi::OsString;
use std::sync::Arc;

use libtest_mimic::Trial;

use crate::host::Host;
use crate::job::{self, Ended, Line};
use crate::matrix::{LIMIT, has_checked, is_left_to_host, preloaded, served_by};
use crate::place::{Ground, Place};
use crate::program::Program;
use crate::run::{Run, TestResult, trial};

const RANKS: u32 = 2;

/// The program that says who serves its file.
const WHO: &str = "who";

/// A switch for pario, and whose MPI-IO then opens the file.
struct Case {
    name: &'static str,
    variables: &'static [&'static str],
    hints: &'static [&'static str],
    server: &'static str,
}

const CASES: [Case; 8] = [
    Case {
        name: "as-it-is",
        variables: &[],
        hints: &[],
        server: "pario",
    },
    Case {
        name: "disabled",
        variables: &["PARIO_DISABLE=1"],
        hints: &[],
        server: "the host",
    },
    Case {
        name: "not-disabled",
        variables: &["PARIO_DISABLE=0"],
        hints: &[],
        server: "pario",
    },
    Case {
        name: "path-matches",
        variables: &["PARIO_DISABLE=/nowhere/*:*.dat"],
        hints: &[],
        server: "the host",
    },
    Case {
        name: "path-differs",
        variables: &["PARIO_DISABLE=/nowhere/*:*.nc"],
        hints: &[],
        server: "pario",
    },
    Case {
        name: "hint",
        variables: &[],
        hints: &["pario_disable=true"],
        server: "the host",
    },
    Case {
        name: "hint-says-no",
        variables: &[],
        hints: &["pario_disable=false"],
        server: "pario",
    },
    Case {
        name: "hint-in-environment",
        variables: &["PARIO_HINTS=pario_disable=true"],
        hints: &[],
        server: "the host",
    },
];

pub(super) fn trials(run: &Arc<Run>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for host in super::hosts(run, &["mpich", "openmpi"]) {
        for case in &CASES {
            trials.push(trial(run, host, "switches", case.name, move |run, host| {
                served_by(&serve(run, host, case)?, WHO, case.server)
            }));
        }
        trials.push(trial(run, host, "switches", "verbose", |run, host| {
            let ended = serve(run, host, &CASES[0])?;
            tells_once(&ended)
        }));
        trials.push(trial(run, host, "switches", "device", beside_device));
    }
    trials
}

/// A program with a library for graphics processors is left to the host, with one warning, unless
/// the user says that such memory never meets a file function.
fn beside_device(run: &Run, host: &Host) -> TestResult {
    let tool = Program::find("programs", "device_tool")?.compile(host, &[])?;
    let launch = || {
        let mut preload = OsString::from("LD_PRELOAD=");
        preload.push(run.library()?);
        preload.push(":");
        preload.push(&tool);
        Ok::<Line, String>(host.launch(RANKS).word("env").word(preload))
    };
    is_left_to_host(&serve_by(launch()?, host, &CASES[0])?)?;
    let never = launch()?.word("PARIO_DEVICE_MEMORY=never");
    served_by(&serve_by(never, host, &CASES[0])?, WHO, "pario")
}

fn serve(run: &Run, host: &Host, case: &Case) -> TestResult<Ended> {
    serve_by(preloaded(run, host.launch(RANKS))?, host, case)
}

/// Runs the program that asks who serves its file behind what starts it.
fn serve_by(line: Line, host: &Host, case: &Case) -> TestResult<Ended> {
    let program = super::program(WHO)?;
    let binary = program.compile(host, &[])?;
    let place = Place::new(Ground::Memory)?;
    let line = line.words(case.variables).word(binary);
    let line = line.word(place.path()).word("file.dat").words(case.hints);
    let ended = job::run(&line, LIMIT)?.success()?;
    has_checked(&ended, &program.name)?;
    Ok(ended)
}

/// `PARIO_VERBOSE=1` says once for all ranks which MPI, transport, driver and hints are in force.
fn tells_once(ended: &Ended) -> TestResult {
    let lines = ended.stderr.lines();
    let told: Vec<&str> = lines
        .filter_map(|line| line.strip_prefix("pario: "))
        .collect();
    for topic in ["MPI: ", "transport: ", "driver", "collective "] {
        let matching = told.iter().filter(|line| line.starts_with(topic));
        let count = matching.count();
        if count != 1 {
            let reason = format!("there are {count} lines on `{topic}`, not one");
            return Err(ended.complaint(&reason));
        }
    }
    Ok(())
}
