//! `pario bench compare` as a user types it.

#![allow(clippy::unwrap_used)] // helpers of tests

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{NO_MPI, skipped, works};

const PARIO: &str = env!("CARGO_BIN_EXE_pario");

/// Launchers to try, one of which is enough.
const LAUNCHERS: [&str; 3] = ["mpirun.mpich", "mpirun.openmpi", "mpirun"];

/// All patterns.
const PATTERNS: [&str; 35] = [
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
    "ior4k",
    "ior4k-segmented",
    "ior4k-random",
    "ior4k-view",
    "ior4k-datatype",
    "ior64k",
    "ior64k-segmented",
    "ior64k-random",
    "ior64k-view",
    "ior64k-datatype",
    "ior1m",
    "ior1m-segmented",
    "ior1m-random",
    "ior1m-view",
    "ior1m-datatype",
    "ior16m",
    "ior16m-segmented",
    "ior16m-random",
    "ior16m-view",
    "ior16m-datatype",
];

fn compare(arguments: &[&str], directory: &Path) -> Output {
    Command::new(PARIO)
        .args(["bench", "compare", "--dir"])
        .arg(directory)
        .args(arguments)
        .env_remove("PARIO_LIBRARY")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The drop-in library, built like the tests, which do not depend on its package.
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
    let directory = tempfile::tempdir().unwrap();
    let results = tempfile::tempdir().unwrap();
    let (page, json) = (
        results.path().join("page.html"),
        results.path().join("figures.json"),
    );
    for mode in ["coll", "indep"] {
        let mut arguments = vec!["--no-search", "--mpi", launcher, "--mode", mode];
        arguments.extend(["--scale", "0.01", "--repeats", "1", "--ranks", "2"]);
        arguments.extend(["--workload", "all,ior"]);
        arguments.extend(["--library", library.to_str().unwrap()]);
        arguments.extend(["--output", page.to_str().unwrap()]);
        arguments.extend(["--json", json.to_str().unwrap()]);
        let output = compare(&arguments, directory.path());
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
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["repeats"], 1, "{json}");
        assert_eq!(
            json.matches("\"seconds\"").count(),
            4 * PATTERNS.len(),
            "{json}"
        );
    }
    assert_eq!(
        fs::read_dir(directory.path()).unwrap().count(),
        0,
        "files are left"
    );
}

/// What a rank reports about its MPI.
const MPI: &str = "pario-compare {\"mpi\": {\"flavour\": \"MPICH\", \"library\": \"/lib/none.so\", \
                   \"version\": \"MPICH Version: 9.9\"}}";

/// A launcher whose ranks do what a shell script says.
fn simulated(directory: &Path, run: &str) -> PathBuf {
    let path = directory.join("mpirun");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in\n*--describe*) \
         echo '{MPI}' ;;\n\
         *) {run} ;;\nesac\n"
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path
}

fn compare_simulated(run: &str) -> (Option<i32>, String, String) {
    let directory = tempfile::tempdir().unwrap();
    let launcher = simulated(directory.path(), run);
    let launcher = launcher.to_str().unwrap();
    let mut arguments = vec!["--no-search", "--mpi", launcher, "--library", PARIO];
    arguments.extend(["--workload", "small", "--repeats", "1"]);
    let output = compare(&arguments, directory.path());
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn slow_is_no_failure_but_wrong_bytes_are() {
    // `$s` is the time in the shell.
    let figure = |direction: &str, fault: &str| {
        format!(
            "echo \"pario-compare {{\\\"figure\\\": {{\\\"pattern\\\": \\\"small\\\", \
             \\\"direction\\\": \\\"{direction}\\\", \\\"bytes\\\": 100, \\\"pieces\\\": 1, \
             \\\"seconds\\\": $s, \\\"raw_seconds\\\": 1, \\\"fault\\\": {fault}}}}}\""
        )
    };
    // pario's run is the one with a library.
    let seconds = "s=$(case \"$*\" in *--library*) echo 50 ;; *) echo 1 ;; esac)";
    let slow = format!(
        "{seconds}; {}; {}",
        figure("write", "null"),
        figure("read", "null")
    );
    let (code, out, err) = compare_simulated(&slow);
    assert_eq!(code, Some(0), "{out}\n{err}");
    assert!(
        out.contains("0.02x <") && out.contains("behind in 2 of 2"),
        "{out}"
    );

    let wrong = format!(
        "s=1; {}; {}",
        figure("write", "\\\"rank 1: byte 3 is wrong\\\""),
        figure("read", "null")
    );
    let (code, out, err) = compare_simulated(&wrong);
    assert_eq!(code, Some(1), "{out}\n{err}");
    assert!(
        out.contains("small write: wrong bytes: rank 1: byte 3 is wrong"),
        "{out}"
    );
}

#[test]
fn runs_that_fail_or_report_too_little_are_failures() {
    let (code, out, err) = compare_simulated("echo 'pario: no such thing' >&2; exit 3");
    assert_eq!(code, Some(1), "{out}\n{err}");
    assert!(
        out.contains("FAILED") && out.contains("no such thing"),
        "{out}"
    );
    assert!(err.contains("2 runs failed"), "{err}");
    let (code, out, _) = compare_simulated("true");
    assert_eq!(code, Some(1), "{out}");
    assert!(out.contains("reported 0 figures instead of 2"), "{out}");
}

/// A launcher that outlived the command once kept writing files.
#[test]
fn an_interrupted_comparison_leaves_neither_files_nor_ranks() {
    let bin = tempfile::tempdir().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let pid = bin.path().join("pid");
    let script = format!("echo $$ > {}; exec sleep 100", pid.display());
    let launcher = simulated(bin.path(), &script);
    let mut run = Command::new(PARIO)
        .args([
            "bench",
            "compare",
            "--no-search",
            "--library",
            PARIO,
            "--mpi",
        ])
        .arg(&launcher)
        .arg("--dir")
        .arg(directory.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let wait_until = |done: &dyn Fn() -> bool| {
        let start = Instant::now();
        while !done() {
            assert!(start.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let ranks = || {
        fs::read_to_string(&pid)
            .ok()
            .filter(|pid| pid.ends_with('\n'))
    };
    wait_until(&|| ranks().is_some());
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    // The guard learns of the launcher just after it has started.
    std::thread::sleep(Duration::from_millis(300));
    run.kill().unwrap();
    run.wait().unwrap();
    let process = Path::new("/proc").join(ranks().unwrap().trim());
    wait_until(&|| fs::read_dir(directory.path()).unwrap().count() == 0);
    // A zombie has no command line: its new parent may be slow to collect it.
    wait_until(&|| {
        fs::read(process.join("cmdline")).is_ok_and(|it| it.is_empty()) || !process.exists()
    });
}

#[test]
fn what_is_missing_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str], words: &str| {
        let output = compare(arguments, directory.path());
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
        "unknown workload `tiles`",
    );
    let mpi = ["--library", PARIO, "--no-search", "--mpi", "/nowhere/mpi"];
    refused(&mpi, "neither a directory with bin/mpirun nor a launcher");
}
