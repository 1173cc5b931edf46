//! Random datatypes compared with an oracle that enumerates their type maps.
//!
//! `PARIO_CASES` sets the number of cases per test and `PARIO_SEED` the first seed; a failing
//! case prints the values that reproduce it.

// A test may panic: that is how it fails.
#![allow(clippy::unwrap_used)]

mod copies;
mod filetypes;
mod lookups;
mod spec;
mod typemap;

use fastrand::Rng;

const CASES: u64 = 1500;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap())
}

/// Prints how to reproduce a failing case.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("reproduce with PARIO_SEED={} PARIO_CASES=1", self.0);
        }
    }
}

/// Runs a check with many seeds.
fn for_cases(check: impl Fn(&mut Rng)) {
    let first = setting("PARIO_SEED").unwrap_or(1);
    let cases = setting("PARIO_CASES").unwrap_or(if cfg!(miri) { 10 } else { CASES });
    for seed in first..first + cases {
        let _seed = Seed(seed);
        check(&mut Rng::with_seed(seed));
    }
}
