//! Programs on a CephFS, through its library: `cargo xtask ceph` starts one, names a directory of it that FUSE has
//! mounted in `PARIO_CEPHFS_MOUNTS` (the first of two, separated by a colon), and runs these trials.
//!
//! Programs that look at their files through POSIX do so through the mount, which is another client of the cluster.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use libtest_mimic::Trial;

use crate::host::Host;
use crate::job;
use crate::matrix::{LIMIT, has_checked, is_served, preloaded};
use crate::program::Program;
use crate::run::{Run, TestResult, trial};

/// Programs that use no name but those of MPI-IO, with the ranks of each.
const BY_PREFIX: [(&str, u32); 1] = [("unsynced", 4)];

/// Programs that also use names of the kernel.
const BY_MOUNT: [(&str, u32); 4] = [
    ("patterns", 4),
    ("explicit", 3),
    ("shared", 3),
    ("nonblocking_collective", 3),
];

/// Ranks on two nodes, and stripes that an access of some pages spans.
const VARIABLES: [&str; 3] = [
    "PARIO_NODES=2",
    "PARIO_THREADS=multiple",
    "UNSYNCED_ROUNDS=4",
];
const STRIPES: &str = "striping_factor=4;striping_unit=65536";

pub(super) fn trials(run: &Arc<Run>) -> Vec<Trial> {
    if std::env::var_os("PARIO_CEPHFS").is_none() {
        return Vec::new();
    }
    let mount = std::env::var("PARIO_CEPHFS_MOUNTS").ok();
    let mount = mount.and_then(|it| Some(it.split_once(':')?.0.to_owned()));
    let mut trials = Vec::new();
    for host in ["mpich", "openmpi"] {
        for (name, ranks) in BY_PREFIX {
            let detail = format!("{name}-{ranks}+prefix");
            trials.push(trial(run, host, "cephfs", &detail, move |run, host| {
                check(run, host, name, ranks, "cephfs:".into(), STRIPES)
            }));
        }
        let Some(mount) = &mount else { continue };
        for (name, ranks) in BY_MOUNT {
            let directory = Path::new(mount).join(format!("{host}-{name}"));
            let detail = format!("{name}-{ranks}+mount");
            trials.push(trial(run, host, "cephfs", &detail, move |run, host| {
                std::fs::create_dir(&directory).map_err(|error| error.to_string())?;
                let hints = format!("pario_driver=cephfs;{STRIPES}");
                check(run, host, name, ranks, directory.into(), &hints)
            }));
        }
    }
    trials
}

fn check(
    run: &Run,
    host: &Host,
    name: &str,
    ranks: u32,
    directory: OsString,
    hints: &str,
) -> TestResult {
    let program = Program::find("programs", name)?;
    let binary = program.compile(host, &[])?;
    let line = host.launch_with(&[]).words(["-n", &ranks.to_string()]);
    let line = preloaded(run, line)?.words(VARIABLES);
    let line = line.word(format!("PARIO_HINTS={hints}"));
    let line = line.word(&binary).word(directory);
    let ended = job::run(&line, LIMIT)?.success()?;
    has_checked(&ended, name)?;
    is_served(&ended)?;
    match ended.stderr.contains("left to the MPI") {
        true => Err(ended.complaint("a file was left to the MPI")),
        false => Ok(()),
    }
}
