//! Ranks of one machine that are told they run on several: messages instead of shared memory.

use std::sync::Arc;

use libtest_mimic::Trial;

use crate::host::{Host, Launcher};
use crate::matrix::{Setting, self_checking};
use crate::program::Program;
use crate::run::{Effort, Run, trial};

/// Programs in which ranks exchange data.
const PROGRAMS: [&str; 9] = [
    "explicit",
    "individual",
    "shared",
    "ordered",
    "nonblocking_collective",
    "split",
    "progress",
    "views",
    "patterns",
];

/// Programs of the short form.
const SHORT_PROGRAMS: [&str; 3] = ["explicit", "ordered", "nonblocking_collective"];

/// MPICH simulates nodes itself and reports that the nodes are several; the file system is then no
/// longer known to be common to all, unless the driver is named.
const NAMED_DRIVER: &str = "pario_driver=ufs";

/// Every collective call exchanges by `MPI_Ialltoallw`, where the thread level allows it.
const ALL_TO_ALL: &str = "pario_exchange=alltoall;pario_algorithm=two-phase";
const ALL_TO_ALL_PROGRAMS: [&str; 2] = ["patterns", "explicit"];

pub(super) fn trials(run: &Arc<Run>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for name in super::hosts(run, &["mpich", "openmpi"]) {
        for (ranks, nodes) in shapes(run.effort) {
            let ours = Setting {
                variables: vec![("PARIO_NODES", nodes.to_string())],
                ..Setting::default()
            };
            let programs = match run.effort {
                Effort::Short => &SHORT_PROGRAMS[..],
                Effort::Full => &PROGRAMS[..],
            };
            trials.extend(of(
                run,
                name,
                ranks,
                &format!("{nodes}-nodes"),
                &ours,
                programs,
            ));
            let mut all_to_all = ours;
            all_to_all
                .variables
                .push(("PARIO_HINTS", ALL_TO_ALL.into()));
            let suffix = format!("{nodes}-nodes+alltoall");
            trials.extend(of(
                run,
                name,
                ranks,
                &suffix,
                &all_to_all,
                &ALL_TO_ALL_PROGRAMS,
            ));
            if is_mpich(run, name) {
                let theirs = Setting {
                    variables: vec![
                        ("MPIR_CVAR_NUM_CLIQUES", nodes.to_string()),
                        ("PARIO_HINTS", NAMED_DRIVER.into()),
                    ],
                    ..Setting::default()
                };
                let suffix = format!("{nodes}-cliques");
                trials.extend(of(run, name, ranks, &suffix, &theirs, programs));
            }
        }
    }
    trials
}

/// Ranks and nodes: nodes of one size, of several, and of one rank each.
fn shapes(effort: Effort) -> Vec<(u32, u32)> {
    match effort {
        Effort::Short => vec![(3, 2)],
        Effort::Full => vec![(2, 2), (3, 2), (4, 2), (7, 3)],
    }
}

/// Intel's MPI does not have MPICH's variable.
fn is_mpich(run: &Run, name: &str) -> bool {
    run.host(name).launcher == Launcher::Hydra && !name.starts_with("impi")
}

fn of(
    run: &Arc<Run>,
    host: &'static str,
    ranks: u32,
    suffix: &str,
    setting: &Setting,
    programs: &[&'static str],
) -> Vec<Trial> {
    let one = |name: &&'static str| {
        let (name, mut setting) = (*name, setting.clone());
        if needs_threads(run.host(host), name) {
            setting.variables.push((THREADS.0, THREADS.1.into()));
        }
        let detail = format!("{name}-{ranks}+{suffix}");
        trial(run, host, "simulated-nodes", &detail, move |run, host| {
            let program = Program::find("programs", name)?;
            self_checking(run, host, &program, ranks, &setting)
        })
    };
    programs.iter().map(one).collect()
}

/// Raises the thread level of a program.
pub(super) const THREADS: (&str, &str) = ("PARIO_THREADS", "multiple");

/// Whether a program has a rank that waits before it sends, under an MPI that lets no one make
/// progress between nodes below `MPI_THREAD_MULTIPLE` (docs/progress.md).
pub(super) fn needs_threads(host: &Host, program: &str) -> bool {
    host.launcher == Launcher::Hydra && program == "nonblocking_collective"
}
