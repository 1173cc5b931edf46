//! Shared memory that is small, full, or not shared.

use std::sync::Arc;

use libtest_mimic::Trial;

use crate::job;
use crate::matrix::{LIMIT, has_checked, is_served, preloaded};
use crate::place::{Ground, Place};
use crate::run::{Run, trial};

use super::mounts::Mounts;

const RANKS: u32 = 3;

pub(super) fn trials(run: &Arc<Run>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for host in super::hosts(run, &["mpich", "openmpi"]) {
        for how in ["small", "full", "apart"] {
            let detail = format!("{RANKS}+{how}");
            trials.push(trial(
                run,
                host,
                "shared-memory",
                &detail,
                move |run, host| {
                    let program = super::program("narrow")?;
                    let binary = program.compile(host, &[])?;
                    // What the program mounts on /dev/shm would hide a directory there.
                    let place = Place::new(Ground::Disk)?;
                    let line = preloaded(run, host.launch(RANKS))?;
                    let line = line.word(binary).word(place.path()).word(how);
                    let mut mounts = Mounts::default();
                    mounts.say("true");
                    let ended = job::run(&mounts.around(line), LIMIT)?.success()?;
                    has_checked(&ended, &program.name)?;
                    is_served(&ended)
                },
            ));
        }
    }
    trials
}
