//! The command as a user types it.

#![allow(clippy::unwrap_used)] // helpers of tests

use std::path::Path;
use std::process::{Command, Output};

fn pario(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pario"))
        .args(arguments)
        .output()
        .unwrap()
}

fn bench_in(folder: &Path, arguments: &[&str]) -> Output {
    let mut all = vec!["bench", "--dir", folder.to_str().unwrap()];
    all.extend(arguments);
    pario(&all)
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn bench_verifies_every_method_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let output = bench_in(folder.path(), &["--quick"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    for method in [
        "raw POSIX",
        "direct",
        "list",
        "sieve",
        "automatic",
        "nonblocking",
        "collective",
    ] {
        let row = text.lines().find(|line| line.starts_with(method));
        let row = row.unwrap_or_else(|| panic!("no row for {method} in\n{text}"));
        assert!(row.ends_with("every byte"), "{row}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn bench_of_some_methods_has_only_those() {
    let folder = tempfile::tempdir().unwrap();
    let output = bench_in(
        folder.path(),
        &[
            "--size", "3x5x7", "--ranks", "3", "--repeat", "1", "--only", "sieve",
        ],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    assert_eq!(text.matches("every byte").count(), 3, "{text}");
    assert!(!text.contains("collective"), "{text}");
}

#[test]
fn what_cannot_be_done_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let cases: [(&[&str], &str); 6] = [
        (&["--size", "0"], "at least one cell"),
        (&["--size", "4x4"], "give one size or three"),
        (&["--ranks", "0"], "--ranks"),
        (
            &["--size", "1x1x2", "--ranks", "4"],
            "choose a larger --size or fewer --ranks",
        ),
        (
            &["--only", "telepathy"],
            "no method has [\"telepathy\"] in its name",
        ),
        (&["--quick", "--repeat", "3"], "cannot be used with"),
    ];
    for (arguments, reason) in cases {
        let output = bench_in(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            stderr(&output).contains(reason),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
    let output = bench_in(Path::new("/nowhere/at/all"), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("cannot create a file in /nowhere/at/all"));
}

#[test]
fn hints_prints_the_page() {
    let output = pario(&["hints"]);
    assert!(output.status.success());
    assert_eq!(stdout(&output), pario_hints::markdown());
}
