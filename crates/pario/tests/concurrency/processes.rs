//! What `main.rs` beside this file does with threads, with ranks that are
//! forked processes: locks between processes, no shared memory of a driver.
//! A program of its own, because fork wants a single-threaded `main`.
#![allow(clippy::unwrap_used)] // tests may
#![allow(unsafe_code)] // alarm has no wrapper in the standard library

mod atomic;
mod beside;
mod careless;
mod directories;
mod disjoint;
mod jobs;
mod neighbour;
#[path = "../common/seeds.rs"]
mod seeds;
mod serial;
mod ways;

use std::{process::ExitCode, sync::Arc};

use directories::directories;
use neighbour::Grid;
use pario::{Atomicity, File, Info, Mode, Result};
use pario_transport::{Transport, processes};
use tempfile::TempDir;

const NEW: Mode = Mode::CREATE.union(Mode::READ_WRITE);
/// Past this time a case hangs; the signal ends the program and its ranks.
const CASE_SECONDS_MAX: u32 = 60;

/// Ends the program if the case that begins now hangs.
fn begin_case() {
    // SAFETY: replaces the alarm of the case before; no handler is involved.
    unsafe { libc::alarm(CASE_SECONDS_MAX) };
}

/// Runs `work` on forked ranks with a fresh file; returns what went wrong
/// with any of them.
fn complaints(
    directory: &TempDir,
    ranks: u32,
    prefix: &str,
    work: impl Fn(&Arc<dyn Transport>, disjoint::Open<'_>) -> Result<Option<String>>,
) -> Vec<String> {
    begin_case();
    let directory = tempfile::tempdir_in(directory).unwrap();
    let name = format!("{prefix}{}", directory.path().join("file").display());
    let open = |comm: &Arc<dyn Transport>, info: &Info| File::open(comm, &name, NEW, info);
    let mut complaints = run(ranks, |comm| work(comm, &open));
    let left = std::fs::read_dir(directory.path()).unwrap().count();
    if left != 1 {
        complaints.push(format!("{left} files are in the directory"));
    }
    complaints
}

/// Runs `work` on forked ranks; returns what went wrong with any of them.
fn run(ranks: u32, work: impl Fn(&Arc<dyn Transport>) -> Result<Option<String>>) -> Vec<String> {
    said(processes::run(ranks, |comm| said_by(work(&comm))))
}

/// What a rank complains about.
fn said_by(result: Result<Option<String>>) -> Vec<u8> {
    match result {
        Ok(complaint) => complaint.unwrap_or_default().into_bytes(),
        Err(error) => error.to_string().into_bytes(),
    }
}

/// What ranks complained about, or how they failed.
fn said(results: Vec<std::result::Result<Vec<u8>, impl ToString>>) -> Vec<String> {
    results
        .into_iter()
        .map(|result| match result {
            Ok(complaint) => String::from_utf8_lossy(&complaint).into_owned(),
            Err(failure) => failure.to_string(),
        })
        .filter(|complaint| !complaint.is_empty())
        .collect()
}

fn disjoint_writes(seed: u64, prefix: &str) -> Vec<String> {
    let directories = directories();
    let all = directories.iter();
    all.flat_map(|directory| disjoint_writes_in(directory, seed, prefix))
        .collect()
}

fn disjoint_writes_in(directory: &TempDir, seed: u64, prefix: &str) -> Vec<String> {
    let mut complaints_of_all = Vec::new();
    for rmw in ["never", "locked", "automatic"] {
        for asynchronous in ["pool", "uring"] {
            let hints = vec![
                ("pario_rmw", rmw.to_owned()),
                ("pario_async", asynchronous.to_owned()),
            ];
            complaints_of_all.extend(complaints(directory, 3, prefix, |comm, open| {
                disjoint::work(comm, open, &hints, seed)
            }));
        }
    }
    let sieving = vec![
        ("pario_rmw", "automatic".to_owned()),
        ("pario_write_method", "sieve".to_owned()),
    ];
    complaints_of_all.extend(complaints(directory, 3, prefix, |comm, open| {
        disjoint::work_at_once(comm, open, &sieving, seed)
    }));
    complaints_of_all
}

fn atomic_mode(seed: u64, prefix: &str) -> Vec<String> {
    const ROUNDS: u64 = 40;
    let methods = ["direct", "list", "sieve"];
    let info = Info::from_pairs([
        ("pario_write_method", methods[seed as usize % 3]),
        ("pario_read_method", methods[seed as usize / 3 % 3]),
        ("pario_rmw", ["locked", "never"][seed as usize % 2]),
    ]);
    let info = info.unwrap();
    let directory = tempfile::tempdir().unwrap();
    complaints(&directory, 4, prefix, |comm, open| {
        atomic::work(comm, open, &info, Atomicity::Atomic, (seed, ROUNDS))
    })
}

/// A rank is killed at some moment of its independent writes; the others go on with theirs, lose
/// nothing and do not wait for it.
fn killed_rank(seed: u64, prefix: &str) -> Vec<String> {
    let directories = directories();
    let all = directories.iter();
    all.flat_map(|directory| killed_rank_in(directory, seed, prefix))
        .collect()
}

fn killed_rank_in(directory: &TempDir, seed: u64, prefix: &str) -> Vec<String> {
    const RANKS: u32 = 3;
    const KILLED: u32 = RANKS - 1;
    const ROUNDS: u8 = 40;
    begin_case();
    let name = format!("{prefix}{}", directory.path().join("file").display());
    let grid = match seed % 2 {
        0 => Grid::records(RANKS),
        _ => Grid::blocks(RANKS),
    };
    let work = |comm: &Arc<dyn Transport>| -> Result<Option<String>> {
        let file = File::open(comm, &name, NEW, &neighbour::info())?;
        file.set_view(&grid.view(&**comm)?)?;
        let mut found = vec![0; grid.bytes()];
        comm.barrier()?;
        if comm.rank().0 == KILLED {
            std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_micros(3000 * seed + 500));
                // SAFETY: ends this process.
                unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
            });
            loop {
                file.write_at(0, &found)?;
            }
        }
        for round in 1..=ROUNDS {
            // Ordinary ones, too.
            file.write_at(0, &[round])?;
            file.write_at(0, &vec![round; found.len()])?;
            file.read_at(0, &mut found)?;
            if let Some(at) = found.iter().position(|byte| *byte != round) {
                return Ok(Some(format!("byte {at} in round {round}")));
            }
        }
        Ok(None)
    };
    let results = processes::run(RANKS, |comm| said_by(work(&comm)));
    said(results.into_iter().take(KILLED as usize).collect())
}

/// A test, and what it varies besides the seed.
struct Test {
    name: &'static str,
    run: fn(u64, &str) -> Vec<String>,
    variants: &'static [&'static str],
    cases: u64,
}

const PREFIXES: &[&str] = &["ufs:", "uring:", "mapped:"];
const ONE_VARIANT: &[&str] = &["automatic"];

const TESTS: [Test; 9] = [
    Test {
        name: "disjoint writes lose nothing",
        run: disjoint_writes,
        variants: PREFIXES,
        cases: 4,
    },
    Test {
        name: "atomic mode has a serial order",
        run: atomic_mode,
        variants: PREFIXES,
        cases: 9,
    },
    Test {
        name: "neighbours lose nothing",
        run: beside::neighbours,
        variants: PREFIXES,
        cases: 3,
    },
    Test {
        name: "neighbours lose nothing beside stores",
        run: beside::stores,
        variants: ONE_VARIANT,
        cases: 3,
    },
    Test {
        name: "neighbours that lock lose nothing where gaps are rewritten under locks",
        run: beside::rewriting_under_locks,
        variants: beside::FILE_SYSTEMS,
        cases: 3,
    },
    Test {
        name: "the tests of neighbours can fail",
        run: beside::can_fail,
        variants: ONE_VARIANT,
        cases: 1,
    },
    Test {
        name: "two jobs lose nothing",
        run: jobs::lose_nothing,
        variants: PREFIXES,
        cases: 3,
    },
    Test {
        name: "the test of two jobs can fail",
        run: jobs::can_fail,
        variants: ONE_VARIANT,
        cases: 1,
    },
    Test {
        name: "a killed rank keeps nobody waiting",
        run: killed_rank,
        variants: PREFIXES,
        cases: 4,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    match &words[..] {
        [beside::ROLE, role @ ..] => return beside::be_neighbour(role),
        [jobs::ROLE, role @ ..] => return jobs::be_job(role),
        _ => {}
    }
    let mut code = ExitCode::SUCCESS;
    for test in TESTS {
        let name = test.name;
        for variant in test.variants {
            for seed in seeds::seeds(test.cases) {
                for complaint in (test.run)(seed, variant) {
                    println!("{name}, {variant}, seed {seed}: {complaint}");
                    code = ExitCode::FAILURE;
                }
            }
            println!("test processes: {name}, {variant} ... done");
        }
    }
    code
}
