//! Programs on a CephFS, through its library: `cargo xtask ceph` starts one, names a directory of it that FUSE has
//! mounted in `PARIO_CEPHFS_MOUNTS` (the first of two, separated by a colon), and runs these trials.
//!
//! Programs that look at their files through POSIX do so through the mount, which is another client of the cluster.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use libtest_mimic::Trial;

use crate::host::Host;
use crate::job::{self, Line};
use crate::matrix::{LIMIT, has_checked, is_served, preloaded};
use crate::program::Program;
use crate::run::{Run, TestResult, trial};

/// A program with its ranks and arguments.
type Job = (&'static str, u32, &'static [&'static str]);

/// Programs that use no name but those of MPI-IO.
const BY_PREFIX: [Job; 1] = [("unsynced", 4, &[])];

/// Programs that also use names of the kernel. `patterns` runs in parts, because each may take a minute: every process
/// mounts and unmounts for each file, and independent calls make a request of every piece.
const BY_MOUNT: [Job; 7] = [
    ("patterns", 4, &["-m", "coll"]),
    ("patterns", 4, &["-s", "0.001", "-m", "indep"]),
    ("patterns", 4, &["-m", "nonblocking"]),
    ("patterns", 4, &["-m", "split"]),
    ("explicit", 3, &[]),
    ("shared", 3, &[]),
    ("nonblocking_collective", 3, &[]),
];

/// Ranks on two nodes.
const VARIABLES: [&str; 4] = [
    "PARIO_NODES=2",
    "PARIO_THREADS=multiple",
    "UNSYNCED_ROUNDS=4",
    "UNSYNCED_MAP=0",
];

/// Stripes that an access of some pages spans.
const STRIPES: &str = "striping_factor=4;striping_unit=65536";

/// What the sessions of a trial's processes have in their metadata, besides its name.
const SESSION_KEY: &str = "pario_trial";

pub(super) fn trials(run: &Arc<Run>) -> Vec<Trial> {
    if std::env::var_os("PARIO_CEPHFS").is_none() {
        return Vec::new();
    }
    let mount = std::env::var("PARIO_CEPHFS_MOUNTS").ok();
    let mount = mount.and_then(|it| Some(it.split_once(':')?.0.to_owned()));
    let mut trials = Vec::new();
    for host in ["mpich", "openmpi"] {
        for job in BY_PREFIX {
            let detail = format!("{}+prefix", detail(job));
            trials.push(trial(run, host, "cephfs", &detail, move |run, host| {
                check(run, host, job, "cephfs:".into(), STRIPES)
            }));
        }
        let Some(mount) = &mount else { continue };
        for job in BY_MOUNT {
            let directory = Path::new(mount).join(format!("{host}-{}", detail(job)));
            let detail = format!("{}+mount", detail(job));
            trials.push(trial(run, host, "cephfs", &detail, move |run, host| {
                std::fs::create_dir(&directory).map_err(|error| error.to_string())?;
                let hints = format!("pario_driver=cephfs;{STRIPES}");
                check(run, host, job, directory.into(), &hints)
            }));
        }
    }
    trials
}

/// As in `patterns-4-coll`.
fn detail((name, ranks, arguments): Job) -> String {
    let last = arguments.last().map(|it| format!("-{it}"));
    format!("{name}-{ranks}{}", last.unwrap_or_default())
}

fn check(run: &Run, host: &Host, job: Job, directory: OsString, hints: &str) -> TestResult {
    let (name, ranks, arguments) = job;
    let program = Program::find("programs", name)?;
    let binary = program.compile(host, &[])?;
    let session = format!("{SESSION_KEY}={}-{}", host.name, detail(job));
    let line = host.launch_with(&[]).words(["-n", &ranks.to_string()]);
    let line = preloaded(run, line)?.words(VARIABLES);
    let line = line.word(format!("CEPH_ARGS=--client_metadata={session}"));
    let line = line.word(format!("PARIO_HINTS={hints}"));
    let line = line.word(&binary).word(directory).words(arguments);
    let ended = job::run(&line, LIMIT)?.success();
    let ended = ended.map_err(|reason| match evict(&session) {
        Ok(()) => reason,
        Err(also) => format!("{reason}\n{also}"),
    })?;
    has_checked(&ended, name)?;
    is_served(&ended)?;
    match ended.stderr.contains("left to the MPI") {
        true => Err(ended.complaint("a file was left to the MPI")),
        false => Ok(()),
    }
}

/// Ends the sessions of processes that a failed program has left behind. Otherwise the next program waits for what they
/// may have cached, until the cluster gives them up: ten minutes in that of `cargo xtask ceph`.
fn evict(session: &str) -> TestResult {
    let filter = format!("client_metadata.{session}");
    let line = Line::new("ceph").words(["tell", "mds.a", "client", "evict", &filter]);
    job::run(&line, LIMIT)?.success().map(drop)
}
