//! Programs under real MPIs, with `libpario.so` preloaded.
//!
//! A trial is named `HOST/SUITE/RANKS`, for example `openmpi/views/3`; what follows a `+` says
//! how it differs from a plain run. By default a short form runs; `PARIO_FULL=1` runs every
//! program under every host and writes `docs/hosts.md`.
//!
//! `PARIO_LIBRARY` names another library than the one that `cargo build --release` makes.
//! `cargo xtask hosts` installs the hosts.

mod applications;
mod differential;
mod host;
mod job;
mod library;
mod matrix;
mod page;
mod place;
mod program;
mod run;
mod scenarios;

use std::process::ExitCode;

use libtest_mimic::Arguments;

use crate::run::{Effort, Run, left_out};

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // The ranks of one job already have more than the cores of a small machine.
    arguments.test_threads = Some(1);
    let run = Run::new(Effort::from_environment());
    let mut trials = matrix::trials(&run);
    trials.extend(scenarios::trials(&run));
    trials.extend(applications::trials(&run));
    trials.extend(differential::trials(&run));
    if !arguments.list {
        for line in left_out(&run.skips()) {
            eprintln!("skipped on {line}");
        }
    }
    let is_whole = arguments.filter.is_none() && arguments.skip.is_empty() && !arguments.list;
    let conclusion = libtest_mimic::run(&arguments, trials);
    if run.effort == Effort::Full
        && is_whole
        && let Err(reason) = page::write(&run)
    {
        eprintln!("docs/hosts.md could not be written: {reason}");
        return ExitCode::FAILURE;
    }
    conclusion.exit_code()
}
