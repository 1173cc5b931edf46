//! Surroundings that plain runs do not have.

mod batch;
mod cephfs;
mod command;
mod cycles;
mod directories;
mod exchange;
mod faults;
mod killed;
mod memory;
mod mixed;
mod mounted;
pub(crate) mod mounts;
mod network;
mod nodes;
mod spawned;
mod survivors;
mod swapped;
mod switches;
mod tools;
mod warnings;

use std::sync::Arc;

use libtest_mimic::Trial;

use crate::program::Program;
use crate::run::{Effort, Run, TestResult};

/// The trials of all scenarios.
pub(crate) fn trials(run: &Arc<Run>) -> Vec<Trial> {
    let mut trials = nodes::trials(run);
    trials.extend(network::trials(run));
    trials.extend(memory::trials(run));
    trials.extend(killed::trials(run));
    trials.extend(survivors::trials(run));
    trials.extend(spawned::trials(run));
    trials.extend(directories::trials(run));
    trials.extend(exchange::trials(run));
    trials.extend(switches::trials(run));
    trials.extend(mixed::trials(run));
    trials.extend(tools::trials(run));
    trials.extend(warnings::trials(run));
    trials.extend(command::trials(run));
    trials.extend(swapped::trials(run));
    trials.extend(faults::trials(run));
    trials.extend(cycles::trials(run));
    trials.extend(cephfs::trials(run));
    trials.extend(mounted::trials(run));
    trials
}

/// A program that belongs to the scenarios.
fn program(name: &str) -> TestResult<Program> {
    Program::find("hosts/programs", name)
}

/// The hosts that a scenario runs under: all, or in the short form those named.
fn hosts(run: &Run, short: &[&str]) -> Vec<&'static str> {
    let names = run.hosts.iter().map(|host| host.name);
    names
        .filter(|name| run.effort == Effort::Full || short.contains(name))
        .collect()
}
