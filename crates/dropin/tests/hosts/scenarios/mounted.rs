//! Programs on a real file system that is mounted twice, as on two nodes. `PARIO_FUSE_MOUNTS` names two mounts that are not
//! coherent, `PARIO_COHERENT_MOUNTS` two that are; `cargo xtask fuse` and `cargo xtask vm` mount them and run these trials.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;

use crate::host::Host;
use crate::job::{self, Ended};
use crate::matrix::{has_checked, is_served, preloaded, served_by};
use crate::place::{Ground, Place};
use crate::program::Program;
use crate::run::{Run, TestResult, trial};

/// Programs for ranks on one mount.
const PROGRAMS: [&str; 3] = ["explicit", "shared", "unsynced"];
const RANKS: u32 = 4;

/// A program that reports who serves its file.
const WHO: &str = "who";

/// A virtual machine with one processor takes minutes for a program. The watchdog of the programs comes first.
const LIMIT: Duration = Duration::from_secs(600);
const WATCHDOG: &str = "-DCHECK_SECONDS=540";

const WARNING: &str = "pario: warning: ";

/// Gives the first and the second half of the ranks a mount each, under one name: the place, two mounts, the number of
/// the first rank that has the second, and the command.
const SCRIPT: &str = "\
exec unshare --mount --propagation private sh -c '\
place=$1 mount=$2; [ \"${PMI_RANK:-$OMPI_COMM_WORLD_RANK}\" -lt \"$4\" ] || mount=$3; shift 4; \
mount --bind \"$mount\" \"$place\" && exec \"$@\"' sh \"$@\"";

/// Whether ranks on two mounts see each other's writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Coherence {
    None,
    Full,
}

struct Mounts {
    points: [PathBuf; 2],
    coherence: Coherence,
}

fn mounts() -> Option<Mounts> {
    let variables = [
        ("PARIO_FUSE_MOUNTS", Coherence::None),
        ("PARIO_COHERENT_MOUNTS", Coherence::Full),
    ];
    variables.into_iter().find_map(|(name, coherence)| {
        let both = std::env::var(name).ok()?;
        let (first, second) = both.split_once(':')?;
        let points = [first.into(), second.into()];
        Some(Mounts { points, coherence })
    })
}

pub(super) fn trials(run: &Arc<Run>) -> Vec<Trial> {
    let Some(mounts) = mounts() else {
        return Vec::new();
    };
    let mounts = Arc::new(mounts);
    let mut trials = Vec::new();
    for host in ["mpich", "openmpi"] {
        // A machine with mounts may be slow; this one can be run before, elsewhere.
        trials.push(trial(run, host, "mounted", "compile", |_, host| {
            compile_all(host)
        }));
        for name in PROGRAMS {
            let mounts = mounts.clone();
            let detail = format!("{name}-{RANKS}+one-mount");
            trials.push(trial(run, host, "mounted", &detail, move |run, host| {
                on_one_mount(run, host, name, &mounts)
            }));
        }
        let mounts = mounts.clone();
        let detail = format!("{WHO}-{RANKS}+two-mounts");
        trials.push(trial(run, host, "mounted", &detail, move |run, host| {
            on_two_mounts(run, host, &mounts)
        }));
    }
    trials
}

fn compile(host: &Host, name: &str) -> TestResult<PathBuf> {
    let program = match name {
        WHO => super::program(name)?,
        _ => Program::find("programs", name)?,
    };
    program.compile(host, &[WATCHDOG.to_owned()])
}

fn compile_all(host: &Host) -> TestResult {
    let mut names = PROGRAMS.iter().chain([&WHO]);
    names.try_for_each(|name| compile(host, name).map(drop))
}

/// Ranks of one mount share its cache, on whatever nodes they are.
fn on_one_mount(run: &Run, host: &Host, name: &str, mounts: &Mounts) -> TestResult {
    let binary = compile(host, name)?;
    let directory = mounts.points[0].join(format!("{}-{name}", host.name));
    std::fs::create_dir(&directory).map_err(|error| error.to_string())?;
    let line = preloaded(run, host.launch(RANKS))?;
    let line = line.words(["PARIO_NODES=2", "UNSYNCED_ROUNDS=4"]);
    let ended = job::run(&line.word(binary).word(directory), LIMIT)?.success()?;
    has_checked(&ended, name)?;
    is_served(&ended)?;
    has_no_warning(&ended)
}

/// Ranks of two mounts write one file with pario if the file system is coherent; otherwise the host serves it, and one
/// warning gives the reason.
fn on_two_mounts(run: &Run, host: &Host, mounts: &Mounts) -> TestResult {
    let binary = compile(host, WHO)?;
    let place = Place::new(Ground::Disk)?;
    let [first, second] = &mounts.points;
    let line = preloaded(run, host.launch(RANKS))?;
    let line = line.words(["PARIO_NODES=2", "sh", "-c", SCRIPT, "sh"]);
    let line = line.word(place.path()).word(first).word(second);
    let line = line.word((RANKS / 2).to_string());
    let line = line.word(binary).word(place.path());
    let line = line.word(format!("who-{}", host.name));
    let ended = job::run(&line, LIMIT)?;
    if mounts.coherence == Coherence::Full {
        let ended = ended.success()?;
        served_by(&ended, WHO, "pario")?;
        return has_no_warning(&ended);
    }
    // The host may fail there: its own MPI-IO, without pario, was seen to leave ranks with an old size on GlusterFS, and
    // not to find a new file on SMB.
    let lines = ended.stderr.lines();
    let warnings: Vec<_> = lines.filter(|it| it.starts_with(WARNING)).collect();
    match warnings[..] {
        [one] if one.contains("left to the MPI's own MPI-IO") && !ended.has_timed_out() => Ok(()),
        _ => Err(ended.complaint("not one warning that the file is left to the host")),
    }
}

fn has_no_warning(ended: &Ended) -> TestResult {
    match ended.says(WARNING) {
        true => Err(ended.complaint("there is a warning")),
        false => Ok(()),
    }
}
