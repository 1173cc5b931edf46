//! Planning: the cost of a collective call's plan per rank, in time and memory, as ranks,
//! aggregators and pieces grow. All ranks plan the same, so one process can represent any number.

use std::hint::black_box;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use pario_layout::{Basic, Datatype, TypeError};
use pario_plan::partition::PARTITIONS;
use pario_plan::{
    Access, Case, Client, Direction, Facts, History, LockProtocol, Realm, Striping, Tuning, decide,
};

use crate::output::Table;

/// Ranks per node of the simulated machine.
const RANKS_PER_NODE: u32 = 64;

/// Stripes and servers of the simulated file system.
const STRIPES: Striping = Striping {
    unit: 1 << 20,
    count: 64,
};

/// Bytes per piece: eight, as in the hardest patterns.
const PIECE_BYTES: u64 = 8;

/// The constants while another size grows.
const RANKS: u32 = 1024;
const AGGREGATORS: u32 = 16;
const PIECES: u64 = 1_000_000;

/// The sizes that grow.
const MANY_RANKS: [u32; 4] = [16, 256, 4096, 65_536];
const MANY_AGGREGATORS: [u32; 4] = [1, 16, 128, 1024];
const MANY_PIECES: [u64; 4] = [1_000, 1_000_000, 100_000_000, 1_000_000_000];

/// A measurement is repeated for at least this long, and this often at most; the best counts.
const LONG_ENOUGH: Duration = Duration::from_millis(60);
const REPEATS_MAX: usize = 2000;

/// Prints three tables: more ranks, more aggregators, more pieces.
pub(super) fn run(out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "interleaved pieces of {PIECE_BYTES} bytes, {RANKS_PER_NODE} ranks per node, {} servers; \
         microseconds per call\nto compute realms, best of many, and bytes of the realms in the \
         last column; select: to choose all methods",
        STRIPES.count
    )?;
    let size = |ranks, aggregators, pieces| Size {
        ranks,
        aggregators,
        pieces,
    };
    table(
        out,
        &format!("ranks ({AGGREGATORS} aggregators, {PIECES} pieces per rank)"),
        MANY_RANKS.map(|ranks| (u64::from(ranks), size(ranks, AGGREGATORS, PIECES))),
    )?;
    table(
        out,
        &format!("aggregators ({RANKS} ranks, {PIECES} pieces per rank)"),
        MANY_AGGREGATORS.map(|count| (u64::from(count), size(RANKS, count, PIECES))),
    )?;
    table(
        out,
        &format!("pieces per rank ({RANKS} ranks, {AGGREGATORS} aggregators)"),
        MANY_PIECES.map(|pieces| (pieces, size(RANKS, AGGREGATORS, pieces))),
    )?;
    writeln!(
        out,
        "\nduring a call a rank keeps {} bytes for each other rank's access, without the layouts that \
         they share",
        size_of::<Access>()
    )
}

/// The size of a simulated call.
#[derive(Clone, Copy)]
struct Size {
    ranks: u32,
    aggregators: u32,
    pieces: u64,
}

/// A simulated call.
struct Call {
    accesses: Vec<Access>,
    facts: Facts,
    tuning: Tuning,
    history: History,
}

impl Call {
    /// Ranks with interleaved pieces. They share one layout, as when the ranks' views are
    /// equal except for their displacement.
    fn new(size: Size) -> Result<Call, TypeError> {
        let stride = PIECE_BYTES * u64::from(size.ranks);
        let piece = Datatype::contiguous(PIECE_BYTES, &Basic::Byte.into())?;
        let tile = Datatype::resized(&piece, 0, stride.cast_signed())?;
        let access = |rank: u32| {
            let at = u64::from(rank) * PIECE_BYTES;
            let bytes = size.pieces * PIECE_BYTES;
            Access::new(at, tile.layout().clone(), 0, bytes)
                .expect("a simulated file ends below 2^63")
        };
        Ok(Call {
            accesses: (0..size.ranks).map(access).collect(),
            facts: Facts {
                nodes: (0..size.ranks).map(|rank| rank / RANKS_PER_NODE).collect(),
                striping: Some(STRIPES),
                placement: None,
                lock_granularity: Some(STRIPES.unit),
                lock_protocol: LockProtocol::Server,
                client: Client::Library,
                in_memory: false,
                block_bytes: 4096,
                nonblocking: true,
            },
            tuning: Tuning {
                aggregators: Some(size.aggregators),
                ..Tuning::default()
            },
            history: History::default(),
        })
    }

    fn case(&self) -> Case<'_> {
        Case::new(
            Direction::Write,
            &self.accesses,
            &self.facts,
            &self.tuning,
            &self.history,
        )
    }
}

/// A row per partition, a column per size.
fn table<const N: usize>(
    out: &mut impl Write,
    title: &str,
    columns: [(u64, Size); N],
) -> io::Result<()> {
    let calls = columns
        .iter()
        .map(|(_, size)| Call::new(*size))
        .collect::<Result<Vec<_>, _>>()
        .map_err(io::Error::other)?;
    let numbers = columns.iter().map(|(number, _)| number.to_string());
    let titles = std::iter::once(title.to_owned()).chain(numbers);
    let mut table = Table::of_numbers(titles.chain(["bytes".to_owned()]));
    let select = calls.iter().map(|call| time_us(|| decide(&call.case())));
    let select = select.map(|us| format!("{us:.1}"));
    table.push(
        std::iter::once("select".to_owned())
            .chain(select)
            .chain([String::new()]),
    );
    for partition in PARTITIONS {
        let mut row = vec![partition.name().to_owned()];
        let mut memory = 0;
        for call in &calls {
            let case = call.case();
            let aggregators = decide(&case).aggregators.ranks;
            let us = time_us(|| partition.realms(&case, &aggregators));
            row.push(format!("{us:.1}"));
            memory = partition.realms(&case, &aggregators).len() * size_of::<(u32, Realm)>();
        }
        row.push(memory.to_string());
        table.push(row);
    }
    writeln!(out)?;
    table.print(out)
}

/// The shortest of many runs, in microseconds.
fn time_us<T>(run: impl Fn() -> T) -> f64 {
    let begin = Instant::now();
    let mut best = Duration::MAX;
    for _ in 0..REPEATS_MAX {
        let start = Instant::now();
        black_box(run());
        best = best.min(start.elapsed());
        if begin.elapsed() > LONG_ENOUGH {
            break;
        }
    }
    best.as_secs_f64() * 1e6
}
