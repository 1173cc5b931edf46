//! The threads transport passes the conformance suite.

mod harness;

use std::process::ExitCode;

use pario_transport::conformance::{Job, Launcher, Outcome};
use pario_transport::threads::World;

struct Threads;

impl Launcher for Threads {
    fn name(&self) -> &'static str {
        "threads"
    }

    fn launch(&self, nodes: &[u32], job: &Job<'_>) -> Vec<Outcome> {
        let results = World::new(nodes.len() as u32).nodes(nodes).run(job);
        let outcomes = results
            .into_iter()
            .map(|result| result.map_err(|panic| panic.to_string()));
        outcomes.collect()
    }

    fn end_abruptly(&self) -> Option<fn()> {
        // A thread cannot be killed without its process.
        None
    }
}

fn main() -> ExitCode {
    harness::main(harness::conformance_tests(&Threads))
}
