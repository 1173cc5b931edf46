//! The differential fuzzer: random cases under the host's own MPI-IO, under pario, and in a model.
//!
//! A case is drawn from its seed, run by a C program (`tests/differential`) with and without
//! `libpario.so`, and compared with what a naive model of the standard says that every rank sees:
//! files, memory, statuses, error classes, pointers, sizes. Whatever differs and is not in the list of
//! known differences is shrunk and printed as a C program of its own.
//!
//! `docs/differential.md` says how to run it and how to repeat what it found.

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
mod layout;
mod model;
mod print;
mod print_type;
mod random;
mod record;
mod script;
mod seen;
mod shrink;

use std::sync::Arc;

use libtest_mimic::{Failed, Trial};

use crate::host::Host;
use crate::run::{Effort, Run, trial};
use fuzz::{Extent, fuzz};

const SUITE: &str = "differential";

/// The trials: one to four ranks under every host, or a few of them where little time is.
pub(crate) fn trials(run: &Arc<Run>) -> Vec<Trial> {
    let is_long = run.effort == Effort::Full || Extent::is_asked_for();
    let ranks: &[usize] = if is_long { &[1, 2, 3, 4] } else { &[2, 3] };
    let hosts: Vec<&'static str> = run
        .hosts
        .iter()
        .map(|host| host.name)
        .filter(|name| is_long || !name.ends_with("-abi"))
        .collect();
    let extent = Extent::from_environment((hosts.len() * ranks.len()) as u64);
    let mut trials = Vec::new();
    for host in hosts {
        for &ranks in ranks {
            let extent = extent.clone();
            let body = move |run: &Run, host: &Host| {
                fuzz(host, vec![run.library()?.to_owned()], ranks, &extent)
            };
            trials.push(trial(run, host, SUITE, &ranks.to_string(), body));
        }
    }
    // One host will do: what is tested is the fuzzer.
    let body = |run: &Run, host: &Host| itself::finds_a_flipped_bit(host, run.library()?);
    trials.push(trial(run, "mpich", SUITE, "finds_a_flipped_bit", body));
    trials.push(Trial::test(
        "differential/known_differences_are_documented",
        || known::are_documented().map_err(Failed::from),
    ));
    trials
}
