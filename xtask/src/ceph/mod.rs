//! `cargo xtask ceph`: pario on a real CephFS.

mod cluster;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::fuse::{self, mount::Mount};
use crate::shell::{self, Outcome, cargo, program};
use cluster::Cluster;

/// Tests that need a CephFS: package, program and filter. They are ignored otherwise.
const TESTS: [(&str, &str, &str); 3] = [
    ("pario-driver", "cephfs", ""),
    ("pario", "faults", "cephfs"),
    ("pario", "oracle", "cephfs"),
];

/// One of these has the cluster evict all clients, so that mounts cannot be used any more.
const LAST_TESTS: (&str, &str, &str) = ("pario", "cephfs", "");

/// Random cases of each program; most of what they do is a request to a server.
const CASES: &str = "200";

/// Methods of `pario bench` that write and read every workload, and the factor on its data. Independent calls make a
/// request of each piece, down to 8 bytes.
const WORKLOADS: [(&str, &str); 2] = [
    ("automatic,two-phase,icollective", "0.02"),
    ("independent,nonblocking", "0.001"),
];

/// How much is tested.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The driver, and random cases.
    Driver,
    /// Also programs under real MPIs, and mounts.
    All,
}

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

/// Runs all tests that need a CephFS, even after one has failed, and shows their output to `inspect`.
pub(crate) fn test(scope: Scope, mut inspect: impl FnMut(&str)) -> Result<(), Unable> {
    let cluster = start()?;
    let mounts = match File::open("/dev/fuse") {
        _ if scope == Scope::Driver => None,
        Ok(_) => Some(mounts(&cluster)?),
        Err(error) => {
            println!("no tests on mounts: cannot open /dev/fuse: {error}");
            None
        }
    };
    let mut failures = Vec::new();
    let mut run = |mut test: Command| {
        in_cluster(&mut test, &cluster);
        if let Some(mounts) = &mounts {
            test.env("PARIO_CEPHFS_MOUNTS", fuse::both(mounts));
        }
        let started = Instant::now();
        if let Err(reason) = shell::run_inspected(test, &mut inspect) {
            println!("FAILED: {reason}");
            failures.push(reason);
        }
        println!("took {:.0} s", started.elapsed().as_secs_f64());
    };
    for of in TESTS {
        run(tests(of));
    }
    if scope == Scope::All {
        // First: an OSD with as many records as it keeps drops those of its fastest requests, new or old.
        run(server_order(&cluster));
    }
    for (methods, scale) in WORKLOADS {
        run(workloads(methods, scale));
    }
    if scope == Scope::All {
        run(programs()?);
    }
    if let Some(mounts) = &mounts {
        run(fuse::tests_of_two_mounts(mounts));
    }
    run(tests(LAST_TESTS));
    match failures.is_empty() {
        true => Ok(()),
        false => Err(Unable::Failed(failures.join("\n"))),
    }
}

fn tests((package, program, filter): (&str, &str, &str)) -> Command {
    let mut test = cargo(&["test", "--package", package, "--test", program]);
    test.args(["--", "--ignored", "--test-threads=1", filter]);
    test.env("PARIO_CASES", CASES);
    test
}

/// The access patterns of the literature. Each rank is a process, and so a client of its own. The command fails if a byte
/// of the file is wrong, or one that was read.
fn workloads(methods: &str, scale: &str) -> Command {
    let mut bench = pario(&["bench", "--dir", "cephfs:/", "--workload", "all"]);
    bench.args(["--method", methods, "--transport", "processes"]);
    bench.args(["--nodes", "2", "--scale", scale, "--repeats", "1"]);
    // Stripes that the small accesses span.
    bench.args(["--hint", "striping_factor=4", "--hint", "striping_unit=64k"]);
    bench
}

/// Requests as the OSDs received them, by some methods: the command fails if any are missing.
fn server_order(cluster: &Cluster) -> Command {
    let mut bench = pario(&["bench", "server-order", "--dir", "cephfs:/"]);
    bench.args(["--nodes", "2", "--method", "by-server"]);
    bench.args(["--method", "resonant", "--osd-sockets"]);
    bench.arg(cluster.sockets());
    bench
}

fn pario(arguments: &[&str]) -> Command {
    let mut run = cargo(&["run", "--package", "pario-cli", "--"]);
    run.args(arguments);
    run
}

/// Programs under real MPIs.
fn programs() -> Outcome<Command> {
    shell::run(cargo(&["build", "--release", "--package", "pario-dropin"]))?;
    let arguments = ["test", "--package", "pario-dropin", "--test", "hosts"];
    let mut test = cargo(&arguments);
    test.args(["--", "/cephfs/"]).env("PARIO_CEPHFS", "1");
    Ok(test)
}

/// Mounts the file system twice through FUSE.
fn mounts(cluster: &Cluster) -> Outcome<[Mount; 2]> {
    let mount = |name: &str| {
        let point = cluster.directory().join(name);
        let mut client = program("ceph-fuse", &["-f"]);
        // Programs also look at files through the mount that other clients change. With its object
        // cache, ceph-fuse 16.2 leaves one of several readers waiting forever now and then.
        client.args(["--fuse_disable_pagecache=true", "--client_oc=false"]);
        client.arg(&point);
        in_cluster(&mut client, cluster);
        Mount::start(&point, client)
    };
    Ok([mount("mount-a")?, mount("mount-b")?])
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
