//! A rank is killed: the job ends, nothing is left behind, other files are as they were.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;

use crate::job::{self, Line};
use crate::matrix::{is_served, preloaded};
use crate::place::{Ground, Place};
use crate::run::{Run, TestResult, trial};

const RANKS: u32 = 3;

/// In which the job must have ended.
const LIMIT: Duration = Duration::from_secs(30);

/// Runs the job with a /dev/shm of its own, and says what is left there a moment later.
const SCRIPT: &str = "\
mount -t tmpfs -o size=256m tmpfs /dev/shm || exit 99
\"$@\"
status=$?
sleep 1
ls -A /dev/shm | sed 's/^/left: /'
exit $status";

pub(super) fn trials(run: &Arc<Run>) -> Vec<Trial> {
    let hosts = super::hosts(run, &["mpich", "openmpi"]);
    let one = |host| {
        trial(run, host, "killed-rank", &RANKS.to_string(), |run, host| {
            let binary = super::program("killed")?.compile(host, &[])?;
            let place = Place::new(Ground::Disk)?;
            let other = place.path().join("other");
            fs::write(&other, "not yours").map_err(|error| error.to_string())?;
            let line = preloaded(run, host.launch(RANKS))?;
            let line = line.word(binary).word(place.path());
            let mut around = Line::new("unshare")
                .words([
                    "--mount",
                    "--propagation",
                    "private",
                    "sh",
                    "-c",
                    SCRIPT,
                    "sh",
                ])
                .words(&line.words);
            around.variables = line.variables;
            let ended = job::run(&around, LIMIT)?;
            is_served(&ended)?;
            if ended.has_timed_out() {
                return Err(ended.complaint("the job goes on without its rank"));
            }
            if ended.status.success() || !ended.says("killed: rank 1 goes") {
                return Err(ended.complaint("no rank was killed"));
            }
            if ended
                .stdout
                .lines()
                .any(|line| line.starts_with("left: pario"))
            {
                return Err(ended.complaint("there are names of pario's left in /dev/shm"));
            }
            only_its_files(&place)?;
            match fs::read(&other) {
                Ok(bytes) if bytes == b"not yours" => Ok(()),
                outcome => Err(format!("another file was harmed: {outcome:?}")),
            }
        })
    };
    hosts.into_iter().map(one).collect()
}

fn only_its_files(place: &Place) -> TestResult {
    let names = place.names()?;
    if names == ["killed.data", "other"] {
        Ok(())
    } else {
        Err(format!("files were left next to the data: {names:?}"))
    }
}
