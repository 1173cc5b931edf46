//! Which MPI's launcher started this process.

use std::fs;
use std::path::{Path, PathBuf};

/// The two families of launchers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Mpich,
    OpenMpi,
}

/// File names of the libraries of MPICH and its derivatives.
const MPICH_NAMES: &[&str] = &[
    "libmpich.so.12",
    "libmpi.so.12",
    "libmpi_abi.so.1",
    "libmpi_abi.so.0",
];
/// File names of Open MPI's library.
const OPEN_MPI_NAMES: &[&str] = &["libmpi.so.40"];

/// Programs of launchers that are the ancestors of the processes they start.
const PROGRAMS: &[(&str, Family)] = &[
    ("hydra_pmi_proxy", Family::Mpich),
    ("hydra_bstrap_proxy", Family::Mpich),
    ("mpiexec.hydra", Family::Mpich),
    ("orterun", Family::OpenMpi),
    ("orted", Family::OpenMpi),
    ("prterun", Family::OpenMpi),
    ("prted", Family::OpenMpi),
    ("prte", Family::OpenMpi),
];

/// Variables that launchers set; the value is the number of processes if there is one.
const MARKS: &[(&str, Family)] = &[
    ("OMPI_COMM_WORLD_SIZE", Family::OpenMpi),
    ("PMI_SIZE", Family::Mpich),
];

/// Set by PMIx launchers of both families; it does not contain the number of processes.
const PMIX_MARK: &str = "PMIX_RANK";

/// The maximum number of ancestors to examine: there may be a shell or a wrapper in between.
const ANCESTORS_MAX: usize = 6;

/// What is known about the launcher.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Launcher {
    family: Option<Family>,
    /// The directory that contains the launcher's `bin` and `lib`.
    prefix: Option<PathBuf>,
    processes: Option<usize>,
}

/// Whether an MPI's launcher started this process, according to its variables.
pub fn is_launched() -> bool {
    let names = MARKS.iter().map(|(name, _)| *name).chain([PMIX_MARK]);
    names
        .into_iter()
        .any(|name| std::env::var_os(name).is_some())
}

impl Launcher {
    /// Examines the environment and this process's ancestors.
    pub(super) fn detect() -> Launcher {
        let mut launcher = Launcher::from_variables(|name| std::env::var(name).ok());
        let program = |path: PathBuf| program_family(&path).map(|family| (path, family));
        if is_launched()
            && let Some((path, family)) = ancestors().find_map(program)
        {
            launcher.family.get_or_insert(family);
            launcher.prefix = prefix_of(&path);
        }
        launcher
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Launcher {
        let mut marks = MARKS.iter();
        let found = marks.find_map(|(name, family)| Some((variable(name)?, *family)));
        Launcher {
            family: found.as_ref().map(|(_, family)| *family),
            prefix: None,
            processes: found.and_then(|(value, _)| value.parse().ok()),
        }
    }

    /// The number of processes that it started.
    pub(super) fn processes(&self) -> Option<usize> {
        self.processes
    }

    /// Libraries to try, in order.
    pub(super) fn candidates(&self) -> Vec<String> {
        let (first, second) = match self.family {
            Some(Family::Mpich) => (MPICH_NAMES, OPEN_MPI_NAMES),
            Some(Family::OpenMpi) | None => (OPEN_MPI_NAMES, MPICH_NAMES),
        };
        let mut candidates = Vec::new();
        if let Some(prefix) = &self.prefix {
            let directories = ["lib", "lib64"].map(|directory| prefix.join(directory));
            let files = directories
                .iter()
                .flat_map(|directory| first.iter().map(|name| directory.join(name)));
            let present = files.filter(|file| file.exists());
            candidates.extend(present.map(|file| file.to_string_lossy().into_owned()));
        }
        candidates.extend(first.iter().chain(second).map(|&name| name.to_owned()));
        candidates
    }
}

fn program_family(path: &Path) -> Option<Family> {
    let name = path.file_name()?.to_str()?;
    let mut programs = PROGRAMS.iter();
    programs.find_map(|(program, family)| (*program == name).then_some(*family))
}

/// The directory above the program's `bin`.
fn prefix_of(program: &Path) -> Option<PathBuf> {
    Some(program.parent()?.parent()?.to_owned())
}

/// The programs of this process's ancestors, nearest first.
fn ancestors() -> impl Iterator<Item = PathBuf> {
    let parent = |pid: &u32| parent_of(*pid).filter(|&parent| parent > 1);
    let pids = std::iter::successors(Some(std::process::id()), parent);
    pids.skip(1)
        .take(ANCESTORS_MAX)
        .filter_map(|pid| fs::read_link(format!("/proc/{pid}/exe")).ok())
}

fn parent_of(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Launcher {
        Launcher::from_variables(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn variables_tell_the_family_and_the_number() {
        let open_mpi = with(&[("OMPI_COMM_WORLD_SIZE", "4"), ("PMIX_RANK", "0")]);
        assert_eq!(open_mpi.family, Some(Family::OpenMpi));
        assert_eq!(open_mpi.processes(), Some(4));
        let mpich = with(&[("PMI_SIZE", "3"), ("PMI_RANK", "1")]);
        assert_eq!(mpich.family, Some(Family::Mpich));
        assert_eq!(mpich.processes(), Some(3));
        assert_eq!(with(&[]), Launcher::default());
    }

    #[test]
    fn the_launchers_own_library_is_tried_first() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        std::fs::create_dir(directory.path().join("lib")).expect("the directory is writable");
        let library = directory.path().join("lib/libmpi.so.12");
        std::fs::write(&library, "").expect("the directory is writable");
        let program = directory.path().join("bin/hydra_pmi_proxy");
        assert_eq!(program_family(&program), Some(Family::Mpich));
        let launcher = Launcher {
            prefix: prefix_of(&program),
            ..with(&[("PMI_SIZE", "2")])
        };
        let candidates = launcher.candidates();
        assert_eq!(Path::new(&candidates[0]), library);
        assert_eq!(
            candidates[1..],
            Launcher {
                prefix: None,
                ..launcher
            }
            .candidates()
        );
        assert_eq!(
            with(&[]).candidates()[..2],
            ["libmpi.so.40", "libmpich.so.12"]
        );
    }

    #[test]
    fn this_process_has_ancestors() {
        assert!(parent_of(std::process::id()).is_some());
    }
}
