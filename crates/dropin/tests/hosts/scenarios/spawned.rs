//! Processes that a program starts itself, with pario and without it.

use std::sync::Arc;

use libtest_mimic::Trial;

use crate::job;
use crate::matrix::{LIMIT, preloaded};
use crate::place::{Ground, Place};
use crate::run::{Run, trial};

const RANKS: u32 = 2;

/// Debian's MPICH cannot spawn where its launcher runs as it does here, with pario or without.
const CANNOT_SPAWN: [&str; 1] = ["mpich"];

pub(super) fn trials(run: &Arc<Run>) -> Vec<Trial> {
    let hosts = super::hosts(run, &["openmpi", "mpich-new", "openmpi-new"]);
    let hosts = hosts
        .into_iter()
        .filter(|name| !CANNOT_SPAWN.contains(name));
    let each = hosts.flat_map(|host| {
        [
            (host, "spawned", None),
            (host, "spawned-without", Some("bare")),
        ]
    });
    let one = |(host, name, bare): (&'static str, &'static str, Option<&'static str>)| {
        trial(run, host, name, &RANKS.to_string(), move |run, host| {
            let binary = super::program("spawn")?.compile(host, &[])?;
            let place = Place::new(Ground::Memory)?;
            let line = preloaded(run, host.launch(RANKS))?;
            let line = line.word(binary).word(place.path()).words(bare);
            let ended = job::run(&line, LIMIT)?.success()?;
            // Parents and children each print their own sum.
            match ended.stdout.matches("checks passed").count() {
                2 => Ok(()),
                _ => Err(ended.complaint("parents and children did not both come to their end")),
            }
        })
    };
    each.map(one).collect()
}
