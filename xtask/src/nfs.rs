//! `cargo xtask nfs`: pario on a real NFS server with several client nodes, in a virtual machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::shell::{self, Outcome, cargo, program};
use crate::vm::{Machine, Nodes};

/// How much to run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// NFS 4.2 and 3, two nodes, a few programs: for every change.
    Normal,
    /// More programs and rounds, four nodes, other exports and mount options, restarts of the server.
    Long,
}

/// Programs of the drop-in library's tests, from those directories.
const PROGRAMS: [(&str, &str); 3] = [
    ("programs", "unsynced"),
    ("programs", "atomicity"),
    ("programs", "shared"),
];
const MORE_PROGRAMS: [(&str, &str); 8] = [
    ("programs", "explicit"),
    ("programs", "individual"),
    ("programs", "manage"),
    ("programs", "nonblocking"),
    ("programs", "nonblocking_collective"),
    ("programs", "ordered"),
    ("programs", "patterns"),
    ("programs", "split"),
];

/// A slow machine takes half a minute for server and nodes alone.
const TIME_LIMIT: Duration = Duration::from_secs(600);
const LONG_TIME_LIMIT: Duration = Duration::from_secs(3600);

/// One machine: NFS version, export, nodes and mount options.
struct Setup {
    version: &'static str,
    export: &'static str,
    names: &'static str,
    mount_options: &'static str,
}

const fn setup(version: &'static str, export: &'static str, names: &'static str) -> Setup {
    Setup {
        version,
        export,
        names,
        mount_options: "",
    }
}

const SETUPS: [Setup; 2] = [setup("4.2", "ext4", "a b"), setup("3", "ext4", "a b")];
const MORE_SETUPS: [Setup; 2] = [
    setup("4.2", "ext4", "a b c d"),
    Setup {
        mount_options: ",nolock",
        ..setup("3", "ext4", "a b")
    },
];

/// What runs in the machine.
struct Tests {
    library: PathBuf,
    /// Compiled programs.
    programs: Vec<PathBuf>,
    /// Test programs of crates, built by cargo.
    two_mounts: PathBuf,
    rounds: u32,
}

/// Why the tests cannot run here, if they cannot.
pub(crate) enum Unable {
    /// There can be no machine.
    NoMachine(String),
    Failed(String),
}

impl From<String> for Unable {
    fn from(reason: String) -> Unable {
        Unable::Failed(reason)
    }
}

/// Runs a script for bash where the tests run.
pub(crate) fn run_script(script: &Path) -> Outcome {
    let text = fs::read_to_string(script)
        .map_err(|error| format!("cannot read {}: {error}", script.display()))?;
    print!("{}", Machine::prepare()?.run(&two_nodes(&text))?);
    Ok(())
}

/// Two nodes with NFS 4.2.
fn two_nodes(script: &str) -> Nodes<'_> {
    Nodes {
        version: "4.2",
        export: "ext4",
        mount_options: "",
        names: "a b",
        script,
        time_limit: LONG_TIME_LIMIT,
    }
}

/// Counts RPCs of some patterns with the MPI's own MPI-IO and with pario, and prints both.
pub(crate) fn count_rpcs() -> Outcome {
    let machine = Machine::prepare()?;
    shell::run(cargo(&["build", "--release", "--package", "pario-dropin"]))?;
    let library = shell::target_directory().join("release/libpario.so");
    let counter = shell::target_directory().join("vm/rpcs");
    let mut command = program("mpicc.mpich", &["-O1", "-o"]);
    command
        .arg(&counter)
        .arg(shell::root().join("xtask/vm/rpcs.c"));
    shell::run(command)?;
    let launch = "mpiexec.mpich -hosts a,b -n 2";
    let (library, counter) = (library.display(), counter.display());
    let script = format!(
        "mkdir /export/own /export/pario\n\
         echo 'RPCs per call of a rank: write, read'\n\
         echo \"the MPI's own MPI-IO:\"\n{launch} {counter} /nfs/own\n\
         echo pario:\n{launch} -genv LD_PRELOAD {library} {counter} /nfs/pario\n\
         echo pario, pario_rmw=locked:\n\
         {launch} -genv LD_PRELOAD {library} -genv PARIO_HINTS pario_rmw=locked {counter} /nfs/pario\n"
    );
    print!("{}", machine.run(&two_nodes(&script))?);
    Ok(())
}

/// Runs the tests and prints what they print.
pub(crate) fn run(effort: Effort) -> Result<(), Unable> {
    let machine = Machine::prepare().map_err(Unable::NoMachine)?;
    let tests = Tests::build(effort)?;
    let more: &[Setup] = match effort {
        Effort::Normal => &[],
        Effort::Long => &MORE_SETUPS,
    };
    for setup in SETUPS.iter().chain(more) {
        println!(
            "NFS {} on {}{}, nodes {}",
            setup.version, setup.export, setup.mount_options, setup.names
        );
        let output = machine.run(&Nodes {
            version: setup.version,
            export: setup.export,
            mount_options: setup.mount_options,
            names: setup.names,
            script: &tests.script(setup, effort),
            time_limit: match effort {
                Effort::Normal => TIME_LIMIT,
                Effort::Long => LONG_TIME_LIMIT,
            },
        })?;
        print!("{output}");
    }
    Ok(())
}

impl Tests {
    fn build(effort: Effort) -> Outcome<Tests> {
        shell::run(cargo(&["build", "--release", "--package", "pario-dropin"]))?;
        let directory = shell::target_directory().join("vm/programs");
        fs::create_dir_all(&directory)
            .map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
        let more: &[_] = match effort {
            Effort::Normal => &[],
            Effort::Long => &MORE_PROGRAMS,
        };
        let programs = PROGRAMS.iter().chain(more);
        let programs = programs.map(|(from, name)| compile(from, name, &directory));
        Ok(Tests {
            library: shell::target_directory().join("release/libpario.so"),
            programs: programs.collect::<Outcome<_>>()?,
            two_mounts: test_program("pario", "two_mounts")?,
            rounds: match effort {
                Effort::Normal => 16,
                Effort::Long => 300,
            },
        })
    }

    /// The script that the machine runs: every program with two ranks per node, and with one, then ranks of one node
    /// with a mount each.
    fn script(&self, setup: &Setup, effort: Effort) -> String {
        let hosts = setup.names.replace(' ', ",");
        let nodes = setup.names.split(' ').count();
        let per_run = match effort {
            Effort::Normal => vec![2 * nodes],
            Effort::Long => vec![nodes, 2 * nodes],
        };
        // Without locks between nodes, atomic mode and the shared pointer are refused.
        let has_locks = !setup.mount_options.contains("nolock");
        let mut script = String::from("export UNSYNCED_LOCKS=");
        script.push_str(if has_locks { "1\n" } else { "0\n" });
        script.push_str(&format!("export UNSYNCED_ROUNDS={}\n", self.rounds));
        for program in &self.programs {
            let name = program.file_stem().unwrap_or_default().to_string_lossy();
            if !has_locks && name != "unsynced" {
                continue;
            }
            for ranks in &per_run {
                script.push_str(&format!(
                    "mkdir -p /export/{name}-{ranks}\n\
                     LD_PRELOAD= mpiexec.mpich -hosts {hosts} -ppn {} -n {ranks} -genv LD_PRELOAD {} \
                     -genv PARIO_VERBOSE 1 {} /nfs/{name}-{ranks} >/run/out 2>&1 || {{ cat /run/out; exit 1; }}\n\
                     grep -q 'left to the MPI' /run/out && {{ cat /run/out; exit 1; }}\n\
                     grep 'checks passed' /run/out | sed 's/$/, {ranks} ranks/'\n",
                    ranks / nodes,
                    self.library.display(),
                    program.display(),
                ));
            }
        }
        if effort == Effort::Long && has_locks {
            script.push_str(&self.restarts(&hosts, nodes));
        }
        if has_locks {
            script.push_str(&format!(
                "PARIO_TWO_MOUNTS=/mnt/a:/mnt/b PARIO_SERVER=/export {} --test-threads=1\n",
                self.two_mounts.display()
            ));
        }
        script
    }
}

impl Tests {
    /// The server goes away for some seconds, again and again, while a program opens, writes, reads and locks.
    fn restarts(&self, hosts: &str, nodes: usize) -> String {
        let Some(program) = self.programs.first() else {
            return String::new();
        };
        format!(
            "mkdir -p /export/restarts\n\
             (for i in 1 2 3 4 5 6; do sleep 7; rpc.nfsd 0; sleep 3; rpc.nfsd 8; done) & restarts=$!\n\
             UNSYNCED_ROUNDS=60 mpiexec.mpich -hosts {hosts} -n {nodes} -genv LD_PRELOAD {} {} /nfs/restarts \
             >/run/out 2>&1 || {{ cat /run/out; exit 1; }}\n\
             wait $restarts\n\
             grep 'checks passed' /run/out | sed 's/$/, while the server restarted/'\n",
            self.library.display(),
            program.display(),
        )
    }
}

fn compile(from: &str, name: &str, to: &Path) -> Outcome<PathBuf> {
    let source = shell::root()
        .join("crates/dropin/tests")
        .join(from)
        .join(format!("{name}.c"));
    let target = to.join(name);
    let mut command = program("mpicc.mpich", &["-O1", "-o"]);
    command
        .arg(&target)
        .arg(source)
        .args(["-lpthread", "-ldl", "-lm"]);
    shell::run(command)?;
    Ok(target)
}

/// Builds a test of a package and returns its program.
fn test_program(package: &str, name: &str) -> Outcome<PathBuf> {
    let arguments = ["test", "--no-run", "--package", package, "--test", name];
    let mut command = cargo(&arguments);
    command.arg("--message-format=json");
    let messages = shell::output(command)?;
    let mut quoted = messages.lines().filter_map(|line| {
        let (_, rest) = line.split_once("\"executable\":\"")?;
        Some(rest.split_once('"')?.0)
    });
    let program = quoted.next_back().map(PathBuf::from);
    program.ok_or_else(|| format!("cargo did not name the program of the test {name}"))
}
