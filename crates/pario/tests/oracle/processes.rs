//! What `main.rs` beside this file does with threads, with ranks that are
//! forked processes. A program of its own, because fork wants a
//! single-threaded `main`.
#![allow(unsafe_code)] // alarm has no wrapper in the standard library

mod access;
mod cases;
mod compare;
mod drivers;
mod generate;
mod hints;
mod model;
#[path = "../common/probe.rs"]
#[allow(dead_code, reason = "no program uses all of it")]
mod probe;
mod representation;
mod run;
mod scenario;
mod spec;
mod traffic;
mod types;

use std::process::ExitCode;

use pario_transport::processes;

use crate::{compare::Check, drivers::DriverKind, run::Trial};

const CASES: u64 = 400;
/// Past this time a case hangs; the signal ends the program and its ranks.
const CASE_SECONDS_MAX: u32 = 60;

fn world(trial: &Trial<'_>) -> Vec<Check> {
    // SAFETY: replaces the alarm of the case before; no handler is involved.
    unsafe { libc::alarm(CASE_SECONDS_MAX) };
    let nodes = &trial.scenario.nodes;
    let world = processes::World::new(nodes.len() as u32).nodes(nodes);
    let lives = world.run(|comm| trial.live(&comm).err().unwrap_or_default().into_bytes());
    lives
        .into_iter()
        .map(|life| match life {
            Ok(complaint) if complaint.is_empty() => Ok(()),
            Ok(complaint) => Err(String::from_utf8_lossy(&complaint).into_owned()),
            Err(failure) => Err(failure.to_string()),
        })
        .collect()
}

fn main() -> ExitCode {
    let directory = tempfile::tempdir().expect("a directory for files");
    // Several processes do not share memory; a trace stays in its process.
    let drivers: Vec<DriverKind> = DriverKind::ALL
        .into_iter()
        .filter(|kind| !kind.in_memory())
        .collect();
    for seed in cases::seeds(CASES) {
        if let Err(report) = cases::run_seed(seed, &drivers, directory.path(), &world) {
            eprintln!("{report}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
