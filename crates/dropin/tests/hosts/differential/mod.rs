//! The differential fuzzer: random cases under the host's own MPI-IO, under pario, and in a model.
//!
//! A case is drawn from its seed, run by a C program (`tests/differential`) with and without
//! `libpario.so`, and compared with what a naive model of the standard says that every rank sees:
//! files, memory, statuses, error classes, pointers, sizes. Whatever differs and is not in the list of
//! known differences is shrunk and printed as a C program of its own.
//!
//! `PARIO_CASES` and `PARIO_FUZZ_MINUTES` ask for more, `PARIO_SEED` repeats a case.

mod case;
mod compare;
mod datatype;
mod draw;
mod draw_type;
mod execute;
mod findings;
mod fuzz;
mod hints;
mod itself;
mod known;
mod model;
mod print;
mod print_type;
mod random;
mod record;
mod script;
mod shrink;

use std::sync::Arc;

use libtest_mimic::Trial;

use crate::run::{Run, trial};
use fuzz::{Extent, fuzz};

/// The trials: every host, one to four ranks.
pub(crate) fn trials(run: &Arc<Run>) -> Vec<Trial> {
    let extent = Extent::from_environment();
    let mut trials = Vec::new();
    for host in &run.hosts {
        for ranks in 1..=4_usize {
            let extent = extent.clone();
            let body = move |run: &Run, host: &crate::host::Host| {
                let library = run.library()?.to_owned();
                fuzz(host, vec![library], ranks, &extent)
            };
            trials.push(trial(run, host.name, "differential", &ranks.to_string(), body));
        }
    }
    // One host will do: what is tested is the fuzzer.
    trials.push(trial(run, "mpich", "differential", "finds_a_flipped_bit", |run, host| {
        itself::finds_a_flipped_bit(host, run.library()?)
    }));
    trials
}
