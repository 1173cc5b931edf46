//! Files of ranks that are forked processes, and what can only be seen in a
//! process of one's own: rules 3, 7 to 11 and 26.
//!
//! Forking needs a program with one thread, so this one has its own `main`;
//! everything that starts threads happens in forked ranks.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../common/mod.rs"]
mod common;

mod footprint;
mod harness;
mod losses;
mod memory;
mod sharing;
mod tour;

use std::process::ExitCode;

fn main() -> ExitCode {
    let tests = [
        footprint::TESTS,
        tour::TESTS,
        sharing::TESTS,
        losses::TESTS,
        memory::TESTS,
    ];
    harness::main(&tests.concat())
}
