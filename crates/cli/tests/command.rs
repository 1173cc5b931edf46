//! The command as a user types it.

#![allow(clippy::unwrap_used)] // helpers of tests

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn pario(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pario"))
        .args(arguments)
        .output()
        .unwrap()
}

fn bench_in(directory: &Path, arguments: &[&str]) -> Output {
    let mut all = vec!["bench", "--dir", directory.to_str().unwrap()];
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
    let directory = tempfile::tempdir().unwrap();
    let output = bench_in(directory.path(), &["--quick"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    for method in [
        "raw POSIX",
        "direct",
        "list",
        "sieve",
        "automatic",
        "automatic+mem",
        "two-phase",
        "individual",
        "private-sieve",
        "nonblocking",
        "icollective",
    ] {
        let is_row = |line: &&str| line.starts_with(&format!("{method}  "));
        let row = text.lines().find(is_row);
        let row = row.unwrap_or_else(|| panic!("no row for {method} in\n{text}"));
        assert!(row.contains("every byte"), "{row}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn bench_of_some_methods_has_only_those() {
    let directory = tempfile::tempdir().unwrap();
    let output = bench_in(
        directory.path(),
        &[
            "--size", "3x5x7", "--ranks", "3", "--repeat", "1", "--only", "sieve",
        ],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    assert_eq!(text.matches("every byte").count(), 2, "{text}");
    assert!(!text.contains("two-phase"), "{text}");
}

#[test]
fn wrong_arguments_are_explained() {
    let directory = tempfile::tempdir().unwrap();
    let cases: [(&[&str], &str); 6] = [
        (&["--size", "0"], "at least one cell"),
        (&["--size", "4x4"], "give one size or three"),
        (&["--ranks", "0"], "--ranks"),
        (
            &["--size", "1x1x2", "--ranks", "4"],
            "choose a larger --size or fewer --ranks",
        ),
        (&["--method", "telepathy"], "unknown method `telepathy`"),
        (&["--quick", "--repeat", "3"], "cannot be used with"),
    ];
    for (arguments, reason) in cases {
        let output = bench_in(directory.path(), arguments);
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
fn forked_ranks_verify_too() {
    let directory = tempfile::tempdir().unwrap();
    let line = "--transport processes --workload flash --workload cyclic --scale 0.01 --repeat 1 \
                --ranks 3 --method automatic,two-phase,two-phase+messages,icollective";
    let arguments: Vec<_> = line.split_whitespace().collect();
    let output = bench_in(directory.path(), &arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    assert_eq!(text.matches("every byte").count(), 2 * 5, "{text}");
}

#[test]
fn results_come_as_csv_json_and_plots() {
    let directory = tempfile::tempdir().unwrap();
    let pictures = directory.path().join("plots");
    let job = [
        "-w",
        "strided",
        "-m",
        "automatic",
        "--scale",
        "0.01",
        "--repeat",
        "1",
    ];
    let with = |more: &[&str]| {
        let output = bench_in(directory.path(), &[&job, more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let csv = with(&["--csv"]);
    assert!(csv.starts_with("workload,"), "{csv}");
    assert_eq!(csv.lines().count(), 5, "{csv}");
    let json = with(&["--json", "--cold"]);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value[0]["methods"][1]["method"], "automatic", "{json}");
    let file = directory.path().join("results.json");
    let table = with(&["--json", file.to_str().unwrap()]);
    assert!(table.contains("every byte"), "{table}");
    let json = std::fs::read_to_string(file).unwrap();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value[0]["workload"], "strided", "{json}");
    with(&[
        "--svg",
        pictures.to_str().unwrap(),
        "--sweep",
        "record=64,4K",
    ]);
    let picture = std::fs::read_to_string(pictures.join("strided-record.svg")).unwrap();
    assert!(picture.contains("automatic"), "{picture}");
}

#[test]
fn a_second_job_runs_beside() {
    let directory = tempfile::tempdir().unwrap();
    let line = "--beside 1 -w demo -m automatic --scale 0.1 --repeat 1";
    let arguments: Vec<_> = line.split_whitespace().collect();
    let output = bench_in(directory.path(), &arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(
        text.contains("second job: 4 ranks wrote and read"),
        "{text}"
    );
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// Results were once lost at the end of a run because their file could not be written.
#[test]
fn unusable_outputs_are_refused_before_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "old").unwrap();
    let below = file.join("below");
    let below = below.to_str().unwrap();
    let long = format!("hpio:count={}", "0".repeat(300));
    let plots = directory.path().join("plots");
    let plots = plots.to_str().unwrap();
    let cases: [&[&str]; 4] = [
        &["--json", below],
        &["--svg", below],
        &["--workload", &long, "--svg", plots],
        &["limits", "--json", below],
    ];
    for arguments in cases {
        let output = match arguments[0] {
            "limits" => pario(&[&["bench"], arguments].concat()),
            _ => bench_in(directory.path(), arguments),
        };
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(stdout(&output), "", "{arguments:?}: it has run");
        assert!(stderr(&output).contains("cannot "), "{}", stderr(&output));
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
}

/// Files once stayed behind when a run was interrupted.
#[test]
fn interrupted_runs_leave_no_files() {
    let cases: [(&str, &[&str]); 3] = [
        ("INT", &["bench", "--scale", "2", "--repeats", "1000"]),
        (
            "TERM",
            &["bench", "--transport", "processes", "--repeats", "1000"],
        ),
        (
            "KILL",
            &["bench", "limits", "--size", "8M", "--repeats", "1000"],
        ),
    ];
    for (signal, arguments) in cases {
        let directory = tempfile::tempdir().unwrap();
        let files = || std::fs::read_dir(directory.path()).unwrap().count();
        let wait_until = |done: &dyn Fn() -> bool| {
            let start = Instant::now();
            while !done() {
                assert!(start.elapsed() < Duration::from_secs(60), "{arguments:?}");
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        // Whatever a shell runs in the background ignores interrupts, these tests included.
        let mut run = Command::new("env")
            .args(["--default-signal=INT", env!("CARGO_BIN_EXE_pario")])
            .args(arguments)
            .arg("--dir")
            .arg(directory.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        wait_until(&|| files() > 0);
        std::thread::sleep(Duration::from_millis(300));
        let kill = format!("kill -{signal} {}", run.id());
        let sent = Command::new("sh").args(["-c", &kill]).status().unwrap();
        assert!(sent.success(), "{arguments:?} has ended by itself");
        assert!(!run.wait().unwrap().success());
        wait_until(&|| files() == 0);
    }
}

#[test]
fn workloads_are_listed() {
    let output = pario(&["bench", "workloads"]);
    let text = stdout(&output);
    for name in [
        "coll_perf",
        "btio",
        "flash",
        "s3d",
        "hpio",
        "noncontig",
        "mpi-io-test",
    ] {
        assert!(text.contains(name), "{text}");
    }
    assert!(text.contains("spacing: bytes between regions"), "{text}");
}

#[test]
fn explain_shows_what_was_chosen_and_what_not() {
    let output = pario(&[
        "explain",
        "-w",
        "cyclic",
        "--ranks",
        "8",
        "--direction",
        "write",
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    for part in [
        "algorithm ",
        "partition ",
        "aggregators ",
        "private-sieve: unfit",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let forced = pario(&[
        "explain",
        "-w",
        "hpio",
        "--hint",
        "pario_algorithm=two-phase",
    ]);
    assert!(
        stdout(&forced).contains("algorithm two-phase"),
        "{}",
        stdout(&forced)
    );
    // Pieces with gaps between them: as a real call would be carried out.
    let gaps = |hints: &[&str]| {
        let base = ["explain", "-w", "hpio", "--direction", "write"];
        stdout(&pario(&[&base[..], hints].concat()))
    };
    let leased = gaps(&[]);
    assert!(leased.contains("algorithm two-phase"), "{leased}");
    assert!(leased.contains("if the kernel grants a lease"), "{leased}");
    assert!(
        leased.contains("(pario_stored_pieces, measured)"),
        "{leased}"
    );
    let never = gaps(&["--hint", "pario_rmw=never"]);
    assert!(never.contains("algorithm individual"), "{never}");
    assert!(never.contains("gaps: not written"), "{never}");
    let elsewhere = gaps(&["--hint", "pario_assume_client=kernel"]);
    assert!(elsewhere.contains("gaps: not written"), "{elsewhere}");
    assert!(!elsewhere.contains("pario_stored_pieces"), "{elsewhere}");

    let directory = tempfile::tempdir().unwrap();
    let pictures = directory.path().join("pictures");
    let drawn = pario(&["explain", "--svg", pictures.to_str().unwrap()]);
    assert!(drawn.status.success(), "{}", stderr(&drawn));
    let picture = std::fs::read_to_string(pictures.join("dist3d-0-write.svg")).unwrap();
    assert!(picture.contains("<svg"), "{picture}");
    let wrong = pario(&["explain", "--call", "7"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        stderr(&wrong).contains("there is no call 7"),
        "{}",
        stderr(&wrong)
    );
}

#[test]
fn hints_prints_the_page() {
    let output = pario(&["hints"]);
    assert!(output.status.success());
    assert_eq!(stdout(&output), pario_hints::markdown());
}
