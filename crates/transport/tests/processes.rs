//! The processes transport passes the conformance suite.
#![allow(unsafe_code)] // a rank kills itself

mod harness;

use std::process::ExitCode;

use pario_transport::conformance::{Job, Launcher, Outcome};
use pario_transport::processes::World;

struct Processes;

impl Launcher for Processes {
    fn name(&self) -> &'static str {
        "processes"
    }

    fn launch(&self, nodes: &[u32], job: &Job<'_>) -> Vec<Outcome> {
        let results = World::new(nodes.len() as u32).nodes(nodes).run(job);
        let outcomes = results
            .into_iter()
            .map(|result| result.map_err(|failure| failure.to_string()));
        outcomes.collect()
    }

    fn end_abruptly(&self) -> Option<fn()> {
        // SAFETY: the signal ends this process and touches no other.
        Some(|| unsafe {
            libc::kill(libc::getpid(), libc::SIGKILL);
        })
    }
}

fn main() -> ExitCode {
    harness::main(harness::conformance_tests(&Processes))
}
