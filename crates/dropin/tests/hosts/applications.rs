//! Libraries and programs that people run.
//!
//! Each writes a file with pario and one without it. Both must be the same to a reader that
//! knows nothing of MPI; then each side reads what the other wrote.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;

use crate::host::Host;
use crate::job::{self, Line};
use crate::matrix::{LIMIT, has_checked, is_served, preloaded};
use crate::place::{Ground, Place};
use crate::program::Program;
use crate::run::{Effort, Run, TestResult, trial};

/// Enough for a tool that reads a small file.
const QUICK: Duration = Duration::from_secs(30);

/// How two files are compared without MPI.
#[derive(Clone, Copy)]
enum Comparison {
    /// Byte by byte.
    Bytes,
    /// By HDF5's own tool: the places of things in a file may differ.
    H5diff,
    /// As text of NetCDF's own tool.
    Ncdump,
}

/// How an application is made.
#[derive(Clone, Copy)]
enum Kind {
    /// A C program, and how its library is found.
    Compiled(fn(&Host) -> TestResult<Vec<String>>),
    /// A script for the host's Python.
    Script,
}

struct Application {
    name: &'static str,
    kind: Kind,
    comparison: Comparison,
    /// Where there is a library or package for it.
    hosts: &'static [&'static str],
}

const APPLICATIONS: [Application; 5] = [
    Application {
        name: "mpi4py_files",
        kind: Kind::Script,
        comparison: Comparison::Bytes,
        hosts: &["openmpi", "mpich-new", "openmpi-new", "impi"],
    },
    Application {
        name: "hdf5",
        kind: Kind::Compiled(hdf5_flags),
        comparison: Comparison::H5diff,
        hosts: &["mpich", "openmpi"],
    },
    Application {
        name: "h5py_files",
        kind: Kind::Script,
        comparison: Comparison::H5diff,
        hosts: &["openmpi"],
    },
    Application {
        name: "pnetcdf",
        kind: Kind::Compiled(pnetcdf_flags),
        comparison: Comparison::Ncdump,
        hosts: &["openmpi"],
    },
    Application {
        name: "netcdf4",
        kind: Kind::Compiled(netcdf_flags),
        comparison: Comparison::Ncdump,
        hosts: &["openmpi"],
    },
];

/// The trials of all applications.
pub(crate) fn trials(run: &Arc<Run>) -> Vec<Trial> {
    let ranks: &[u32] = match run.effort {
        Effort::Short => &[3],
        Effort::Full => &[1, 2, 3, 4],
    };
    let mut trials = Vec::new();
    for application in &APPLICATIONS {
        for host in application.hosts {
            for &ranks in ranks {
                let (name, detail) = (application.name, ranks.to_string());
                trials.push(trial(run, host, name, &detail, move |run, host| {
                    application.round_trips(run, host, ranks)
                }));
            }
        }
    }
    trials
}

/// Who serves the file of a job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Server {
    Pario,
    Host,
}

impl Application {
    fn round_trips(&self, run: &Run, host: &Host, ranks: u32) -> TestResult {
        let command = self.command(host)?;
        let place = Place::new(Ground::Memory)?;
        let [ours, theirs] = ["pario", "host"].map(|name| place.path().join(name));
        let job = |server, path: &Path, how| {
            let mut line = host.launch(ranks);
            if server == Server::Pario {
                line = preloaded(run, line)?;
            }
            line = line.words(&command.words).word(path).word(how);
            let ended = job::run(&line, LIMIT)?.success()?;
            has_checked(&ended, self.name)?;
            match server {
                Server::Pario => is_served(&ended),
                Server::Host => Ok(()),
            }
        };
        job(Server::Pario, &ours, "write")?;
        job(Server::Host, &theirs, "write")?;
        self.comparison.compare(&ours, &theirs)?;
        job(Server::Host, &ours, "read")?;
        job(Server::Pario, &theirs, "read")
    }

    /// What is put behind the launcher.
    fn command(&self, host: &Host) -> TestResult<Line> {
        match self.kind {
            Kind::Compiled(flags) => {
                let program = Program::find("applications", self.name)?;
                Ok(Line::new(program.compile(host, &flags(host)?)?))
            }
            Kind::Script => Ok(Line::new(host.python()).word(script(self.name))),
        }
    }
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/applications")
        .join(format!("{name}.py"))
}

impl Comparison {
    fn compare(self, ours: &Path, theirs: &Path) -> TestResult {
        match self {
            Comparison::Bytes => {
                let read = |path| fs::read(path).map_err(|error| format!("no file: {error}"));
                if read(ours)? == read(theirs)? {
                    return Ok(());
                }
                Err("the files that pario and the host wrote differ".into())
            }
            Comparison::H5diff => {
                let line = Line::new("h5diff")
                    .word("--verbose")
                    .word(ours)
                    .word(theirs);
                job::run(&line, QUICK)?.success().map(drop)
            }
            Comparison::Ncdump => {
                let dump = |path: &Path| {
                    let line = Line::new("ncdump").words(["-n", "file"]).word(path);
                    Ok::<_, String>(job::run(&line, QUICK)?.success()?.stdout)
                };
                if dump(ours)? == dump(theirs)? {
                    return Ok(());
                }
                Err("ncdump shows that the files that pario and the host wrote differ".into())
            }
        }
    }
}

fn hdf5_flags(host: &Host) -> TestResult<Vec<String>> {
    let package = format!("hdf5-{}", host.name);
    let mut flags = pkg_config(&["--cflags", "--libs", &package])?;
    flags.push("-lhdf5".into());
    Ok(flags)
}

fn pnetcdf_flags(_: &Host) -> TestResult<Vec<String>> {
    pkg_config(&["--cflags", "--libs", "pnetcdf"])
}

fn netcdf_flags(_: &Host) -> TestResult<Vec<String>> {
    let mut flags = pkg_config(&["--cflags", "--libs", "netcdf-mpi"])?;
    // Debian's file names the headers of the library without MPI.
    let prefix = pkg_config(&["--variable=prefix", "netcdf-mpi"])?.concat();
    flags.push(format!("-I{prefix}/include"));
    Ok(flags)
}

fn pkg_config(arguments: &[&str]) -> TestResult<Vec<String>> {
    let ended = job::run(&Line::new("pkg-config").words(arguments), QUICK)?.success()?;
    let words = ended.stdout.split_whitespace();
    Ok(words.map(str::to_owned).collect())
}
