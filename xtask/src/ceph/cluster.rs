//! A Ceph cluster on the loopback interface: one monitor, some OSDs that keep their objects in memory, one metadata
//! server and a file system, from Debian's packages, without authentication.
//!
//! The daemons are children of this process and end with it.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::shell::{Outcome, free_port};
use crate::{shell, tools};

const OSDS: usize = 4;

/// Commands of the cluster, and the packages that have them.
const PACKAGES: [(&str, &str); 5] = [
    ("ceph-mon", "ceph-mon"),
    ("ceph-osd", "ceph-osd"),
    ("ceph-mds", "ceph-mds"),
    ("ceph", "ceph-common"),
    ("ceph-fuse", "ceph-fuse"),
];

/// The library that the driver loads.
const LIBRARY_PACKAGE: &str = "libcephfs2";

/// A slow machine takes a quarter of a minute.
const START_MAX: Duration = Duration::from_secs(120);

/// How long daemons and clients may be silent, in seconds: after the default of a minute, clients are evicted.
const GRACE: u64 = 600;

/// A running cluster; stopped and removed when dropped.
pub(crate) struct Cluster {
    directory: PathBuf,
    daemons: Vec<Child>,
}

/// Installs what is missing of the packages.
pub(crate) fn install() -> Outcome {
    let is_missing =
        |(command, _): &&(&str, &str)| !shell::succeeds(shell::program(command, &["--version"]));
    let mut missing: Vec<&str> = PACKAGES.iter().filter(is_missing).map(|it| it.1).collect();
    let query = [
        "--show",
        "--showformat=${db:Status-Status}",
        LIBRARY_PACKAGE,
    ];
    let library = shell::quiet_output(shell::program("dpkg-query", &query));
    if library.is_none_or(|state| state != "installed") {
        missing.push(LIBRARY_PACKAGE);
    }
    match missing.is_empty() {
        true => Ok(()),
        false => tools::apt_install(&missing),
    }
}

impl Cluster {
    /// Starts a cluster with its files in a new directory.
    pub(crate) fn start(directory: &Path) -> Outcome<Cluster> {
        let started = Instant::now();
        let mut cluster = Cluster {
            directory: directory.to_owned(),
            daemons: Vec::new(),
        };
        for name in ["mon", "mds", "run"] {
            make(&directory.join(name))?;
        }
        let id = identifier()?;
        let address = format!("[v2:127.0.0.1:{}]", free_port()?);
        cluster.write("ceph.conf", &configuration(directory, &id, &address))?;
        let monitors = directory.join("monitors").display().to_string();
        let map = [
            "--create", "--fsid", &id, "--addv", "a", &address, &monitors,
        ];
        cluster.run("monmaptool", &map)?;
        let store = ["--mkfs", "-i", "a", "--monmap", &monitors];
        cluster.run("ceph-mon", &store)?;
        cluster.spawn("ceph-mon", "a")?;
        let osds: Vec<String> = (0..OSDS).map(|_| identifier()).collect::<Outcome<_>>()?;
        let commands: String = osds
            .iter()
            .enumerate()
            .map(|(number, id)| format!("osd new {id} {number}\n"))
            .collect();
        cluster.command(&commands)?;
        for (number, id) in osds.iter().enumerate() {
            let number = number.to_string();
            make(&directory.join(format!("osd.{number}")))?;
            cluster.run("ceph-osd", &["--mkfs", "-i", &number, "--osd-uuid", id])?;
            cluster.spawn("ceph-osd", &number)?;
        }
        // With pools that were created before their OSDs were up, the first mount hung
        // in two starts of three.
        let up = format!("{OSDS} up");
        cluster.wait_for("osd stat\n", &up, started)?;
        cluster.command(&format!(
            "osd pool create meta 8\nosd pool create data 32\nfs new files meta data\n\
             fs set files session_timeout {GRACE}\nfs set files session_autoclose {}\n",
            2 * GRACE
        ))?;
        cluster.spawn("ceph-mds", "a")?;
        cluster.wait_for("mds stat\n", "up:active", started)?;
        println!(
            "a CephFS with {OSDS} OSDs after {:.1} s",
            started.elapsed().as_secs_f64()
        );
        Ok(cluster)
    }

    /// Waits until the answer to a command contains a text.
    fn wait_for(&self, command: &str, text: &str, started: Instant) -> Outcome {
        while !self.command(command)?.contains(text) {
            if started.elapsed() > START_MAX {
                return Err(format!(
                    "the cluster does not start: `ceph {}` does not answer {text:?} after {} s",
                    command.trim(),
                    START_MAX.as_secs()
                ));
            }
            thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where the daemons have their admin sockets.
    pub(crate) fn sockets(&self) -> PathBuf {
        self.directory.join("run")
    }

    /// The configuration, for `CEPH_CONF`.
    pub(crate) fn configuration(&self) -> PathBuf {
        self.directory.join("ceph.conf")
    }

    /// Runs commands of the `ceph` tool, one per line, in one process: it takes half a second to start.
    fn command(&self, lines: &str) -> Outcome<String> {
        let mut tool = self.program("ceph");
        let cannot = |error: std::io::Error| format!("cannot run `ceph`: {error}");
        tool.stdin(Stdio::piped()).stdout(Stdio::piped());
        tool.stderr(self.log("ceph")?);
        let mut tool = tool.spawn().map_err(cannot)?;
        let mut input = tool.stdin.take().expect("stdin is piped");
        input.write_all(lines.as_bytes()).map_err(cannot)?;
        drop(input);
        let output = tool.wait_with_output().map_err(cannot)?;
        if !output.status.success() {
            return Err(self.explain("ceph", &lines.replace('\n', "; ")));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs a program that prepares a daemon.
    fn run(&self, name: &str, arguments: &[&str]) -> Outcome {
        let mut program = self.program(name);
        let log = self.log(name)?;
        let status = program
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(log)
            .status();
        match status {
            Ok(status) if status.success() => Ok(()),
            _ => Err(self.explain(name, &arguments.join(" "))),
        }
    }

    /// Starts a daemon in the foreground.
    fn spawn(&mut self, name: &str, id: &str) -> Outcome {
        let mut program = self.program(name);
        program.args(["-f", "-i", id]).stdin(Stdio::null());
        program.stdout(Stdio::null()).stderr(self.log(name)?);
        let daemon = program
            .spawn()
            .map_err(|error| format!("cannot start {name}: {error}"))?;
        self.daemons.push(daemon);
        Ok(())
    }

    fn program(&self, name: &str) -> Command {
        let mut program = Command::new(name);
        program.env("CEPH_CONF", self.configuration());
        program
    }

    /// Where the messages of a program go.
    fn log(&self, name: &str) -> Outcome<File> {
        let path = self.directory.join(format!("{name}.log"));
        let opened = File::options().create(true).append(true).open(&path);
        opened.map_err(|error| format!("cannot open {}: {error}", path.display()))
    }

    fn explain(&self, name: &str, arguments: &str) -> String {
        let log = fs::read_to_string(self.directory.join(format!("{name}.log")));
        format!(
            "`{name} {arguments}` failed: {}",
            log.unwrap_or_default().trim()
        )
    }

    fn write(&self, name: &str, text: &str) -> Outcome {
        let path = self.directory.join(name);
        fs::write(&path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // In the reverse order, so that nobody waits for a daemon that has gone. What a daemon has is
        // not needed any more.
        for daemon in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        if let Err(error) = fs::remove_dir_all(&self.directory) {
            eprintln!("cannot remove {}: {error}", self.directory.display());
        }
    }
}

fn make(directory: &Path) -> Outcome {
    fs::create_dir_all(directory)
        .map_err(|error| format!("cannot make {}: {error}", directory.display()))
}

fn identifier() -> Outcome<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/uuid");
    Ok(id
        .map_err(|error| format!("cannot get an identifier: {error}"))?
        .trim()
        .to_owned())
}

fn configuration(directory: &Path, id: &str, address: &str) -> String {
    let directory = directory.display();
    format!(
        "[global]\n\
         fsid = {id}\n\
         mon host = {address}\n\
         public network = 127.0.0.0/8\n\
         # Nobody else reaches these daemons.\n\
         auth cluster required = none\n\
         auth service required = none\n\
         auth client required = none\n\
         keyring = /dev/null\n\
         run dir = {directory}/run\n\
         admin socket = {directory}/run/$name.asok\n\
         log file = {directory}/$name.log\n\
         crash dir = {directory}\n\
         # One copy of each object, whichever OSD has it.\n\
         osd pool default size = 1\n\
         osd pool default min size = 1\n\
         osd crush chooseleaf type = 0\n\
         mon allow pool size one = true\n\
         osd pool default pg autoscale mode = off\n\
         # Everything here may be stopped for a minute. With the default of 20 s, requests were then seen to wait for\n\
         # minutes until their OSD could be read again, and the monitor gives up the metadata server.\n\
         osd heartbeat grace = {GRACE}\n\
         osd op thread timeout = {GRACE}\n\
         osd op thread suicide timeout = 0\n\
         mds beacon grace = {GRACE}\n\
         [mon]\n\
         mon data = {directory}/mon\n\
         mon data avail crit = 1\n\
         # Decisions of a single monitor need not be collected for a second.\n\
         paxos propose interval = 0.05\n\
         paxos min wait = 0.01\n\
         [osd]\n\
         osd data = {directory}/osd.$id\n\
         osd objectstore = memstore\n\
         memstore device bytes = 2G\n\
         # Objects in pages. In the default form, which has a fragment for each write, a write takes time in proportion to\n\
         # the number of writes before it: 8-byte pieces kept an OSD busy for minutes.\n\
         memstore page set = true\n\
         osd op num shards = 2\n\
         osd op num threads per shard = 1\n\
         # Requests are remembered, so that they can be counted.\n\
         osd op history size = 100000\n\
         osd op history duration = 3600\n\
         [mds]\n\
         mds data = {directory}/mds\n\
         mds tick interval = 0.1\n\
         [client]\n\
         admin socket =\n\
         log file =\n\
         client mount timeout = 60\n"
    )
}
