//! The conformance suite of transports, over an MPI: all ranks of the world go
//! through the cases together.

use std::sync::Arc;

use pario_mpi::{InsideCall, MpiTransport, Runtime};
use pario_transport::conformance::{self, Job, Launcher, Outcome, Setting};
use pario_transport::{Rank, Transport};

/// Runs jobs as one rank of a world that exists already.
struct Here {
    transport: Arc<MpiTransport>,
}

impl Launcher for Here {
    fn name(&self) -> &'static str {
        "mpi"
    }

    /// The outcome of this rank. One that panics ends the world, so the others
    /// end well if this one gets to see it.
    fn launch(&self, _nodes: &[u32], job: &Job<'_>) -> Vec<Outcome> {
        let duplicate = self.transport.duplicate().expect("no rank is lost here");
        let mut outcomes = vec![Ok(Vec::new()); self.transport.size() as usize];
        outcomes[self.transport.rank().index()] = Ok(job(duplicate));
        outcomes
    }

    fn end_abruptly(&self) -> Option<fn()> {
        None
    }
}

/// Cases that lose ranks, take long, or count what happens within 30 ms, in which
/// an MPI of more ranks than cores may not return once.
const OTHERS: [&str; 4] = ["losses::", "64_mib", "hundreds", "waiting_is_bounded"];
/// Cases in which a rank has several threads that wait for each other.
const THREADED: &str = "threads_of_a_rank";

/// Every thread may call the MPI.
pub(crate) fn threaded(runtime: &Runtime) {
    check(runtime, |name| !OTHERS.iter().any(|it| name.contains(it)));
}

/// Only the calling thread may call the MPI.
pub(crate) fn funneled(runtime: &Runtime) {
    let _inside = InsideCall::enter();
    check(runtime, |name| {
        !OTHERS.iter().any(|it| name.contains(it)) && !name.contains(THREADED)
    });
}

fn check(runtime: &Runtime, is_wanted: impl Fn(&str) -> bool) {
    let transport = MpiTransport::new(runtime.host(), runtime.world()).expect("all ranks meet");
    let ranks = 0..transport.size();
    let nodes: Vec<u32> = ranks.map(|rank| transport.node_of(Rank(rank)).0).collect();
    let here = Here { transport };
    let setting = Setting {
        trials: 2,
        ..Setting::from_environment(&here, &nodes)
    };
    let cases = conformance::cases().into_iter();
    let cases = cases.filter(|case| case.ranks.contains(&setting.size()) && is_wanted(case.name));
    for case in cases {
        println!("{} on nodes {nodes:?}", case.name);
        (case.check)(&setting);
    }
    println!("{}", here.transport.describe());
}
