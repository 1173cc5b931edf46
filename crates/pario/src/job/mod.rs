//! The job that this process belongs to, as far as one process can determine it: from the
//! variables of its launcher, and from `/proc`.

mod presence;
mod process;

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    io,
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixDatagram},
    },
    sync::{Mutex, OnceLock, PoisonError},
};

pub use process::{Environment, Process};

/// Variables in which launchers pass the rank of a process.
const RANK_VARIABLES: [&str; 4] = [
    "PMIX_RANK",
    "PMI_RANK",
    "OMPI_COMM_WORLD_RANK",
    "SLURM_PROCID",
];

/// Variables in which launchers pass the numbers of ranks on the node and in the job.
const SIZE_VARIABLES: [(&str, &str); 3] = [
    ("OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"),
    ("MPI_LOCALNRANKS", "PMI_SIZE"),
    ("SLURM_NNODES", ""),
];

/// Variables that distinguish jobs of one launcher: spawned programs are separate jobs.
const NAME_VARIABLES: [&str; 3] = ["PMIX_NAMESPACE", "PMI_SPAWNED", "SLURM_STEP_ID"];

type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The position of this process among those that one launcher started on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    rank: u32,
    rank_variable: &'static str,
    /// The nearest ancestor that does not belong to the job.
    launcher: Process,
    names: [Option<String>; NAME_VARIABLES.len()],
    is_on_one_node: bool,
}

impl Job {
    /// The job of this process, if it has a launcher that can be determined.
    pub fn current() -> Option<&'static Job> {
        static JOB: OnceLock<Option<Job>> = OnceLock::new();
        JOB.get_or_init(|| Job::find(&|name| std::env::var(name).ok()))
            .as_ref()
    }

    fn find(variable: Variable<'_>) -> Option<Job> {
        let (rank, rank_variable) = rank_of(variable)?;
        let mut launcher = Process::this()?.parent()?;
        while launcher.environment().get(rank_variable).is_some() {
            launcher = launcher.parent()?;
        }
        Some(Job {
            rank,
            rank_variable,
            launcher,
            names: NAME_VARIABLES.map(variable),
            is_on_one_node: is_on_one_node(variable),
        })
    }

    /// The rank of this process according to the launcher.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Whether all ranks are on this node according to the launcher.
    pub fn is_on_one_node(&self) -> bool {
        self.is_on_one_node
    }

    /// The processes of this job on this node with their ranks and environments: the ranks,
    /// their descendants, and the processes between them and the launcher. Fails if the kernel
    /// does not list children.
    pub fn processes(&self) -> io::Result<Vec<(u32, Process, Environment)>> {
        let mut found = Vec::new();
        let mut left = vec![self.launcher];
        while let Some(process) = left.pop() {
            for child in process.children()? {
                let environment = child.environment();
                if let Some(rank) = self.rank_in(&environment) {
                    found.push((rank, child, environment));
                }
                left.push(child);
            }
        }
        Ok(found)
    }

    /// The rank of a process of this job.
    fn rank_in(&self, environment: &Environment) -> Option<u32> {
        let variable = |name: &str| environment.get(name);
        let rank = variable(self.rank_variable)?.trim().parse().ok()?;
        (NAME_VARIABLES.map(variable) == self.names).then_some(rank)
    }

    /// Whether no process of this job on this node has claimed `what` before. A claim is the
    /// name of a socket, which the kernel removes when the process ends.
    pub(crate) fn claim(&self, what: &str) -> bool {
        static CLAIMED: Mutex<Vec<UnixDatagram>> = Mutex::new(Vec::new());
        let mut hasher = DefaultHasher::new();
        (what, &self.launcher, &self.names).hash(&mut hasher);
        let name = format!("pario-{}-{:016x}", self.launcher.id(), hasher.finish());
        let bound =
            SocketAddr::from_abstract_name(name).and_then(|it| UnixDatagram::bind_addr(&it));
        match bound {
            Ok(socket) => {
                let mut claimed = CLAIMED.lock().unwrap_or_else(PoisonError::into_inner);
                claimed.push(socket);
                true
            }
            Err(error) => error.kind() != io::ErrorKind::AddrInUse,
        }
    }
}

/// The rank of this process in its job, if a launcher passed it.
pub(crate) fn rank_in_job() -> Option<u32> {
    rank_of(&|name| std::env::var(name).ok()).map(|(rank, _)| rank)
}

fn rank_of(variable: Variable<'_>) -> Option<(u32, &'static str)> {
    let mut ranks = RANK_VARIABLES
        .iter()
        .filter_map(|name| Some((variable(name)?, *name)));
    let (rank, name) = ranks.next()?;
    Some((rank.trim().parse().ok()?, name))
}

fn is_on_one_node(variable: Variable<'_>) -> bool {
    SIZE_VARIABLES
        .iter()
        .any(|(local, all)| match (variable(local), variable(all)) {
            (Some(nodes), None) if all.is_empty() => nodes == "1",
            (Some(local), Some(all)) => local == all,
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with<T>(pairs: &[(&str, &str)], ask: impl FnOnce(Variable<'_>) -> T) -> T {
        ask(&|asked| {
            let pair = pairs.iter().find(|(name, _)| *name == asked);
            pair.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn launchers_pass_ranks() {
        let rank = |name, value| with(&[(name, value)], rank_of).map(|(rank, _)| rank);
        assert_eq!(rank("HOME", "1"), None, "no launcher");
        assert_eq!(rank("PMI_RANK", "0"), Some(0));
        assert_eq!(rank("SLURM_PROCID", "12"), Some(12));
        assert_eq!(rank("PMIX_RANK", "none"), None);
    }

    #[test]
    fn launchers_pass_numbers_of_ranks() {
        let hydra = |local| [("MPI_LOCALNRANKS", local), ("PMI_SIZE", "4")];
        assert!(with(&hydra("4"), is_on_one_node));
        assert!(!with(&hydra("2"), is_on_one_node));
        assert!(with(&[("SLURM_NNODES", "1")], is_on_one_node));
        assert!(!with(&[], is_on_one_node));
    }

    /// This process takes the part of a rank and its parent that of the launcher, which lacks
    /// the variable.
    #[test]
    fn the_launcher_is_the_first_ancestor_outside_of_the_job() {
        let job = with(&[("PMI_RANK", "3")], Job::find).expect("tests have a parent");
        assert_eq!(Some(job.launcher), Process::this().unwrap().parent());
        assert_eq!(job.rank(), 3);
        // This process was started without the variable, so it does not belong to the job.
        let ranks = job.processes().unwrap();
        assert!(
            ranks
                .iter()
                .all(|(_, process, _)| *process != Process::this().unwrap())
        );
    }

    #[test]
    fn a_claim_is_made_once() {
        let job = with(&[("PMI_RANK", "3")], Job::find).expect("tests have a parent");
        let other = with(&[("PMI_RANK", "0"), ("PMI_SPAWNED", "1")], Job::find).unwrap();
        let what = format!("claim of {}", std::process::id());
        assert!(job.claim(&what));
        assert!(!job.claim(&what));
        assert!(job.claim(&format!("another {what}")));
        assert!(other.claim(&what), "another job");
    }
}
