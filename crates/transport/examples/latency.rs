//! How long the small collectives take, and how fast long messages are.
//!
//! `cargo run --release -p pario-transport --example latency`

use std::sync::Arc;
use std::time::{Duration, Instant};

use pario_transport::{Rank, Result, Tag, Transport, processes, threads};

const ROUNDS: u32 = 5;
const CALLS: u32 = 20_000;
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
    for _ in 0..ROUNDS {
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

/// The median in nanoseconds, as a result of a rank.
fn median(rounds: Result<Vec<Duration>>) -> Vec<u8> {
    let mut rounds = rounds.expect("no rank is lost here");
    rounds.sort();
    let median = rounds[rounds.len() / 2].as_nanos() as u64;
    median.to_le_bytes().to_vec()
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

fn nanoseconds(bytes: Vec<u8>) -> f64 {
    let bytes = bytes.try_into().expect("a job returns eight bytes");
    u64::from_le_bytes(bytes) as f64
}

fn main() {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    println!("{cores} cores; median of {ROUNDS} rounds of {CALLS} calls\n");
    let worlds: [(&str, Run); 2] = [("threads", by_threads), ("processes", by_processes)];
    println!("{:24} {:>10} {:>6} {:>10}", "", "transport", "ranks", "µs");
    for (name, operation) in OPERATIONS {
        for (world, run) in worlds {
            for ranks in [2, 4] {
                let job = move |transport: Arc<dyn Transport>| {
                    median(time_operation(transport.as_ref(), operation))
                };
                let microseconds = nanoseconds(run(ranks, &job)) / 1e3;
                println!("{name:24} {world:>10} {ranks:>6} {microseconds:>10.2}");
            }
        }
    }
    println!(
        "\n{:24} {:>10} {:>6} {:>10}",
        "", "transport", "ranks", "GB/s"
    );
    for (world, run) in worlds {
        let job = |transport: Arc<dyn Transport>| median(time_exchange(transport.as_ref()));
        let rate = 2.0 * LONG_MESSAGE_BYTES as f64 / nanoseconds(run(2, &job));
        let name = "exchange 64 MiB each way";
        println!("{name:24} {world:>10} {:>6} {rate:>10.2}", 2);
    }
}
