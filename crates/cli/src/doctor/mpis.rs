//! The MPIs and launchers on this machine.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::probe::{self, Probed};
use super::report::Finding;
use crate::run::launcher::{COMMON_NAMES, Launcher, is_common_launcher, version_text};
use crate::run::{find_program, find_programs};

/// Prefixes of the names of MPI libraries; further letters before `.so` mean other libraries of the
/// same MPI, except for Cray's, which name the compiler.
const LIBRARIES: [&str; 6] = [
    "libmpi.so",
    "libmpich.so",
    "libmpi_abi.so",
    "libmpi_cray.so",
    "libmpi_gnu",
    "libmpi_intel",
];

/// Launchers that are not named mpirun or mpiexec.
const LAUNCHERS: [&str; 5] = ["orterun", "prterun", "srun", "jsrun", "aprun"];

/// Variables that name the directory of an MPI.
const DIRECTORY_VARIABLES: [&str; 6] = [
    "I_MPI_ROOT",
    "MPI_HOME",
    "MPI_ROOT",
    "MPICH_DIR",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
];

/// Library directories below such a directory.
const LIBRARY_DIRECTORIES: [&str; 3] = ["lib", "lib64", "lib/release"];

/// Where the dynamic linker's cache can be read.
const LDCONFIG: [&str; 3] = ["ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig"];

/// Every MPI library that was found, and whether it is supported.
pub(super) fn libraries(dropin: Option<&Path>) -> Vec<Finding> {
    let found = candidates();
    let findings: Vec<_> = found
        .iter()
        .map(|library| finding(library, probe::probe(library), dropin))
        .collect();
    match findings.is_empty() {
        false => findings,
        true => vec![Finding::missing("none", "no MPI library was found").remark(
            "install one, or set PARIO_MPI_LIBRARY to the path of its libmpi.so; ranks that are \
             threads or forked processes need none",
        )],
    }
}

fn finding(library: &Path, probed: Result<Probed, String>, dropin: Option<&Path>) -> Finding {
    let subject = library.display().to_string();
    match probed {
        // Other programs may use it: this is not an error.
        Err(reason) => Finding::note(subject, format!("not supported: {reason}")),
        Ok(it) => {
            let served = match dropin {
                Some(_) => "supported: use `pario run`, or link libpario.so before it",
                None => "supported, but libpario.so is missing",
            };
            Finding::good(
                subject,
                format!("{} ({}, MPI {})", it.version, it.flavour, it.standard),
            )
            .remark(served)
            .remark(format!(
                "nonblocking collective calls between nodes progress {}",
                it.progress
            ))
        }
    }
}

/// Files that look like MPI libraries, each once.
fn candidates() -> BTreeSet<PathBuf> {
    let named = env::var_os(pario_mpi::LIBRARY_VARIABLE).map(PathBuf::from);
    let mut files: Vec<PathBuf> = named.into_iter().chain(cached()).collect();
    for directory in directories() {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        files.extend(
            entries
                .map(|entry| entry.path())
                .filter(|path| is_library(path)),
        );
    }
    // Links with several names may refer to one file.
    files
        .iter()
        .filter_map(|file| file.canonicalize().ok())
        .collect()
}

fn is_library(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    LIBRARIES.iter().any(|library| name.starts_with(library)) && name.contains(".so")
}

/// Directories that may contain MPI libraries outside the linker's cache.
fn directories() -> Vec<PathBuf> {
    let mut prefixes: Vec<PathBuf> = DIRECTORY_VARIABLES
        .iter()
        .filter_map(|name| env::var_os(name).map(PathBuf::from))
        .collect();
    let launchers = programs().into_iter();
    prefixes.extend(launchers.filter_map(|it| Some(it.parent()?.parent()?.to_owned())));
    let below = |prefix: PathBuf| LIBRARY_DIRECTORIES.map(|directory| prefix.join(directory));
    let mut directories: Vec<_> = prefixes.into_iter().flat_map(below).collect();
    if let Some(path) = env::var_os("LD_LIBRARY_PATH") {
        directories.extend(env::split_paths(&path).filter(|it| !it.as_os_str().is_empty()));
    }
    directories
}

/// MPI libraries of the dynamic linker's cache.
fn cached() -> Vec<PathBuf> {
    let output = LDCONFIG.iter().find_map(|program| {
        let mut command = Command::new(program);
        command.arg("-p").stdin(Stdio::null());
        command
            .output()
            .ok()
            .filter(|output| output.status.success())
    });
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.unwrap_or_default();
    let paths = text.lines().filter_map(|line| line.split_once(" => "));
    paths
        .map(|(_, path)| PathBuf::from(path.trim()))
        .filter(|path| is_library(path))
        .collect()
}

/// Every launcher in the search path.
pub(super) fn launchers() -> Vec<Finding> {
    let default = COMMON_NAMES
        .iter()
        .find_map(|name| find_program(name.as_ref()));
    let programs = programs();
    if programs.is_empty() {
        return vec![Finding::note(
            "none",
            "PATH has no mpirun, mpiexec, srun, jsrun or aprun",
        )];
    }
    let first = default.as_deref().and_then(|it| it.canonicalize().ok());
    let finding = |program: &PathBuf| {
        let launcher = Launcher::of(program);
        let version = version_text(program);
        // The name, and for Hydra the version below it.
        let version: Vec<_> = version
            .lines()
            .take(2)
            .flat_map(str::split_whitespace)
            .collect();
        let version = match version.is_empty() {
            true => "does not report its version".to_owned(),
            false => version.join(" "),
        };
        let used = match Some(program) == first.as_ref() {
            true => ", the default `mpirun`",
            false => "",
        };
        let subject = program.display().to_string();
        let found = format!("{}{used}: {version}", launcher.name());
        match launcher {
            Launcher::Environment => Finding::note(subject, found).remark(
                "`pario run` preloads through its environment; if that is not passed to ranks, \
                 start them with `pario exec PROGRAM`",
            ),
            _ => Finding::good(subject, found),
        }
    };
    programs.iter().map(finding).collect()
}

/// The files of launchers in the search path.
fn programs() -> BTreeSet<PathBuf> {
    let is_launcher = |name: &str| LAUNCHERS.contains(&name) || is_common_launcher(name);
    find_programs(is_launcher)
        .iter()
        .filter_map(|program| program.canonicalize().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_an_mpi_are_distinguished_from_its_helpers() {
        for name in [
            "libmpi.so.40.30.4",
            "libmpich.so.12",
            "libmpi_abi.so.1",
            "libmpi_gnu_123.so.12",
        ] {
            assert!(is_library(Path::new(name)), "{name}");
        }
        for name in [
            "libmpi_cxx.so.40",
            "libmpichfort.so.12",
            "libmpi_gnu.a",
            "libmpi.a",
        ] {
            assert!(!is_library(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn launchers_are_distinguished_from_their_helpers() {
        assert!(is_common_launcher("mpirun"));
        assert!(is_common_launcher("mpiexec.hydra"));
        assert!(!is_common_launcher("mpirun_rsh_helper"));
    }
}
