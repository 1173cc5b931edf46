//! A rank is killed and the launcher lets the others go on: nobody waits for it for ever.

use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;

use crate::host::Launcher;
use crate::job;
use crate::matrix::preloaded;
use crate::place::{Ground, Place};
use crate::run::{Run, trial};

const RANKS: u32 = 3;

/// In which the others must have noticed.
const LIMIT: Duration = Duration::from_secs(30);

/// What MPICH's launcher says when it breaks together with the rank, which it does now and then,
/// with pario and without; it takes the other ranks with it.
const LAUNCHER_GONE: &str = "process manager error";
const ATTEMPTS: usize = 9;

pub(super) fn trials(run: &Arc<Run>) -> Vec<Trial> {
    let hosts = super::hosts(run, &["mpich", "openmpi"]);
    let hosts = hosts
        .into_iter()
        .filter(|name| option_of(run, name).is_some());
    // Of two nodes, the one that lost no rank is told by the other.
    let each = hosts.flat_map(|host| [(host, "survivors", 1), (host, "survivors+2-nodes", 2)]);
    // MPICH's launcher ends together with a rank whose messages it carries.
    let each = each.filter(|(host, _, nodes)| *nodes == 1 || host.starts_with("openmpi"));
    let one = |(host, name, nodes): (&'static str, &'static str, u32)| {
        trial(run, host, name, &RANKS.to_string(), move |run, host| {
            let binary = super::program("survivors")?.compile(host, &[])?;
            let place = Place::new(Ground::Memory)?;
            let option = option_of(run, host.name).ok_or("the launcher has no such option")?;
            let line = host.launch_with(&[option, "-n", &RANKS.to_string()]);
            let line = preloaded(run, line)?.variable("PARIO_NODES", &nodes.to_string());
            let line = line.word(binary).word(place.path());
            let mut ended = job::run(&line, LIMIT)?;
            for _ in 0..ATTEMPTS {
                if !ended.says(LAUNCHER_GONE) {
                    break;
                }
                ended = job::run(&line, LIMIT)?;
            }
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

/// What tells the launcher to leave the other ranks running.
fn option_of(run: &Run, name: &str) -> Option<&'static str> {
    let host = run.hosts.iter().find(|host| host.name == name)?;
    match (host.launcher, host.name) {
        (Launcher::Hydra, "mpich") => Some("-disable-auto-cleanup"),
        (Launcher::Orte, _) => Some("--enable-recovery"),
        _ => None,
    }
}
