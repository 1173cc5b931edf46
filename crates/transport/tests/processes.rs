//! The processes transport passes the conformance suite.

mod harness;
mod processes_launcher;

use std::process::ExitCode;

fn main() -> ExitCode {
    harness::main(harness::conformance_tests(&processes_launcher::DEFAULT))
}
