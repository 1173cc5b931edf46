//! `cargo xtask nfs`: pario on a real NFS server with several client nodes, in a virtual machine.

mod mpi;
mod nodes;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::artifacts;
use crate::machine::{Machine, PARTS};
use crate::shell::Outcome;
use mpi::{MPIS, Mpi};
use nodes::Nodes;

/// How much to run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// NFS 4.2 and 3, two nodes, a few programs: for every change.
    Normal,
    /// More programs and rounds, four nodes, other exports and mount options, restarts of the server.
    Long,
}

/// Programs of the drop-in library's tests.
const PROGRAMS: [&str; 4] = ["unsynced", "atomicity", "shared", "split"];
const MORE_PROGRAMS: [&str; 7] = [
    "explicit",
    "individual",
    "manage",
    "nonblocking",
    "nonblocking_collective",
    "ordered",
    "patterns",
];

/// All patterns with about 1 MB each: messages between the nodes move a few MB/s.
const PATTERNS_ARGUMENTS: &str = " -s 0.004 -m coll,indep";

/// For how long files are opened, written and read while the server restarts.
const RESTARTS_SECONDS: u32 = 90;

/// A machine with other load takes minutes for a program.
const PART_SECONDS: u32 = 1200;
/// For everything in a machine.
const TIME_LIMIT: Duration = Duration::from_secs(3600);
const LONG_TIME_LIMIT: Duration = Duration::from_secs(4 * 3600);

/// Rounds of `unsynced`: of most runs, and of the long ones, one per machine.
const ROUNDS: u32 = 4;
const MANY_ROUNDS: u32 = 300;

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
    /// A program of MPICH's that bears restarts of the server.
    restarts: PathBuf,
    /// Test programs of crates, built by cargo.
    two_mounts: PathBuf,
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
pub(crate) fn run_script(script: &Path, version: &str, names: &str) -> Outcome {
    let text = fs::read_to_string(script)
        .map_err(|error| format!("cannot read {}: {error}", script.display()))?;
    let machine = nodes::prepare()?;
    print!("{}", nodes(version, names, &text).run(&machine)?);
    Ok(())
}

fn nodes<'a>(version: &'a str, names: &'a str, script: &'a str) -> Nodes<'a> {
    Nodes {
        version,
        export: "ext4",
        mount_options: "",
        names,
        script,
        time_limit: LONG_TIME_LIMIT,
    }
}

/// Counts RPCs of some patterns with the MPI's own MPI-IO and with pario on two and four nodes, and prints them.
pub(crate) fn count_rpcs() -> Outcome {
    let machine = nodes::prepare()?;
    let library = artifacts::library()?;
    let counter = Mpi::Mpich.compile("xtask/vm/rpcs.c")?;
    let counter = counter.display();
    for names in ["a b", "a b c d"] {
        let hosts: Vec<_> = names.split(' ').collect();
        let own = Mpi::Mpich.launch(&machine, &hosts, 1, None);
        let pario = Mpi::Mpich.launch(&machine, &hosts, 1, Some(&library));
        let script = format!(
            "mkdir /export/own /export/pario\n\
             echo 'nodes {names}, RPCs per call of a rank: write, read'\n\
             echo \"the MPI's own MPI-IO:\"\n{own} {counter} /nfs/own\n\
             echo pario:\n{pario} {counter} /nfs/pario 2>/dev/null\n"
        );
        print!("{}", nodes("4.2", names, &script).run(&machine)?);
    }
    Ok(())
}

impl Setup {
    fn name(&self) -> String {
        let nodes = self.names.split(' ').count();
        format!("NFS {}{}, {nodes} nodes", self.version, self.mount_options)
    }
}

/// Runs the tests in the machines whose names contain a word, and prints what they print.
pub(crate) fn run(effort: Effort, word: &str) -> Result<(), Unable> {
    let machine = nodes::prepare().map_err(Unable::NoMachine)?;
    let tests = Tests::build(effort)?;
    let more: &[Setup] = match effort {
        Effort::Normal => &[],
        Effort::Long => &MORE_SETUPS,
    };
    let mut failures = Vec::new();
    let setups = SETUPS.iter().chain(more);
    for setup in setups.filter(|it| it.name().contains(word)) {
        println!("{}", setup.name());
        let nodes = Nodes {
            version: setup.version,
            export: setup.export,
            mount_options: setup.mount_options,
            names: setup.names,
            script: &tests.script(&machine, setup, effort),
            time_limit: match effort {
                Effort::Normal => TIME_LIMIT,
                Effort::Long => LONG_TIME_LIMIT,
            },
        };
        match nodes.run(&machine) {
            Ok(output) => print!("{output}"),
            Err(failure) => {
                println!("{failure}");
                failures.push(setup.name());
            }
        }
    }
    match failures.is_empty() {
        true => Ok(()),
        false => Err(Unable::Failed(format!("failed: {}", failures.join("; ")))),
    }
}

impl Tests {
    fn build(effort: Effort) -> Outcome<Tests> {
        let more: &[_] = match effort {
            Effort::Normal => &[],
            Effort::Long => &MORE_PROGRAMS,
        };
        let programs = PROGRAMS.iter().chain(more);
        let sources = programs.map(|name| format!("crates/dropin/tests/programs/{name}.c"));
        let mut compiled = Vec::new();
        for source in sources {
            for mpi in MPIS {
                compiled.push((mpi, mpi.compile(&source)?));
            }
        }
        Ok(Tests {
            library: artifacts::library()?,
            programs: compiled,
            restarts: Mpi::Mpich.compile("xtask/vm/restarts.c")?,
            two_mounts: artifacts::test_program("pario", "two_mounts")?,
        })
    }

    /// The script that the machine runs: the programs with two ranks per node, or one on more nodes, then ranks of one
    /// node with a mount each.
    fn script(&self, machine: &Machine, setup: &Setup, effort: Effort) -> String {
        let nodes: Vec<_> = setup.names.split(' ').collect();
        // There is one processor for all of them.
        let is_large = nodes.len() > 2;
        let per_node = if is_large { 1 } else { 2 };
        // Without locks between nodes, atomic mode and the shared pointer are refused.
        let has_locks = !setup.mount_options.contains("nolock");
        let mut script = format!(
            "{PARTS}export UNSYNCED_LOCKS={} UNSYNCED_ROUNDS={ROUNDS} PART_SECONDS={PART_SECONDS}\n",
            u8::from(has_locks),
        );
        for (mpi, program) in &self.programs {
            let name = program.file_stem().unwrap_or_default().to_string_lossy();
            let is_left_out = is_large && MORE_PROGRAMS.contains(&&*name);
            if is_left_out || !has_locks && name != "unsynced" {
                continue;
            }
            let launch = mpi.launch(machine, &nodes, per_node, Some(&self.library));
            let (ranks, program) = (per_node * nodes.len(), program.display());
            let directory = format!("{}-{name}-{ranks}", mpi.name());
            let (variables, arguments) = match &*name {
                // MPICH 4.0 makes no progress for pario in `MPI_Recv` (docs/progress.md); its launcher passes
                // variables on.
                "nonblocking_collective" => ("PARIO_THREADS=multiple ", ""),
                "patterns" => ("", PATTERNS_ARGUMENTS),
                _ => ("", ""),
            };
            script.push_str(&format!(
                "mkdir /export/{directory}\n\
                 {variables}part {directory} {launch} {program} /nfs/{directory}{arguments}\n",
            ));
        }
        if effort == Effort::Long && !is_large {
            script.push_str(&self.many_rounds(machine, &nodes));
        }
        if effort == Effort::Long && has_locks {
            script.push_str(&self.restarts(machine, &nodes));
        }
        if has_locks {
            script.push_str(&format!(
                "export PARIO_TWO_MOUNTS=/mnt/a:/mnt/b PARIO_SERVER=/export\npart two-mounts {} --test-threads=1\n",
                self.two_mounts.display()
            ));
        }
        script.push_str("end_parts\n");
        script
    }

    /// One rank per node, for longer.
    fn many_rounds(&self, machine: &Machine, nodes: &[&str]) -> String {
        let unsynced = self.programs.iter().find(|(mpi, program)| {
            matches!(mpi, Mpi::Mpich) && program.file_stem().is_some_and(|name| name == "unsynced")
        });
        let Some((mpi, program)) = unsynced else {
            return String::new();
        };
        format!(
            "mkdir /export/rounds\n\
             UNSYNCED_ROUNDS={MANY_ROUNDS} part {MANY_ROUNDS}-rounds {} {} /nfs/rounds\n",
            mpi.launch(machine, nodes, 1, Some(&self.library)),
            program.display()
        )
    }

    /// The server goes away for two seconds, again and again, while a program opens, writes, reads and locks. Every other
    /// time it does not wait for its clients to reclaim their locks, which are lost then.
    fn restarts(&self, machine: &Machine, nodes: &[&str]) -> String {
        format!(
            "mkdir /export/restarts\n\
             restart() {{ rpc.nfsd 0; sleep 2; rpc.nfsd 8; }}\n\
             (while :; do sleep 6; restart; sleep 20; restart; echo Y >/proc/fs/nfsd/v4_end_grace; sleep 10; done) & loop=$!\n\
             part restarts {} {} /nfs/restarts {RESTARTS_SECONDS}\n\
             kill $loop; wait $loop || true; rpc.nfsd 8\n",
            Mpi::Mpich.launch(machine, nodes, 1, Some(&self.library)),
            self.restarts.display(),
        )
    }
}
