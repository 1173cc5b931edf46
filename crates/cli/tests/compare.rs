//! `pario bench compare` as a user types it.

#![allow(clippy::unwrap_used)] // helpers of tests

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::{NO_MPI, skipped, works};

const PARIO: &str = env!("CARGO_BIN_EXE_pario");

/// Launchers to try, one of which is enough.
const LAUNCHERS: [&str; 3] = ["mpirun.mpich", "mpirun.openmpi", "mpirun"];

/// All patterns.
const PATTERNS: [&str; 15] = [
    "contig",
    "strided1m",
    "strided64k",
    "strided4k",
    "strided64",
    "coll_perf",
    "hpio",
    "tile",
    "btio",
    "flash",
    "s3d",
    "steps",
    "cyclic",
    "indexed",
    "small",
];

fn compare(arguments: &[&str], folder: &Path) -> Output {
    Command::new(PARIO)
        .args(["bench", "compare", "--dir"])
        .arg(folder)
        .args(arguments)
        .env_remove("PARIO_LIBRARY")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The drop-in library, built as the tests are: they depend on no package that has it.
fn dropin() -> PathBuf {
    let arguments = [
        "build",
        "--quiet",
        "--profile",
        "test",
        "--package",
        "pario-dropin",
    ];
    let built = Command::new(env!("CARGO"))
        .args(arguments)
        .status()
        .unwrap();
    assert!(built.success(), "the drop-in library does not build");
    let library = Path::new(PARIO).with_file_name("libpario.so");
    assert!(library.exists(), "{}", library.display());
    library
}

/// The short form of a comparison: fails on wrong bytes, never on a time.
#[test]
fn every_pattern_has_the_right_bytes_under_an_mpi() {
    let Some(launcher) = LAUNCHERS.iter().find(|launcher| works(launcher)) else {
        return skipped("the patterns under an MPI", NO_MPI);
    };
    let library = dropin();
    let folder = tempfile::tempdir().unwrap();
    let results = tempfile::tempdir().unwrap();
    let (page, json) = (
        results.path().join("page.html"),
        results.path().join("figures.json"),
    );
    for mode in ["coll", "indep"] {
        let mut arguments = vec!["--no-search", "--mpi", launcher, "--mode", mode];
        arguments.extend(["--scale", "0.01", "--rounds", "1", "--ranks", "2"]);
        arguments.extend(["--library", library.to_str().unwrap()]);
        arguments.extend(["--output", page.to_str().unwrap()]);
        arguments.extend(["--json", json.to_str().unwrap()]);
        let output = compare(&arguments, folder.path());
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{launcher}, {mode}: {out}\n{err}");
        for pattern in PATTERNS {
            let is_row = |line: &&str| line.split_whitespace().next() == Some(pattern);
            let rows: Vec<_> = out.lines().filter(is_row).collect();
            assert_eq!(rows.len(), 2, "{pattern}: {out}");
            assert!(rows.iter().all(|row| row.contains('x')), "{pattern}: {out}");
        }
        assert!(out.contains("geometric mean"), "{out}");
        let page = fs::read_to_string(&page).unwrap();
        assert!(page.contains("<svg class=\"plot\"") && page.ends_with("</html>\n"));
        let json = fs::read_to_string(&json).unwrap();
        assert_eq!(
            json.matches("\"seconds\"").count(),
            4 * PATTERNS.len(),
            "{json}"
        );
    }
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        0,
        "files are left"
    );
}

/// A launcher that tells what a shell script says.
fn pretended(folder: &Path, run: &str) -> PathBuf {
    let path = folder.join("mpirun");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in\n*--describe*) \
         printf 'pario-compare\\tmpi\\tMPICH\\t/lib/none.so\\tMPICH Version: 9.9\\n' ;;\n\
         *) {run} ;;\nesac\n"
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path
}

fn compare_pretended(run: &str) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let launcher = pretended(folder.path(), run);
    let launcher = launcher.to_str().unwrap();
    let mut arguments = vec!["--no-search", "--mpi", launcher, "--library", PARIO];
    arguments.extend(["--workload", "small", "--rounds", "1"]);
    let output = compare(&arguments, folder.path());
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn slow_is_no_failure_but_wrong_bytes_are() {
    let figure = |direction: &str, seconds: &str, fault: &str| {
        format!(
            "printf 'pario-compare\\t{direction}\\tsmall\\t100\\t1\\t{seconds}\\t1\\t{fault}\\n'"
        )
    };
    // pario's run is the one with a library.
    let seconds = "$(case \"$*\" in *--library*) echo 50 ;; *) echo 1 ;; esac)";
    let slow = format!(
        "s={seconds}; printf \"pario-compare\\twrite\\tsmall\\t100\\t1\\t$s\\t1\\t\\n\"; \
         printf \"pario-compare\\tread\\tsmall\\t100\\t1\\t$s\\t1\\t\\n\""
    );
    let (code, out, err) = compare_pretended(&slow);
    assert_eq!(code, Some(0), "{out}\n{err}");
    assert!(
        out.contains("0.02x <") && out.contains("behind in 2 of 2"),
        "{out}"
    );

    let wrong = format!(
        "{}; {}",
        figure("write", "1", "rank 1: byte 3 is wrong"),
        figure("read", "1", "")
    );
    let (code, out, err) = compare_pretended(&wrong);
    assert_eq!(code, Some(1), "{out}\n{err}");
    assert!(
        out.contains("small write: wrong bytes: rank 1: byte 3 is wrong"),
        "{out}"
    );
}

#[test]
fn runs_that_fail_or_tell_too_little_are_failures() {
    let (code, out, err) = compare_pretended("echo 'pario: no such thing' >&2; exit 3");
    assert_eq!(code, Some(1), "{out}\n{err}");
    assert!(
        out.contains("FAILED") && out.contains("no such thing"),
        "{out}"
    );
    assert!(err.contains("contenders failed 2 times"), "{err}");
    let (code, out, _) = compare_pretended("true");
    assert_eq!(code, Some(1), "{out}");
    assert!(out.contains("told 0 figures instead of 2"), "{out}");
}

#[test]
fn what_is_missing_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str], words: &str| {
        let output = compare(arguments, folder.path());
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{err}");
        assert!(err.contains(words), "{err}");
    };
    refused(
        &["--library", "/nowhere/libpario.so"],
        "there is no /nowhere/libpario.so",
    );
    refused(
        &["--library", PARIO, "--workload", "tiles"],
        "no pattern `tiles`",
    );
    let mpi = ["--library", PARIO, "--no-search", "--mpi", "/nowhere/mpi"];
    refused(&mpi, "neither a folder with bin/mpirun nor a launcher");
}
