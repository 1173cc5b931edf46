//! The MPIs whose programs run in the virtual machine.

use std::fs;
use std::path::{Path, PathBuf};

use crate::machine::Machine;
use crate::shell::{self, Outcome, program};

pub(super) const MPIS: [Mpi; 2] = [Mpi::Mpich, Mpi::OpenMpi];

/// How long a program of the drop-in library's tests may take, less than the part of the script that runs it, so that it
/// reports where it is. The machine has one processor, which may be shared with other work.
const WATCHDOG: &str = "-DCHECK_SECONDS=1140";

/// An MPI of Debian.
#[derive(Clone, Copy)]
pub(super) enum Mpi {
    Mpich,
    OpenMpi,
}

impl Mpi {
    pub(super) fn name(self) -> &'static str {
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

    /// Compiles a program, given by the path of its source.
    pub(super) fn compile(self, source: &str) -> Outcome<PathBuf> {
        let directory = shell::target_directory()
            .join("vm/programs")
            .join(self.name());
        fs::create_dir_all(&directory)
            .map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
        let source = shell::root().join(source);
        let target = directory.join(source.file_stem().unwrap_or_default());
        let mut command = program(self.compiler(), &["-O1", WATCHDOG, "-o"]);
        command
            .arg(&target)
            .arg(source)
            .args(["-lpthread", "-ldl", "-lm"]);
        shell::run(command)?;
        Ok(target)
    }

    /// Starts ranks on the nodes, if need be with pario's library preloaded into the ranks alone.
    pub(super) fn launch(
        self,
        machine: &Machine,
        nodes: &[&str],
        per_node: usize,
        pario: Option<&Path>,
    ) -> String {
        let ranks = nodes.len() * per_node;
        let pario = pario.map(|library| library.display().to_string());
        match self {
            Mpi::Mpich => {
                let finalize = machine.finalize().display().to_string();
                let libraries: Vec<_> = [Some(finalize), pario].into_iter().flatten().collect();
                format!(
                    "mpiexec.mpich -hosts {} -ppn {per_node} -n {ranks} -genv PARIO_VERBOSE 1 -genv LD_PRELOAD {}",
                    nodes.join(","),
                    libraries.join(":")
                )
            }
            Mpi::OpenMpi => {
                let hosts = nodes.iter().map(|name| format!("{name}:{per_node}"));
                let hosts: Vec<_> = hosts.collect();
                let preload = pario.map_or_else(String::new, |library| {
                    format!(" -x LD_PRELOAD={library} -x PARIO_VERBOSE=1")
                });
                format!(
                    "mpirun.openmpi --host {} -n {ranks}{preload} -x UNSYNCED_ROUNDS -x UNSYNCED_LOCKS",
                    hosts.join(",")
                )
            }
        }
    }
}
