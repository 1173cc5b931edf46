//! The MPIs on this machine, each with a working launcher.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::launch::{self, Launch};
use super::protocol::{Described, Line};
use crate::failure::Failure;
use crate::run::launcher::{COMMON_NAMES, is_common_launcher};
use crate::run::{find_program, find_programs};

/// MPI libraries below a directory given by the user, those that belong to its launcher
/// first.
const LIBRARIES: [&str; 8] = [
    "lib/libmpi.so.40",
    "lib64/libmpi.so.40",
    "lib/libmpi.so.12",
    "lib64/libmpi.so.12",
    "lib/libmpich.so.12",
    "lib64/libmpich.so.12",
    "lib/libmpi_abi.so.1",
    "lib/libmpi_abi.so.0",
];

/// Families by words in the version strings of their libraries; the first match counts.
const FAMILIES: [(&str, &str); 5] = [
    ("Intel", "Intel MPI"),
    ("MVAPICH", "MVAPICH"),
    ("Open MPI", "Open MPI"),
    ("CRAY", "Cray MPICH"),
    ("MPICH", "MPICH"),
];

/// An MPI that ranks can be started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mpi {
    /// A short name with the version.
    pub(crate) name: String,
    pub(crate) launcher: PathBuf,
    /// The library that ranks load, if the launcher does not determine it.
    pub(crate) named_library: Option<PathBuf>,
    pub(crate) described: Described,
}

/// Whether to search for MPIs in addition to those given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    /// The whole search path.
    Machine,
    /// Only those given.
    Named,
}

/// The MPIs found, and a line for each launcher that cannot be used.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// MPIs, each library once.
    pub(crate) mpis: Vec<Mpi>,
    /// Launchers that cannot be used, and why.
    pub(crate) notes: Vec<String>,
}

/// A launcher, and the library if it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    launcher: PathBuf,
    library: Option<PathBuf>,
}

/// Starts a rank with every launcher to find out which MPI it has.
pub(crate) fn find(named: &[OsString], search: Search) -> Result<Found, Failure> {
    let mut candidates = Vec::new();
    if search == Search::Machine {
        candidates.extend(in_path());
    }
    for name in named {
        candidates.push(named_candidate(name).map_err(Failure::Arguments)?);
    }
    let mut found = Found::default();
    for candidate in candidates {
        match describe(&candidate) {
            Ok(described) => found.add(candidate, described),
            Err(reason) => found.notes.push(format!(
                "{} cannot be used: {reason}",
                candidate.launcher.display()
            )),
        }
    }
    found.number_equal_names();
    match found.mpis.is_empty() {
        false => Ok(found),
        true => Err(Failure::Arguments(none(&found.notes))),
    }
}

fn none(notes: &[String]) -> String {
    let mut text =
        "no MPI to compare with: PATH has no working mpirun or mpiexec, and --mpi names none"
            .to_owned();
    for note in notes {
        text.push_str("; ");
        text.push_str(note);
    }
    text
}

impl Found {
    fn add(&mut self, candidate: Candidate, described: Described) {
        let file = |library: &str| fs::canonicalize(library).unwrap_or_else(|_| library.into());
        let library = file(&described.library);
        let is_known = |mpi: &Mpi| file(&mpi.described.library) == library;
        if self.mpis.iter().any(is_known) {
            return;
        }
        self.mpis.push(Mpi {
            name: name(&described),
            launcher: candidate.launcher,
            named_library: candidate.library,
            described,
        });
    }

    /// Numbers MPIs of the same name.
    fn number_equal_names(&mut self) {
        let names: Vec<_> = self.mpis.iter().map(|mpi| mpi.name.clone()).collect();
        for (index, mpi) in self.mpis.iter_mut().enumerate() {
            let before = names[..index].iter().filter(|name| **name == mpi.name);
            match before.count() {
                0 => {}
                count => mpi.name = format!("{} #{}", mpi.name, count + 1),
            }
        }
    }
}

/// Launchers in the search path, `mpirun` and its variants before `mpiexec`.
fn in_path() -> Vec<Candidate> {
    let mut launchers = find_programs(is_common_launcher);
    launchers.sort_by_key(|it| {
        let name = it.file_name().unwrap_or_default().to_string_lossy();
        !name.starts_with(COMMON_NAMES[0])
    });
    let candidate = |launcher| Candidate {
        launcher,
        library: None,
    };
    launchers.into_iter().map(candidate).collect()
}

/// The MPI given by the user as its directory or a launcher.
fn named_candidate(name: &OsString) -> Result<Candidate, String> {
    let path = Path::new(name);
    if !path.is_dir() {
        let launcher = find_program(name).ok_or_else(|| {
            let name = path.display();
            format!("--mpi {name}: neither a directory with bin/mpirun nor a launcher")
        })?;
        return Ok(Candidate {
            launcher,
            library: None,
        });
    }
    // Ranks may start in other directories.
    let prefix = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let launchers = COMMON_NAMES.map(|name| prefix.join("bin").join(name));
    let launcher = launchers
        .into_iter()
        .find(|it| find_program(it.as_os_str()).is_some())
        .ok_or_else(|| format!("--mpi {}: no bin/mpirun in this directory", path.display()))?;
    let libraries = LIBRARIES.map(|file| prefix.join(file));
    Ok(Candidate {
        launcher,
        library: libraries.into_iter().find(|file| file.exists()),
    })
}

/// Starts one rank that reports its MPI.
fn describe(candidate: &Candidate) -> Result<Described, String> {
    let mut arguments: Vec<OsString> = vec!["--describe".into()];
    if let Some(library) = &candidate.library {
        arguments.extend(["--mpi-library".into(), library.into()]);
    }
    let launch = Launch {
        launcher: &candidate.launcher,
        ranks: 1,
        worker: super::worker::NAME,
        arguments,
        time_max: launch::DESCRIBE_TIME_MAX,
        scratch: None,
    };
    let mut described = None;
    launch.run(&mut |line| {
        if let Line::Mpi(it) = line {
            described = Some(it);
        }
    })?;
    described.ok_or_else(|| "its rank reported no MPI".to_owned())
}

/// Family and version.
fn name(described: &Described) -> String {
    let version = &described.version;
    let family = FAMILIES.iter().find(|(word, _)| version.contains(word));
    let family = family.map_or(described.flavour.as_str(), |(_, name)| name);
    let is_number = |word: &&str| word.starts_with(|first: char| first.is_ascii_digit());
    let words = version
        .split([' ', ',', ':'])
        .map(|word| word.trim_start_matches('v'));
    let number = words
        .into_iter()
        .find(|word| is_number(word) && word.contains('.'));
    let abi = match described.library.contains("libmpi_abi") {
        true => ", standard ABI",
        false => "",
    };
    format!(
        "{family}{}{}{abi}",
        if number.is_some() { " " } else { "" },
        number.unwrap_or("")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(version: &str, library: &str) -> Described {
        Described {
            flavour: "MPICH".to_owned(),
            library: library.to_owned(),
            version: version.to_owned(),
        }
    }

    #[test]
    fn names_are_family_and_version() {
        for (version, expected) in [
            (
                "MPICH Version: 4.0.2 MPICH Release date: Thu",
                "MPICH 4.0.2",
            ),
            (
                "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4",
                "Open MPI 4.1.4",
            ),
            (
                "Intel(R) MPI Library 2021.17 for Linux* OS",
                "Intel MPI 2021.17",
            ),
            ("something else", "MPICH"),
        ] {
            assert_eq!(name(&described(version, "libmpi.so")), expected);
        }
        let standard = described("MPICH Version: 5.0.2", "/lib/libmpi_abi.so.0");
        assert_eq!(name(&standard), "MPICH 5.0.2, standard ABI");
    }

    #[test]
    fn a_library_is_taken_once_and_equal_names_are_numbered() {
        let mut found = Found::default();
        let candidate = |launcher: &str| Candidate {
            launcher: launcher.into(),
            library: None,
        };
        found.add(
            candidate("mpirun"),
            described("MPICH Version: 4.0.2", "/a/libmpi.so"),
        );
        found.add(
            candidate("mpiexec"),
            described("MPICH Version: 4.0.2", "/a/libmpi.so"),
        );
        found.add(
            candidate("other"),
            described("MPICH Version: 4.0.2", "/b/libmpi.so"),
        );
        found.number_equal_names();
        let names: Vec<_> = found.mpis.iter().map(|mpi| mpi.name.as_str()).collect();
        assert_eq!(names, ["MPICH 4.0.2", "MPICH 4.0.2 #2"]);
        assert_eq!(found.mpis[0].launcher, Path::new("mpirun"));
    }

    #[test]
    fn what_is_named_must_exist() {
        let error = named_candidate(&"/nowhere/at/all".into()).unwrap_err();
        assert!(error.contains("neither a directory"), "{error}");
        let directory = tempfile::tempdir().unwrap();
        let error = named_candidate(&directory.path().into()).unwrap_err();
        assert!(error.contains("no bin/mpirun"), "{error}");
        assert!(is_common_launcher("mpirun.mpich") && !is_common_launcher("mpirun_rsh_helper"));
    }
}
