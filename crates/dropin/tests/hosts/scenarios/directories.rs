//! The same name leads each rank to a file system of its own.

use std::sync::Arc;

use libtest_mimic::Trial;

use crate::job;
use crate::matrix::{LIMIT, preloaded};
use crate::place::{Ground, Place};
use crate::run::{Run, trial};

const RANKS: u32 = 2;

/// Runs a rank with an empty file system over the directory, and an input file in it.
const SCRIPT: &str = "\
exec unshare --mount --propagation private sh -c '\
mount -t tmpfs tmpfs \"$0\" && echo input > \"$0/directories.input\" && exec \"$@\"' \"$@\"";

pub(super) fn trials(run: &Arc<Run>) -> Vec<Trial> {
    let hosts = super::hosts(run, &["mpich", "openmpi"]);
    let one = |host| {
        trial(run, host, "directories", &RANKS.to_string(), |run, host| {
            let binary = super::program("directories")?.compile(host, &[])?;
            let place = Place::new(Ground::Disk)?;
            let line = preloaded(run, host.launch(RANKS))?;
            let line = line
                .words(["sh", "-c", SCRIPT, "sh"])
                .word(place.path())
                .word(binary)
                .word(place.path());
            let ended = job::run(&line, LIMIT)?.success()?;
            let warnings = ended
                .stderr
                .matches("is not the same file on rank 0")
                .count();
            match warnings {
                1 => Ok(()),
                _ => Err(ended.complaint(&format!("{warnings} warnings of copies, not 1"))),
            }
        })
    };
    hosts.into_iter().map(one).collect()
}
