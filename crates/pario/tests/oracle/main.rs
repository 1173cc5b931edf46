//! Random sequences of calls against a naive model of the file.
//!
//! A case draws everything from its seed: how many ranks there are, how the
//! file is opened, the views, buffers and calls. The model says what every
//! call must return and what the file must hold; cases whose outcome depends
//! on timing are not drawn.
//!
//! `PARIO_CASES` sets the number of cases and `PARIO_SEED` the first seed. A
//! failing case is repeated with fewer steps, and the fewest that still fail
//! are printed.

mod cases;
mod generate;
mod model;
mod representation;
mod run;
mod scenario;
mod spec;
mod types;
#[path = "../common/watchdog.rs"]
mod watchdog;

use pario::threads;

use crate::{cases::Cases, run::Check, scenario::Carrier};

const CASES: u64 = 3000;

#[test]
fn every_call_does_what_the_model_says() {
    let carriers = [
        Carrier::Posix,
        Carrier::Posix,
        Carrier::Uring,
        Carrier::Memory,
    ];
    Cases::from_environment(CASES).run(&carriers, |ranks, trial| {
        threads::run(ranks, |comm| trial.live(&comm))
            .into_iter()
            .map(|life| life.unwrap_or_else(|panic| Err(panic.to_string())))
            .collect::<Vec<Check>>()
    });
}
