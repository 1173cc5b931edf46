//! `cargo xtask fuse`: pario on FUSE file systems that are mounted twice, as on two nodes.

mod gluster;
pub(crate) mod mount;
mod sshfs;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::artifacts;
use crate::shell::{self, Outcome, cargo};
use crate::tools;
use mount::Mount;

/// Commands, and the packages that have them.
const PACKAGES: [(&str, &str); 4] = [
    ("glusterfsd", "glusterfs-server"),
    ("glusterfs", "glusterfs-client"),
    ("sshfs", "sshfs"),
    ("fusermount3", "fuse3"),
];

/// Mounts each file system twice and runs the tests on it.
pub(crate) fn run() -> Outcome {
    install()?;
    let directory = scratch("pario-fuse")?;
    for cache in gluster::Cache::ALL {
        println!("\nGlusterFS, {cache:?}");
        let volume = directory.path().join(format!("{cache:?}"));
        test_two_mounts(gluster::Volume::start(&volume, cache)?.mounts())?;
    }
    println!("\nsshfs");
    test_two_mounts(&sshfs::mount_twice(&directory.path().join("sshfs"))?)
}

fn install() -> Outcome {
    let is_missing =
        |(command, _): &&(&str, &str)| !shell::succeeds(shell::program(command, &["--version"]));
    let mut missing: Vec<&str> = PACKAGES.iter().filter(is_missing).map(|it| it.1).collect();
    if !Path::new(sshfs::SERVER).exists() {
        missing.push("openssh-sftp-server");
    }
    match missing.is_empty() {
        true => Ok(()),
        false => tools::apt_install(&missing),
    }
}

fn test_two_mounts(mounts: &[Mount; 2]) -> Outcome {
    shell::run(tests_of_two_mounts(mounts))?;
    let mut programs = artifacts::mounted_programs(artifacts::MOUNTED)?;
    programs.env("PARIO_FUSE_MOUNTS", both(mounts));
    shell::run(programs)
}

/// The tests of ranks on one of two mounts and on both.
pub(crate) fn tests_of_two_mounts(mounts: &[Mount; 2]) -> Command {
    let arguments = ["test", "--package", "pario", "--test", "fuse_mounts"];
    let mut test = cargo(&arguments);
    test.args(["--", "--ignored", "--test-threads=1"]);
    test.env("PARIO_FUSE_MOUNTS", both(mounts));
    test
}

/// The two mount points, separated by a colon.
pub(crate) fn both(mounts: &[Mount; 2]) -> String {
    let [first, second] = mounts;
    format!("{}:{}", first.point().display(), second.point().display())
}

/// A directory that is removed with this value.
struct Scratch(PathBuf);

impl Scratch {
    fn path(&self) -> &Path {
        &self.0
    }
}

fn scratch(name: &str) -> Outcome<Scratch> {
    let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
    mount::make(&path)?;
    Ok(Scratch(path))
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("cannot remove {}: {error}", self.0.display());
        }
    }
}
