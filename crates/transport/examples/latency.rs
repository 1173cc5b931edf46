//! How long the small collectives take, and how fast long messages are.
//!
//! `cargo run --release -p pario-transport --example latency`

use std::sync::Arc;
use std::time::{Duration, Instant};

use pario_transport::{Rank, Result, Tag, Transport, processes, threads};

/// Many short rounds: on a busy machine some of them are left alone.
const ROUNDS: u32 = 50;
const CALLS: u32 = 2_000;
const EXCHANGES: u32 = 8;
const LONG_MESSAGE_BYTES: usize = 64 << 20;

/// What is timed: one call of it, on every rank.
type Operation = fn(&dyn Transport) -> Result<()>;

const OPERATIONS: [(&str, Operation); 4] = [
    ("barrier", |transport| transport.barrier()),
    ("all_gather 16 B", |transport| {
        transport.all_gather(&[1; 16]).map(drop)
    }),
    ("broadcast 16 B", |transport| {
        transport.broadcast(Rank(0), vec![1; 16]).map(drop)
    }),
    ("ring of 16 B messages", |transport| {
        let (me, size) = (transport.rank().0, transport.size());
        transport.send(Rank((me + 1) % size), Tag(0), &[1; 16])?;
        transport
            .receive(Rank((me + size - 1) % size), Tag(0))
            .map(drop)
    }),
];

/// The time of one call in each round.
fn time_operation(transport: &dyn Transport, operation: Operation) -> Result<Vec<Duration>> {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        transport.barrier()?;
        let start = Instant::now();
        for _ in 0..CALLS {
            operation(transport)?;
        }
        transport.barrier()?;
        rounds.push(start.elapsed() / CALLS);
    }
    Ok(rounds)
}

/// The time of a long exchange between the ranks 0 and 1 in each round.
fn time_exchange(transport: &dyn Transport) -> Result<Vec<Duration>> {
    let bytes = vec![1; LONG_MESSAGE_BYTES];
    let me = transport.rank().0;
    let mut rounds = Vec::new();
    for _ in 0..EXCHANGES {
        transport.barrier()?;
        let start = Instant::now();
        if me < 2 {
            transport.send(Rank(1 - me), Tag(0), &bytes)?;
            transport.receive(Rank(1 - me), Tag(0))?;
        }
        transport.barrier()?;
        rounds.push(start.elapsed());
    }
    Ok(rounds)
}

/// The median and the best round, as the result of a rank.
fn summary(rounds: Result<Vec<Duration>>) -> Vec<u8> {
    let mut rounds = rounds.expect("no rank is lost here");
    rounds.sort();
    let chosen = [rounds[rounds.len() / 2], rounds[0]];
    chosen
        .iter()
        .flat_map(|time| time.as_secs_f64().to_le_bytes())
        .collect()
}

/// Median and best in seconds, of a rank's result.
fn seconds(summary: &[u8]) -> [f64; 2] {
    let (words, []) = summary.as_chunks::<8>() else {
        unreachable!("a summary is made of words");
    };
    [f64::from_le_bytes(words[0]), f64::from_le_bytes(words[1])]
}

type Job = dyn Fn(Arc<dyn Transport>) -> Vec<u8> + Sync;

fn by_threads(ranks: u32, job: &Job) -> Vec<u8> {
    let mut results = threads::run(ranks, job);
    results.swap_remove(0).expect("rank 0 ends well")
}

fn by_processes(ranks: u32, job: &Job) -> Vec<u8> {
    let mut results = processes::run(ranks, job);
    results.swap_remove(0).expect("rank 0 ends well")
}

/// Runs a job and returns what rank 0 returned.
type Run = fn(u32, &Job) -> Vec<u8>;

fn main() {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    println!("{cores} cores; {ROUNDS} rounds of {CALLS} calls\n");
    let worlds: [(&str, Run); 2] = [("threads", by_threads), ("processes", by_processes)];
    let head = |unit| {
        println!(
            "{unit:24} {:>10} {:>6} {:>8} {:>8}",
            "transport", "ranks", "median", "best"
        );
    };
    let row = |name, world, ranks: u32, [median, best]: [f64; 2]| {
        println!("{name:24} {world:>10} {ranks:>6} {median:>8.2} {best:>8.2}");
    };
    head("µs a call");
    for (name, operation) in OPERATIONS {
        for (world, run) in worlds {
            for ranks in [2, 4] {
                let job = move |transport: Arc<dyn Transport>| {
                    summary(time_operation(transport.as_ref(), operation))
                };
                let times = seconds(&run(ranks, &job));
                row(name, world, ranks, times.map(|time| time * 1e6));
            }
        }
    }
    println!();
    head("GB/s, both ways together");
    for (world, run) in worlds {
        let job = |transport: Arc<dyn Transport>| summary(time_exchange(transport.as_ref()));
        let times = seconds(&run(2, &job));
        let rates = times.map(|time| 2.0 * LONG_MESSAGE_BYTES as f64 / time / 1e9);
        row("exchange of 64 MiB", world, 2, rates);
    }
}
