//! Ranks on several hosts, made of network, IPC, name and mount namespaces of this machine.
//!
//! Each host has its own /dev/shm and its own address; the launchers reach them through a
//! script in the place of ssh. The directory of the files is common to all. Links may be slow, and a
//! rank may be killed.

mod link;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;
use link::Link;

use super::nodes;
use crate::host::{Host, Launcher};
use crate::job::{self, Ended, Line};
use crate::matrix::{LIMIT, has_checked, is_left_to_host, is_served, preloaded, served_by};
use crate::place::{Ground, Place};
use crate::program::Program;
use crate::run::{Effort, Run, Skip, TestResult, skipped, trial};

const HOSTS: usize = 2;

/// Two ranks a host.
const RANKS: usize = 2 * HOSTS;

/// Addresses for documentation, which exist nowhere else.
const NETWORK: &str = "192.0.2";

/// Enough to set a namespace up.
const QUICK: Duration = Duration::from_secs(20);

/// Says that the files are to be reached by the driver for local file systems.
const NAMED_DRIVER: &str = "PARIO_HINTS=pario_driver=ufs";

/// A host that cannot be relied on over a network, and why.
const HANGS: (&str, &str) = (
    "mpich",
    "over TCP it hangs in MPI_Finalize now and then, without pario too (2 of 6 runs)",
);

const SUITE: &str = "several-hosts";

/// The arguments of `patterns` for slow links: dense and sparse data, in large and small pieces,
/// a few megabytes in total.
const SLOW: [&str; 6] = [
    "-m",
    "coll",
    "-w",
    "contig,strided64k,strided4k,tile,steps,small",
    "-s",
    "0.02",
];

/// The host whose launcher lets the others go on when a rank is killed, and how it is asked to.
const RECOVERS: (&str, &str) = ("openmpi", "--enable-recovery");

/// Hosts whose own MPI-IO looks up a name on rank 0 alone before it creates the file. The others
/// do so on every rank, and then fail to open a new file on two overlays, without pario too.
const CREATES_UNSEEN: &str = "openmpi";

/// Where overlays keep their files, next to where they are mounted.
const UPPER: &str = "upper";

/// In which a job must have ended that lost a rank.
const KILLED_LIMIT: Duration = Duration::from_secs(60);

/// In which the other ranks must have noticed. Open MPI 4's launcher does not end by itself if it
/// lost a rank and has a daemon on another host.
const NOTICED_LIMIT: Duration = Duration::from_secs(20);

/// Programs of the full form; the short one runs the exercise alone.
const PROGRAMS: [&str; 6] = [
    "explicit",
    "shared",
    "ordered",
    "nonblocking_collective",
    "split",
    "progress",
];

pub(super) fn trials(run: &Arc<Run>) -> Vec<Trial> {
    let mut trials = Vec::new();
    let hosts = super::hosts(run, &["mpich-new", "openmpi"]);
    for host in hosts {
        if host == HANGS.0 {
            trials.push(skipped(run, Skip::new(host, SUITE, HANGS.1)));
            continue;
        }
        let exercise = || super::program("exercise");
        trials.push(served(run, host, "exercise", exercise));
        trials.push(unknown_coherence(run, host));
        trials.push(slow_link(run, host));
        trials.push(killed_rank(run, host));
        if host == RECOVERS.0 {
            trials.push(survivors(run, host));
        }
        if run.effort == Effort::Full {
            for name in PROGRAMS {
                let program = move || Program::find("programs", name);
                trials.push(served(run, host, name, program));
            }
        }
    }
    trials
}

/// pario serves the files, with messages between the hosts.
fn served(
    run: &Arc<Run>,
    host: &'static str,
    name: &str,
    program: impl FnOnce() -> TestResult<Program> + Send + 'static,
) -> Trial {
    trial(run, host, SUITE, name, |run, host| {
        let program = program()?;
        let ended = run_across(run, host, &program, Common::Directory)?;
        has_checked(&ended, &program.name)?;
        is_spread(&ended)?;
        is_served(&ended)
    })
}

fn is_spread(ended: &Ended) -> TestResult {
    let spread = format!("pario: transport: {RANKS} ranks on {HOSTS} nodes");
    match ended.stderr.contains(&spread) {
        true => Ok(()),
        false => Err(ended.complaint("the ranks are not on all hosts")),
    }
}

/// The exchange over links with latency and little bandwidth: messages arrive late, and queues
/// fill up.
fn slow_link(run: &Arc<Run>, host: &'static str) -> Trial {
    trial(run, host, SUITE, "slow-link", |run, host| {
        let program = Program::find("programs", "patterns")?;
        let job = Job {
            arguments: &SLOW,
            link: Link::Slow,
            ..Job::default()
        };
        let ended = job.run(run, host, &program)?.success()?;
        has_checked(&ended, &program.name)?;
        is_spread(&ended)?;
        is_served(&ended)
    })
}

/// A rank is killed in the middle of its calls: the job ends.
fn killed_rank(run: &Arc<Run>, host: &'static str) -> Trial {
    trial(run, host, SUITE, "killed-rank", |run, host| {
        let job = Job {
            link: Link::Slow,
            limit: KILLED_LIMIT,
            ..Job::default()
        };
        let ended = job.run(run, host, &super::program("killed")?)?;
        if ended.has_timed_out() {
            return Err(ended.complaint("the job goes on without its rank"));
        }
        if ended.status.success() || !ended.says("killed: rank 1 goes") {
            return Err(ended.complaint("no rank was killed"));
        }
        is_spread(&ended)
    })
}

/// A rank is killed and the launcher lets the others go on: those of the other host are told by
/// a message over the slow link.
fn survivors(run: &Arc<Run>, host: &'static str) -> Trial {
    trial(run, host, SUITE, "survivors", |run, host| {
        let job = Job {
            options: &[RECOVERS.1],
            arguments: &["blocking"],
            link: Link::Slow,
            limit: NOTICED_LIMIT,
            ..Job::default()
        };
        let ended = job.run(run, host, &super::program("survivors")?)?;
        let is_told = |rank| ended.says(&format!("survivors: rank {rank}: "));
        match [0, 2, 3].into_iter().all(is_told) && !ended.says("no error") {
            true => is_spread(&ended),
            false => Err(ended.complaint("a rank waits for one that is gone, or got no error")),
        }
    })
}

/// Nothing says that two overlays over the same files are coherent: the host's own MPI-IO serves
/// the files, with one warning, even if a driver is named. One overlay that both hosts see has one
/// cache, so pario serves its files.
///
/// A kernel remembers for each overlay which names it has not found. Open MPI looks up a name before it
/// creates the file on rank 0 alone, and so must pario, or the other host would not find
/// the new file.
fn unknown_coherence(run: &Arc<Run>, host: &'static str) -> Trial {
    trial(run, host, SUITE, "unknown-coherence", |run, host| {
        let program = super::program("who")?;
        for common in [Common::OverlayEach, Common::NamedOverlayEach] {
            let job = Job {
                common,
                existing: (!host.name.starts_with(CREATES_UNSEEN)).then_some("file"),
                ..Job::default()
            };
            let ended = job.run(run, host, &program)?.success()?;
            has_checked(&ended, &program.name)?;
            is_left_to_host(&ended)?;
        }
        let ended = run_across(run, host, &program, Common::Overlay)?;
        served_by(&ended, &program.name, "pario")
    })
}

/// What the hosts have in common.
#[derive(Clone, Copy)]
enum Common {
    /// A directory of this machine.
    Directory,
    /// A file system of which pario does not know whether it is coherent, mounted once.
    Overlay,
    /// The same, mounted by each host.
    OverlayEach,
    /// The same, and a driver is named.
    NamedOverlayEach,
}

fn run_across(run: &Run, host: &Host, program: &Program, common: Common) -> TestResult<Ended> {
    let job = Job {
        common,
        ..Job::default()
    };
    job.run(run, host, program)?.success()
}

/// How a program runs across the hosts.
struct Job<'a> {
    common: Common,
    /// A file that both hosts have before the program starts.
    existing: Option<&'a str>,
    link: Link,
    /// Options of the launcher.
    options: &'a [&'a str],
    /// Arguments of the program, after the directory.
    arguments: &'a [&'a str],
    limit: Duration,
}

impl Default for Job<'_> {
    fn default() -> Self {
        Job {
            common: Common::Directory,
            existing: None,
            link: Link::Fast,
            options: &[],
            arguments: &[],
            limit: LIMIT,
        }
    }
}

impl Job<'_> {
    fn run(&self, run: &Run, host: &Host, program: &Program) -> TestResult<Ended> {
        let binary = program.compile(host, &[])?;
        let place = Place::new(Ground::Disk)?;
        let files = place.path().join("files");
        fs::create_dir(&files).map_err(|error| error.to_string())?;
        if let Some(name) = self.existing {
            let upper = place.path().join(UPPER);
            fs::create_dir(&upper).map_err(|error| error.to_string())?;
            write(&upper.join(name), "")?;
        }
        let network = Network::new(place.path(), self.common)?;
        network.set_link(self.link)?;
        let mut line = preloaded(run, network.launch(host, self.options)?)?;
        if nodes::needs_threads(host, &program.name) {
            line = line.word(format!("{}={}", nodes::THREADS.0, nodes::THREADS.1));
        }
        if let Common::NamedOverlayEach = self.common {
            line = line.word(NAMED_DRIVER);
        }
        let line = line.word(binary).word(&files).words(self.arguments);
        job::run(&network.inside(0, line), self.limit)
    }
}

/// Namespaces, each kept by a process that sleeps.
struct Network {
    keepers: Vec<Keeper>,
    /// What the launchers call instead of ssh.
    remote_shell: PathBuf,
}

/// Ends its process when it goes away, and with it the namespaces.
struct Keeper(Child);

impl Drop for Keeper {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Network {
    /// `place` holds the scripts, and the files in a directory.
    fn new(place: &Path, common: Common) -> TestResult<Self> {
        let ground = ground(place, common)?;
        let own_mount = |number| match common {
            Common::OverlayEach | Common::NamedOverlayEach => overlay(place, number),
            Common::Directory | Common::Overlay => "true".to_owned(),
        };
        let mut network = Network {
            keepers: Vec::new(),
            remote_shell: place.join("enter"),
        };
        for _ in 0..HOSTS {
            network.keepers.push(ground.split(place)?);
        }
        let names: String = (1..=HOSTS)
            .map(|number| format!("{NETWORK}.{number} node{number}\n"))
            .collect();
        let table = place.join("hosts");
        write(&table, &format!("127.0.0.1 localhost\n{names}"))?;
        network.connect()?;
        for index in 0..HOSTS {
            network.set_up(index, &table, &own_mount(index))?;
        }
        for index in 0..HOSTS {
            network.wait_for_cable(index)?;
        }
        write(&network.remote_shell, &network.enter_script())?;
        fs::set_permissions(&network.remote_shell, fs::Permissions::from_mode(0o755))
            .map_err(|error| error.to_string())?;
        Ok(network)
    }

    fn process(&self, index: usize) -> String {
        self.keepers[index].0.id().to_string()
    }

    /// A cable between the two hosts.
    fn connect(&self) -> TestResult {
        let [one, other] = [self.process(0), self.process(1)];
        let line = Line::new("ip")
            .words(["link", "add", "eth0", "netns", &one, "type", "veth"])
            .words(["peer", "name", "eth0", "netns", &other]);
        job::run(&line, QUICK)?.success().map(drop)
    }

    /// Address, name, /dev/shm, a /sys that shows the devices of this host, and what it mounts itself.
    fn set_up(&self, index: usize, table: &Path, own_mount: &str) -> TestResult {
        let number = index + 1;
        let script = format!(
            "ip addr add {NETWORK}.{number}/24 dev eth0 && ip link set eth0 up && \
             ip link set lo up && hostname node{number} && \
             mount -t tmpfs -o size=512m tmpfs /dev/shm && \
             mount -t sysfs sysfs /sys && \
             mount --bind '{}' /etc/hosts && {own_mount}",
            table.display()
        );
        let line = self.inside(index, Line::new("sh").words(["-c", &script]));
        job::run(&line, QUICK)?.success().map(drop)
    }

    /// A link is in use some moments after both its ends were.
    fn wait_for_cable(&self, index: usize) -> TestResult {
        let script = "until grep -q up /sys/class/net/eth0/operstate; do sleep 0.02; done";
        let line = self.inside(index, Line::new("sh").words(["-c", script]));
        job::run(&line, QUICK)?.success().map(drop)
    }

    /// The command on one of the hosts.
    fn inside(&self, index: usize, line: Line) -> Line {
        let mut inside = Line::new("nsenter")
            .words(["--target", &self.process(index)])
            .words(["--net", "--ipc", "--uts", "--mount"])
            .words(&line.words);
        inside.variables = line.variables;
        inside
    }

    /// Takes the arguments of ssh: options, a host, a command.
    fn enter_script(&self) -> String {
        let mut cases = String::new();
        for index in 0..HOSTS {
            let (number, process) = (index + 1, self.process(index));
            cases += &format!("node{number}|{NETWORK}.{number}) process={process};;\n");
        }
        format!(
            "#!/bin/sh\n\
             while :; do case \"$1\" in -*) shift;; *) break;; esac; done\n\
             case \"$1\" in\n{cases}*) echo \"there is no host $1\" >&2; exit 1;;\nesac\n\
             shift\n\
             exec nsenter --target $process --net --ipc --uts --mount sh -c \"$*\"\n"
        )
    }

    /// The host's launcher for ranks on all hosts, with more options.
    fn launch(&self, host: &Host, more: &[&str]) -> TestResult<Line> {
        let shell = self.remote_shell.to_str().ok_or("the path is not UTF-8")?;
        let ranks = RANKS.to_string();
        let nodes = "node1:2,node2:2";
        let options: &[&str] = match host.launcher {
            Launcher::Hydra => &["-launcher", "ssh", "-launcher-exec", shell, "-hosts", nodes],
            Launcher::Orte => &["--mca", "plm_rsh_agent", shell, "--host", nodes],
            // One that may put more ranks on a host than it has slots puts all on the first.
            Launcher::Prrte => &[
                "--prtemca",
                "plm_ssh_agent",
                shell,
                "--host",
                nodes,
                "--map-by",
                "node:oversubscribe",
            ],
        };
        let line = host.launch_with(&[options, more].concat());
        let line = line.words(["-n", &ranks]);
        // UCX and Intel's library know the machine by other things than its namespaces.
        Ok(line
            .variable("UCX_TLS", "tcp,self")
            .variable("UCX_NET_DEVICES", "eth0")
            .variable("I_MPI_FABRICS", "ofi")
            .variable("FI_PROVIDER", "tcp"))
    }
}

/// Mounts an overlay over the files.
fn overlay(place: &Path, number: usize) -> String {
    let place = place.display();
    format!(
        "cd '{place}' && mkdir -p lower {UPPER} work{number} && mount -t overlay overlay \
         -o index=off,lowerdir=lower,upperdir={UPPER},workdir=work{number} files"
    )
}

/// The mounts that the hosts have in common; each then goes on with a copy.
fn ground(place: &Path, common: Common) -> TestResult<Keeper> {
    let mount = match common {
        Common::Overlay => overlay(place, 0),
        Common::Directory | Common::OverlayEach | Common::NamedOverlayEach => "true".to_owned(),
    };
    let unshare = ["unshare", "--mount", "--propagation", "private"];
    keeper(place, Line::default().words(unshare), &mount)
}

impl Keeper {
    /// New namespaces of all kinds, with a copy of this one's mounts.
    fn split(&self, place: &Path) -> TestResult<Keeper> {
        let line = Line::new("nsenter")
            .words(["--target", &self.0.id().to_string(), "--mount", "unshare"])
            .words([
                "--net",
                "--ipc",
                "--uts",
                "--mount",
                "--propagation",
                "private",
            ]);
        keeper(place, line, "true")
    }
}

/// Starts a process that enters namespaces by `line`, prepares them by a script, and sleeps.
fn keeper(place: &Path, line: Line, script: &str) -> TestResult<Keeper> {
    let ready = place.join("ready");
    let script = format!("{script} && touch '{}' && exec sleep 300", ready.display());
    let line = line.words(["sh", "-c", &script]);
    let child = Command::new(&line.words[0])
        .args(&line.words[1..])
        .spawn()
        .map_err(|error| format!("cannot start unshare: {error}"))?;
    let keeper = Keeper(child);
    for _ in 0..500 {
        if fs::remove_file(&ready).is_ok() {
            return Ok(keeper);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err("no new namespaces; that needs root".into())
}

fn write(path: &Path, text: &str) -> TestResult {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}
