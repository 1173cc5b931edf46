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

/// The MPIs whose programs run.
const MPIS: [Mpi; 2] = [Mpi::Mpich, Mpi::OpenMpi];

/// An MPI of Debian.
#[derive(Clone, Copy)]
enum Mpi {
    Mpich,
    OpenMpi,
}

impl Mpi {
    fn name(self) -> &'static str {
        match self {
            Mpi::Mpich => "mpich",
            Mpi::OpenMpi => "openmpi",
        }
    }

    fn compiler(self) -> &'static str {
        match self {
            Mpi::Mpich => "mpicc.mpich",
            Mpi::OpenMpi => "mpicc.openmpi",
        }
    }

    /// Starts ranks on the nodes, with the library preloaded into the ranks alone.
    fn launch(self, nodes: &[&str], per_node: usize, library: &Path) -> String {
        let (ranks, library) = (nodes.len() * per_node, library.display());
        match self {
            Mpi::Mpich => format!(
                "mpiexec.mpich -hosts {} -ppn {per_node} -n {ranks} -genv LD_PRELOAD {library} -genv PARIO_VERBOSE 1",
                nodes.join(",")
            ),
            Mpi::OpenMpi => {
                let hosts = nodes.iter().map(|name| format!("{name}:{per_node}"));
                let hosts: Vec<_> = hosts.collect();
                format!(
                    "mpirun.openmpi --host {} -n {ranks} -x LD_PRELOAD={library} -x PARIO_VERBOSE=1 \
                     -x UNSYNCED_ROUNDS -x UNSYNCED_LOCKS",
                    hosts.join(",")
                )
            }
        }
    }
}

/// A machine with other load takes minutes for a program.
const TIME_LIMIT: Duration = Duration::from_secs(1800);
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
    /// Compiled programs, each for every MPI.
    programs: Vec<(Mpi, PathBuf)>,
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
        let more: &[_] = match effort {
            Effort::Normal => &[],
            Effort::Long => &MORE_PROGRAMS,
        };
        let programs = PROGRAMS.iter().chain(more);
        let programs = programs.flat_map(|(from, name)| MPIS.map(|mpi| compile(mpi, from, name)));
        Ok(Tests {
            library: shell::target_directory().join("release/libpario.so"),
            programs: programs.collect::<Outcome<_>>()?,
            two_mounts: test_program("pario", "two_mounts")?,
            rounds: match effort {
                Effort::Normal => 4,
                Effort::Long => 300,
            },
        })
    }

    /// The script that the machine runs: every program with two ranks per node, and with one, then ranks of one node
    /// with a mount each.
    fn script(&self, setup: &Setup, effort: Effort) -> String {
        let nodes: Vec<_> = setup.names.split(' ').collect();
        let per_node: &[usize] = match effort {
            Effort::Normal => &[2],
            Effort::Long => &[1, 2],
        };
        // Without locks between nodes, atomic mode and the shared pointer are refused.
        let has_locks = !setup.mount_options.contains("nolock");
        let mut script = format!(
            "export UNSYNCED_LOCKS={} UNSYNCED_ROUNDS={}\n",
            u8::from(has_locks),
            self.rounds
        );
        for (mpi, program) in &self.programs {
            let name = program.file_stem().unwrap_or_default().to_string_lossy();
            if !has_locks && name != "unsynced" {
                continue;
            }
            for per_node in per_node {
                let launch = mpi.launch(&nodes, *per_node, &self.library);
                let ranks = per_node * nodes.len();
                let directory = format!("{}-{name}-{ranks}", mpi.name());
                script.push_str(&format!(
                    "mkdir /export/{directory}\n\
                     {launch} {} /nfs/{directory} >/run/out 2>&1 || {{ cat /run/out; exit 1; }}\n\
                     grep -q 'left to the MPI' /run/out && {{ cat /run/out; exit 1; }}\n\
                     grep 'checks passed' /run/out | sed 's/$/, {}, {ranks} ranks/'\n",
                    program.display(),
                    mpi.name(),
                ));
            }
        }
        if effort == Effort::Long && has_locks {
            script.push_str(&self.restarts(&nodes));
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
    fn restarts(&self, nodes: &[&str]) -> String {
        let Some((mpi, program)) = self.programs.first() else {
            return String::new();
        };
        format!(
            "mkdir /export/restarts\n\
             (for i in 1 2 3 4 5 6; do sleep 7; rpc.nfsd 0; sleep 3; rpc.nfsd 8; done) & restarts=$!\n\
             UNSYNCED_ROUNDS=60 {} {} /nfs/restarts >/run/out 2>&1 || {{ cat /run/out; exit 1; }}\n\
             wait $restarts\n\
             grep 'checks passed' /run/out | sed 's/$/, while the server restarted/'\n",
            mpi.launch(nodes, 1, &self.library),
            program.display(),
        )
    }
}

/// Compiles a program of the drop-in library's tests.
fn compile(mpi: Mpi, from: &str, name: &str) -> Outcome<(Mpi, PathBuf)> {
    let directory = shell::target_directory()
        .join("vm/programs")
        .join(mpi.name());
    fs::create_dir_all(&directory)
        .map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
    let source = shell::root()
        .join("crates/dropin/tests")
        .join(from)
        .join(format!("{name}.c"));
    let target = directory.join(name);
    let mut command = program(mpi.compiler(), &["-O1", "-o"]);
    command
        .arg(&target)
        .arg(source)
        .args(["-lpthread", "-ldl", "-lm"]);
    shell::run(command)?;
    Ok((mpi, target))
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
