//! `pario bench scale` as a user types it. No test looks at a time.

#![allow(clippy::unwrap_used)] // helpers of tests

use std::process::{Command, Output};

use serde_json::Value;

fn scale(arguments: &[&str]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    Command::new(env!("CARGO_BIN_EXE_pario"))
        .args(["bench", "scale", "--dir"])
        .arg(directory.path())
        .args(arguments)
        .output()
        .unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = scale(&[arguments, &["--json"]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_row_counts_its_costs_and_shows_its_plan() {
    let value = json(&["--ranks", "2,6", "--nodes", "2", "--repeats", "2"]);
    let rows = value["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for (row, ranks) in rows.iter().zip([2, 6]) {
        assert_eq!(row["ranks"], ranks);
        assert_eq!(row["bytes"], ranks << 20);
        for side in ["write", "read"] {
            let side = &row[side];
            let plan = side["plan"].as_str().unwrap();
            assert!(plan.contains("two-phase"), "{plan}");
            let repeats = side["repeats"].as_array().unwrap();
            assert_eq!(repeats.len(), 2);
            for repeat in repeats {
                let positive = |name: &str| repeat[name].as_f64().unwrap() > 0.0;
                assert!(positive("seconds") && positive("cpu_seconds"), "{repeat}");
                // With an aggregator on each node, half of the data of each crosses.
                assert!(positive("messages_between_nodes"), "{repeat}");
                assert!(positive("bytes_between_nodes"), "{repeat}");
            }
        }
    }
}

#[test]
fn simulated_rows_are_the_same_in_every_run() {
    let arguments = ["--simulate", "--ranks", "64,256", "--nodes", "4"];
    let value = json(&arguments);
    assert_eq!(value, json(&arguments));
    let rows = value["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        let number = |name: &str| row[name].as_u64().unwrap();
        // Three of four nodes are not that of a byte's aggregator.
        assert!(number("bytes_sent") >= number("bytes") * 3 / 4, "{row}");
        assert!(number("virtual_ns") > 0 && number("messages") > 0, "{row}");
    }
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    for (arguments, reason) in [
        (&["--ranks", "8", "--nodes", "9"][..], "cannot occupy"),
        (&["--ranks", "2000"], "at most 1024"),
        (&["--method", "independent"], "blocking collective"),
        (&["--workload", "nothing"], "unknown workload"),
        (&["--simulate", "--method", "individual"], "no exchange"),
    ] {
        let output = scale(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(reason), "{errors}");
    }
}
