//! `pario bench latency` as a user types it.

#![allow(clippy::unwrap_used)] // helpers of tests

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::{NO_MPI, skipped, works};

const PARIO: &str = env!("CARGO_BIN_EXE_pario");

/// Launchers to try, one of which is enough.
const LAUNCHERS: [&str; 3] = ["mpirun.mpich", "mpirun.openmpi", "mpirun"];

fn latency(arguments: &[&str], directory: &Path) -> Output {
    Command::new(PARIO)
        .args(["bench", "latency", "--dir"])
        .arg(directory)
        .args(arguments)
        .env_remove("PARIO_LIBRARY")
        .output()
        .unwrap()
}

/// The drop-in library, built like the tests, which do not depend on its package.
fn dropin() -> PathBuf {
    let arguments = ["build", "--quiet", "--profile", "test", "--package"];
    let built = Command::new(env!("CARGO"))
        .args(arguments)
        .arg("pario-dropin")
        .status()
        .unwrap();
    assert!(built.success(), "the drop-in library does not build");
    Path::new(PARIO).with_file_name("libpario.so")
}

/// Every call has a non-zero figure for the MPI and one for pario.
#[test]
fn every_call_is_timed_under_an_mpi() {
    let Some(launcher) = LAUNCHERS.iter().find(|launcher| works(launcher)) else {
        return skipped("the latency of calls under an MPI", NO_MPI);
    };
    let library = dropin();
    let directory = tempfile::tempdir().unwrap();
    let mut arguments = vec!["--no-search", "--mpi", launcher, "--ranks", "2"];
    arguments.extend(["--repeats", "1", "--time", "1", "--size", "0,8", "--csv"]);
    arguments.extend(["--library", library.to_str().unwrap()]);
    let output = latency(&arguments, directory.path());
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{out}\n{err}");
    let lines: Vec<Vec<&str>> = out.lines().map(|line| line.split(',').collect()).collect();
    let is_figure = |line: &&Vec<&str>| line[6].parse::<f64>().is_ok_and(|time| time > 0.0);
    // 6 calls without data; 12 blocking and 4 split ones of two sizes; 10 with requests, of which
    // there are three numbers.
    let rows = 6 + 2 * (12 + 4 + 3 * 10);
    for side in ["own", "pario"] {
        let of_side = lines.iter().filter(|line| line[5] == side);
        assert_eq!(of_side.filter(is_figure).count(), rows, "{side}: {out}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// Sizes that exceed C's counts or the machine's memory are rejected before anything runs.
#[test]
fn sizes_have_an_upper_bound() {
    let directory = tempfile::tempdir().unwrap();
    let output = latency(&["--size", "8,3G"], directory.path());
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("must be at most 16 MiB"), "{err}");
}

#[test]
fn an_unknown_call_is_an_error_that_names_those_that_are_known() {
    let directory = tempfile::tempdir().unwrap();
    let output = latency(&["--call", "bogus", "--library", PARIO], directory.path());
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{err}");
    assert!(err.contains("unknown call `bogus`"), "{err}");
    assert!(err.contains("write_ordered_begin"), "{err}");
}
