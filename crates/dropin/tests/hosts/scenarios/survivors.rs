//! A rank is killed and the launcher lets the others go on: nobody waits for it for ever.
//!
//! Open MPI's launcher does that when asked to. MPICH's tells the other ranks by a signal that ends
//! them, or breaks itself.

use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;

use crate::job;
use crate::matrix::preloaded;
use crate::place::{Ground, Place};
use crate::run::{Run, trial};

const RANKS: u32 = 3;
const HOST: &str = "openmpi";

/// In which the others must have noticed.
const LIMIT: Duration = Duration::from_secs(30);

/// How the others come to need the rank: in a blocking call, by waiting, by testing again and again.
const CALLS: [&str; 3] = ["blocking", "wait", "test"];

pub(super) fn trials(run: &Arc<Run>) -> Vec<Trial> {
    let hosts = super::hosts(run, &[HOST]);
    let hosts = hosts.into_iter().filter(|name| *name == HOST);
    // Of two nodes, the one that lost no rank is told by the other.
    let each = hosts.flat_map(|host| [(host, 1), (host, 2)]);
    let each = each.flat_map(|(host, nodes)| CALLS.map(|call| (host, nodes, call)));
    let one = |(host, nodes, call): (&'static str, u32, &'static str)| {
        let name = format!("survivors-{call}+{nodes}-nodes");
        trial(run, host, &name, &RANKS.to_string(), move |run, host| {
            let binary = super::program("survivors")?.compile(host, &[])?;
            let place = Place::new(Ground::Memory)?;
            let line = host.launch_with(&["--enable-recovery", "-n", &RANKS.to_string()]);
            let line = preloaded(run, line)?.variable("PARIO_NODES", nodes.to_string());
            let line = line.word(binary).word(place.path()).word(call);
            let ended = job::run(&line, LIMIT)?;
            if ended.has_timed_out() {
                return Err(ended.complaint("ranks wait for one that is gone"));
            }
            let is_told = |rank| ended.says(&format!("survivors: rank {rank}: "));
            match is_told(0) && is_told(2) && !ended.says("no error") {
                true => Ok(()),
                false => Err(ended.complaint("the other ranks got no error")),
            }
        })
    };
    each.map(one).collect()
}
