//! What `main.rs` beside this file does with threads, with ranks that are
//! forked processes: locks between processes, no shared memory of a driver.
//! A program of its own, because fork wants a single-threaded `main`.
#![allow(clippy::unwrap_used)] // tests may
#![allow(unsafe_code)] // alarm has no wrapper in the standard library

mod atomic;
mod disjoint;
mod neighbour;
#[path = "../common/seeds.rs"]
mod seeds;
mod serial;

use std::{
    ffi::OsStr,
    io,
    path::Path,
    process::{Command, ExitCode, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use neighbour::Grid;
use pario::{Atomicity, File, Info, Mode, Result};
use pario_transport::{Transport, processes};

const NEW: Mode = Mode::CREATE.union(Mode::READ_WRITE);
/// Past this time a case hangs; the signal ends the program and its ranks.
const CASE_SECONDS_MAX: u32 = 60;

/// Runs `work` on forked ranks with a fresh file; returns what went wrong
/// with any of them.
fn complaints(
    ranks: u32,
    prefix: &str,
    work: impl Fn(&Arc<dyn Transport>, disjoint::Open<'_>) -> Result<Option<String>>,
) -> Vec<String> {
    // SAFETY: replaces the alarm of the case before; no handler is involved.
    unsafe { libc::alarm(CASE_SECONDS_MAX) };
    let directory = tempfile::tempdir().unwrap();
    let name = format!("{prefix}{}", directory.path().join("file").display());
    let open = |comm: &Arc<dyn Transport>, info: &Info| File::open(comm, &name, NEW, info);
    let results = processes::run(ranks, |comm| match work(&comm, &open) {
        Ok(None) => Vec::new(),
        Ok(Some(complaint)) => complaint.into_bytes(),
        Err(error) => error.to_string().into_bytes(),
    });
    let mut complaints = said(results);
    let left = std::fs::read_dir(directory.path()).unwrap().count();
    if left != 1 {
        complaints.push(format!("{left} files are in the directory"));
    }
    complaints
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
    let mut complaints_of_all = Vec::new();
    for rmw in ["never", "locked", "automatic"] {
        for asynchronous in ["pool", "uring"] {
            let hints = vec![
                ("pario_rmw", rmw.to_owned()),
                ("pario_async", asynchronous.to_owned()),
            ];
            complaints_of_all.extend(complaints(3, prefix, |comm, open| {
                disjoint::work(comm, open, &hints, seed)
            }));
        }
    }
    let sieving = vec![
        ("pario_rmw", "automatic".to_owned()),
        ("pario_write_method", "sieve".to_owned()),
    ];
    complaints_of_all.extend(complaints(3, prefix, |comm, open| {
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
    complaints(4, prefix, |comm, open| {
        atomic::work(comm, open, &info, Atomicity::Atomic, (seed, ROUNDS))
    })
}

/// The argument with which this program is a neighbour: the file and the number of ranks
/// follow.
const NEIGHBOUR: &str = "neighbour";

const GRIDS: [fn(u32) -> Grid; 2] = [Grid::records, Grid::blocks];

/// Another process writes into the holes between the ranks' pieces.
fn holes_beside_a_neighbour(seed: u64, prefix: &str) -> Vec<String> {
    let ranks = 1 + seed as u32 % 3;
    let grids = GRIDS.iter().enumerate();
    grids
        .flat_map(|(index, grid)| holes_of(ranks, index, &grid(ranks), prefix))
        .collect()
}

fn holes_of(ranks: u32, index: usize, grid: &Grid, prefix: &str) -> Vec<String> {
    // SAFETY: replaces the alarm of the case before; no handler is involved.
    unsafe { libc::alarm(CASE_SECONDS_MAX) };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let mut neighbour = Command::new(std::env::current_exe().unwrap())
        .args([
            NEIGHBOUR.as_ref(),
            path.as_os_str(),
            ranks.to_string().as_ref(),
            index.to_string().as_ref(),
        ])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let name = format!("{prefix}{}", path.display());
    let open = |comm: &Arc<dyn Transport>, info: &Info| File::open(comm, &name, NEW, info);
    let results = processes::run(ranks, |comm| {
        match neighbour::write_pieces(&comm, &open, grid) {
            Ok(None) => Vec::new(),
            Ok(Some(complaint)) => complaint.into_bytes(),
            Err(error) => error.to_string().into_bytes(),
        }
    });
    drop(neighbour.stdin.take());
    let mut complaints = said(results);
    if !neighbour.wait().unwrap().success() {
        complaints.push("the neighbour lost bytes".to_owned());
    }
    complaints
}

/// What a neighbour does until its standard input ends.
fn be_neighbour(path: &OsStr, grid: &Grid) -> ExitCode {
    let stop = Arc::new(AtomicBool::new(false));
    let is_over = stop.clone();
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        stop.store(true, Ordering::Release);
    });
    match neighbour::write_holes(Path::new(path), grid, || is_over.load(Ordering::Acquire)) {
        None => ExitCode::SUCCESS,
        Some(_) => ExitCode::FAILURE,
    }
}

/// A rank is killed at some moment of its independent writes; the others go on with theirs, lose
/// nothing and do not wait for it.
fn killed_rank(seed: u64, prefix: &str) -> Vec<String> {
    const RANKS: u32 = 3;
    const KILLED: u32 = RANKS - 1;
    const ROUNDS: u8 = 40;
    // SAFETY: replaces the alarm of the case before; no handler is involved.
    unsafe { libc::alarm(CASE_SECONDS_MAX) };
    let directory = tempfile::tempdir().unwrap();
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
    let results = processes::run(RANKS, |comm| match work(&comm) {
        Ok(None) => Vec::new(),
        Ok(Some(complaint)) => complaint.into_bytes(),
        Err(error) => error.to_string().into_bytes(),
    });
    said(results.into_iter().take(KILLED as usize).collect())
}

type Test = fn(u64, &str) -> Vec<String>;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    if let [_, role, path, ranks, index] = &arguments[..]
        && role == NEIGHBOUR
    {
        let number = |argument: &OsStr| argument.to_str().unwrap().parse::<u32>().unwrap();
        let grid = GRIDS[number(index) as usize](number(ranks));
        return be_neighbour(path, &grid);
    }
    let tests: [(&str, Test, u64); 4] = [
        ("disjoint writes lose nothing", disjoint_writes, 4),
        ("atomic mode has a serial order", atomic_mode, 9),
        ("a neighbour loses nothing", holes_beside_a_neighbour, 3),
        ("a killed rank keeps nobody waiting", killed_rank, 4),
    ];
    let mut code = ExitCode::SUCCESS;
    for (name, test, cases) in tests {
        for prefix in ["ufs:", "uring:", "mapped:"] {
            for seed in seeds::seeds(cases) {
                for complaint in test(seed, prefix) {
                    println!("{name}, {prefix}, seed {seed}: {complaint}");
                    code = ExitCode::FAILURE;
                }
            }
            println!("test processes: {name}, {prefix} ... done");
        }
    }
    code
}
