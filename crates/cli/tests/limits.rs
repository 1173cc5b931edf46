//! `pario bench limits` as a user types it. No test looks at a speed.

#![allow(clippy::unwrap_used)] // helpers of tests

use std::path::Path;
use std::process::{Command, Output};

fn limits(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pario"))
        .args(["bench", "limits", "--dir"])
        .arg(folder)
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The lines of contenders, each a JSON object of its own.
fn contenders(json: &str) -> Vec<&str> {
    let lines = json.lines().map(str::trim);
    lines.filter(|line| line.starts_with("{\"kind\"")).collect()
}

/// The value of a field that is no string.
fn number(contender: &str, name: &str) -> f64 {
    let (_, value) = contender.split_once(&format!("\"{name}\": ")).unwrap();
    let end = value.find([',', '}']).unwrap();
    value[..end].parse().unwrap()
}

#[test]
fn every_contender_has_times_or_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let output = limits(folder.path(), &["--size", "8M", "--repeats", "2", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json = text(&output.stdout);
    assert!(json.starts_with("{\"date\": "), "{json}");
    assert!(
        json.contains("\"size\": 8388608, \"repeats\": 2,"),
        "{json}"
    );
    let contenders = contenders(&json);
    assert!(contenders.len() > 20, "{json}");
    for contender in &contenders {
        let is_refused = !contender.contains("\"refused\": null");
        let is_timed = contender.contains("\"megabytes_per_second\": ");
        assert!(is_refused != is_timed, "{contender}");
        let bytes = number(contender, "piece_bytes") * number(contender, "pieces");
        assert!(number(contender, "bytes") <= bytes, "{contender}");
    }
    for (kind, name) in [
        ("write", "pwrite, one writer"),
        ("write", "pwrite, holes"),
        ("write", "mapping, two writers"),
        ("read", "pread, untouched memory"),
        ("memory", "memcpy"),
    ] {
        let start = format!("{{\"kind\": \"{kind}\", \"name\": \"{name}\"");
        let contender = contenders.iter().find(|it| it.starts_with(&start));
        let contender = contender.unwrap_or_else(|| panic!("no {name} in\n{json}"));
        assert!(contender.contains("\"refused\": null"), "{contender}");
        let is_fresh = !contender.contains("\"fresh\": null");
        assert_eq!(is_fresh, kind == "write", "{contender}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_table_has_the_machine_and_all_kinds() {
    let folder = tempfile::tempdir().unwrap();
    let output = limits(folder.path(), &["--size", "8M", "--repeats", "1"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    for part in [
        "one file of 8 MiB in ",
        "\nKernel: ",
        "fresh MB/s",
        "\nwrite ",
        "\nread ",
        "\nmemory ",
        " ns a piece",
    ] {
        assert!(table.contains(part), "no {part} in\n{table}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn what_cannot_be_done_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let cases: [(&[&str], &str); 5] = [
        (&["--size", "4M"], "a size is at least 8 MiB"),
        (&["--size", "10000001"], "a size is whole MiB"),
        (&["--size", "99999999999G"], "is more than"),
        (&["--size", "1024G"], "choose a smaller --size"),
        (&["--repeats", "0"], "--repeats"),
    ];
    for (arguments, reason) in cases {
        let output = limits(folder.path(), arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(reason), "{arguments:?}: {said}");
    }
    let output = limits(Path::new("/nowhere/at/all"), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("cannot create a file in /nowhere/at/all"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
