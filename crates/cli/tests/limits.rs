//! `pario bench limits` as a user types it. No test looks at a speed.

#![allow(clippy::unwrap_used)] // helpers of tests

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn limits(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pario"))
        .args(["bench", "limits", "--dir"])
        .arg(directory)
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn every_contender_has_times_or_a_reason() {
    let directory = tempfile::tempdir().unwrap();
    let output = limits(
        directory.path(),
        &["--size", "8M", "--repeats", "2", "--json"],
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json = text(&output.stdout);
    let value: Value = serde_json::from_str(&json).unwrap();
    assert!(value["date"].is_string(), "{json}");
    assert_eq!(value["size"], 8 << 20, "{json}");
    assert_eq!(value["repeats"], 2, "{json}");
    let contenders = value["contenders"].as_array().unwrap();
    assert!(contenders.len() > 20, "{json}");
    for contender in contenders {
        let is_timed = contender["existing"].is_object() || contender["fresh"].is_object();
        let is_unavailable = !contender["unavailable"].is_null();
        assert!(is_unavailable != is_timed, "{contender}");
        let number = |name: &str| contender[name].as_u64().unwrap();
        assert!(
            number("bytes") <= number("piece_bytes") * number("pieces"),
            "{contender}"
        );
    }
    for (kind, name) in [
        ("write", "pwrite, one writer"),
        ("write", "pwrite, holes"),
        ("write", "mapping, two writers"),
        ("read", "pread, untouched memory"),
        ("memory", "memcpy"),
    ] {
        let mut contenders = contenders.iter();
        let contender = contenders.find(|it| it["kind"] == kind && it["name"] == name);
        let contender = contender.unwrap_or_else(|| panic!("no {name} in\n{json}"));
        assert!(contender["unavailable"].is_null(), "{contender}");
        assert_eq!(
            contender["fresh"].is_object(),
            kind == "write",
            "{contender}"
        );
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_table_has_the_machine_and_all_kinds() {
    let directory = tempfile::tempdir().unwrap();
    let output = limits(directory.path(), &["--size", "8M", "--repeats", "1"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    for part in [
        "one file of 8 MiB in ",
        "\nKernel: ",
        "fresh MB/s",
        "\nwrite ",
        "\nread ",
        "\nmemory ",
        " ns per piece",
    ] {
        assert!(table.contains(part), "no {part} in\n{table}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn wrong_arguments_are_explained() {
    let directory = tempfile::tempdir().unwrap();
    let cases: [(&[&str], &str); 5] = [
        (&["--size", "4M"], "must be at least 8 MiB"),
        (&["--size", "10000001"], "must be a multiple of 1 MiB"),
        (&["--size", "99999999999G"], "exceeds"),
        (&["--size", "1024G"], "choose a smaller --size"),
        (&["--rounds", "0"], "--repeats"),
    ];
    for (arguments, reason) in cases {
        let output = limits(directory.path(), arguments);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(reason), "{arguments:?}: {message}");
    }
    let output = limits(Path::new("/nowhere/at/all"), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("cannot create a file in /nowhere/at/all"));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}
