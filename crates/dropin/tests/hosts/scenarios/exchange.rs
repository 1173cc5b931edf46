//! Files written by the host's own MPI-IO and read by pario, and the reverse.

use std::sync::Arc;

use libtest_mimic::Trial;

use crate::job;
use crate::matrix::{LIMIT, has_checked, is_served, preloaded};
use crate::place::{Ground, Place};
use crate::program::Program;
use crate::run::{Effort, Run, Skip, skipped, trial};

/// The program that can write and read in two separate runs.
const PROGRAM: &str = "patterns";

/// Patterns that the hosts' own MPI-IO carries without faults: not btio, where MPICH 4.0 gives
/// ranks without data a count of bytes that they did not move.
const PATTERNS: &str = "contig,strided1m,strided64k,strided4k,strided64,coll_perf,hpio,tile,\
                        flash,s3d,steps,cyclic,indexed,small";

/// A host that cannot write or read the files, and why.
const FAULTY: (&str, &str) = (
    "impi-abi",
    "without pario the program aborts in Intel's library for the standard ABI",
);

const SUITE: &str = "exchanged-files";

/// Who does what.
#[derive(Clone, Copy)]
enum Direction {
    HostToPario,
    ParioToHost,
}

pub(super) fn trials(run: &Arc<Run>) -> Vec<Trial> {
    let mut trials = Vec::new();
    let ranks: &[u32] = match run.effort {
        Effort::Short => &[3],
        Effort::Full => &[1, 2, 3, 4],
    };
    let hosts = super::hosts(run, &["mpich", "openmpi"]);
    for host in hosts {
        if host == FAULTY.0 {
            trials.push(skipped(run, Skip::new(host, SUITE, FAULTY.1)));
            continue;
        }
        for &ranks in ranks {
            for (name, direction) in [
                ("host-to-pario", Direction::HostToPario),
                ("pario-to-host", Direction::ParioToHost),
            ] {
                let detail = format!("{ranks}+{name}");
                trials.push(trial(run, host, SUITE, &detail, move |run, host| {
                    let program = Program::find("programs", PROGRAM)?;
                    let binary = program.compile(host, &[])?;
                    let place = Place::new(Ground::Memory)?;
                    for (step, is_ours) in match direction {
                        Direction::HostToPario => [("write", false), ("read", true)],
                        Direction::ParioToHost => [("write", true), ("read", false)],
                    } {
                        let line = host.launch(ranks);
                        let line = if is_ours { preloaded(run, line)? } else { line };
                        let line = line
                            .word(&binary)
                            .word(place.path())
                            .words(["-p", step, "-m", "coll", "-w", PATTERNS]);
                        let ended = job::run(&line, LIMIT)?.success()?;
                        has_checked(&ended, &program.name)?;
                        if is_ours {
                            is_served(&ended)?;
                        }
                    }
                    Ok(())
                }));
            }
        }
    }
    trials
}
