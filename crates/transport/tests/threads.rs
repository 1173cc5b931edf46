//! The threads transport passes the conformance suite.

mod harness;

use std::process::ExitCode;
use std::time::Duration;

use pario_transport::Backoff;
use pario_transport::conformance::{Job, Launcher, Outcome};
use pario_transport::threads::World;

struct Threads {
    backoff: Backoff,
}

const DEFAULT: Threads = Threads {
    backoff: Backoff::DEFAULT,
};

/// Hardly yields and then sleeps so long that a wake-up that gets lost is a
/// failure, not a delay.
const SLEEPY: Threads = Threads {
    backoff: Backoff {
        looks: 1,
        yield_for: Duration::from_micros(1),
        first_sleep: Duration::from_secs(1000),
        longest_sleep: Duration::from_secs(1000),
        give_up_after: None,
    },
};

impl Launcher for Threads {
    fn name(&self) -> &'static str {
        "threads"
    }

    fn launch(&self, nodes: &[u32], job: &Job<'_>) -> Vec<Outcome> {
        let world = World::new(nodes.len() as u32).backoff(self.backoff);
        let results = world.nodes(nodes).run(job);
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
    let mut tests = harness::conformance_tests(&DEFAULT);
    let sleepy = harness::conformance_tests(&SLEEPY).into_iter();
    // Those that take long, or wait by their own rules, add nothing here.
    let others = ["segments", "hundreds", "64_mib", "losses::a_rank"];
    let sleepy = sleepy.filter(|test| !others.iter().any(|other| test.name().contains(other)));
    tests.extend(sleepy.map(|test| test.prefixed("sleepy ")));
    harness::main(tests)
}
