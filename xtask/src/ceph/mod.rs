//! `cargo xtask ceph`: pario on a real CephFS.

mod cluster;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{self, Outcome, cargo, program};
use cluster::Cluster;

/// Tests that need a CephFS: package and program. They are ignored otherwise.
const TESTS: [(&str, &str); 2] = [("pario-driver", "cephfs"), ("pario", "cephfs")];

/// Prints a table for the documentation, which takes minutes.
const TABLE: &str = "order_of_requests";

/// Why the tests did not succeed.
pub(crate) enum Unable {
    /// There can be no cluster here.
    NoCluster(String),
    Failed(String),
}

impl From<String> for Unable {
    fn from(reason: String) -> Unable {
        Unable::Failed(reason)
    }
}

/// Runs all tests that need a CephFS, and shows their output to `inspect`.
pub(crate) fn test(mut inspect: impl FnMut(&str)) -> Result<(), Unable> {
    let cluster = start()?;
    for (package, program) in TESTS {
        let mut test = cargo(&["test", "--package", package, "--test", program]);
        test.args(["--", "--ignored", "--test-threads=1", "--skip", TABLE]);
        in_cluster(&mut test, &cluster);
        shell::run_inspected(test, &mut inspect)?;
    }
    Ok(())
}

/// Runs a command with `CEPH_CONF` set.
pub(crate) fn run(command: &[&str]) -> Outcome {
    let Some((name, arguments)) = command.split_first() else {
        return Err("no command to run in the cluster".to_owned());
    };
    let cluster = start().map_err(|unable| match unable {
        Unable::NoCluster(reason) | Unable::Failed(reason) => reason,
    })?;
    let mut command = program(name, arguments);
    in_cluster(&mut command, &cluster);
    shell::run(command)
}

fn start() -> Result<Cluster, Unable> {
    cluster::install().map_err(Unable::NoCluster)?;
    Ok(Cluster::start(&directory())?)
}

/// In memory, as the objects are; short, because it is part of the names of sockets.
fn directory() -> PathBuf {
    let parent = match Path::new("/dev/shm").is_dir() {
        true => PathBuf::from("/dev/shm"),
        false => std::env::temp_dir(),
    };
    parent.join(format!("pario-ceph-{}", std::process::id()))
}

fn in_cluster(command: &mut Command, cluster: &Cluster) {
    command.env("CEPH_CONF", cluster.configuration());
}
