//! Tables and JSON.

use std::io::{self, Write};

use pario_types::Direction;
use serde::Serialize;

use super::row::{Repeat, Row, Side};
use super::simulate;
use crate::machine::Machine;
use crate::measure::DIRECTIONS;
use crate::output::{Align, Table, or_dash};

/// All rows of a measurement.
#[derive(Serialize)]
pub(super) struct Measured<'a> {
    #[serde(flatten)]
    pub(super) machine: Machine,
    pub(super) workload: &'a str,
    pub(super) method: &'a str,
    pub(super) directory: String,
    pub(super) file_system: String,
    pub(super) repeats: u32,
    pub(super) rows: Vec<Row>,
}

/// All rows of a simulation.
#[derive(Serialize)]
pub(super) struct Simulated<'a> {
    pub(super) workload: &'a str,
    pub(super) rows: Vec<simulate::Row>,
}

const HEADER: [(&str, Align); 12] = [
    ("ranks", Align::Right),
    ("nodes", Align::Right),
    ("", Align::Left),
    ("MB/s", Align::Right),
    ("CPU s/GB", Align::Right),
    ("messages", Align::Right),
    ("KiB sent", Align::Right),
    ("in node", Align::Right),
    ("allocations", Align::Right),
    ("KiB", Align::Right),
    ("memory", Align::Right),
    ("overlap", Align::Right),
];

/// Prints what was measured, a table, and the plans.
pub(super) fn table(measured: &Measured<'_>, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{}, {}, in {} ({}); thread ranks on simulated nodes, median of {}",
        measured.workload,
        measured.method,
        measured.directory,
        measured.file_system,
        measured.repeats
    )?;
    for (name, value) in &measured.machine.facts {
        writeln!(out, "{name}: {value}")?;
    }
    let mut table = Table::new(HEADER);
    for row in &measured.rows {
        for direction in DIRECTIONS {
            table.push(cells(row, direction));
        }
    }
    writeln!(out)?;
    table.print(out)?;
    writeln!(
        out,
        "\nmessages, KiB sent: per rank, per call, to ranks of other nodes; in node: messages to \
         ranks of the same\nnode; allocations, KiB: from the heap, per rank, per call; memory: MiB \
         of RssAnon and RssShmem of all ranks\nabove their touched buffers, at the peak; overlap: \
         of the bytes exchanged between nodes, those that moved during\nfile transfers; every byte \
         was verified\n"
    )?;
    plans(&measured.rows, out)
}

fn cells(row: &Row, direction: Direction) -> Vec<String> {
    let side = row.side(direction);
    let per_rank =
        |cost: fn(&Repeat) -> u64| side.median(|it| cost(it) as f64) / f64::from(row.ranks.max(1));
    let kib = |bytes: f64| format!("{:.1}", bytes / 1024.0);
    let (ranks, nodes, memory) = match direction {
        Direction::Write => (
            row.ranks.to_string(),
            row.nodes.to_string(),
            format!("{:.1}", row.memory_bytes as f64 / f64::from(1 << 20)),
        ),
        Direction::Read => Default::default(),
    };
    vec![
        ranks,
        nodes,
        direction.name().to_owned(),
        format!("{:.0}", speed(row, side)),
        format!("{:.2}", cpu_per_gigabyte(row, side)),
        format!("{:.1}", per_rank(|it| it.messages_between_nodes)),
        kib(per_rank(|it| it.bytes_between_nodes)),
        format!("{:.1}", per_rank(|it| it.messages_within_node)),
        format!("{:.1}", per_rank(|it| it.allocations)),
        kib(per_rank(|it| it.allocated_bytes)),
        memory,
        overlap(side),
    ]
}

/// The part of the exchange that moved during file transfers, in the median repeat.
fn overlap(side: &Side) -> String {
    let percent =
        |it: &Repeat| 100.0 * it.overlapped_bytes as f64 / it.exchanged_bytes.max(1) as f64;
    format!("{:.0} %", side.median(percent))
}

/// Megabytes (10^6 bytes) per second in the median repeat.
fn speed(row: &Row, side: &Side) -> f64 {
    row.bytes as f64 / side.median(|it| it.seconds).max(f64::MIN_POSITIVE) / 1e6
}

/// Processor seconds per 10^9 bytes in the median repeat.
fn cpu_per_gigabyte(row: &Row, side: &Side) -> f64 {
    side.median(|it| it.cpu_seconds) * 1e9 / row.bytes.max(1) as f64
}

/// How the calls were carried out: once if all rows agree.
fn plans(rows: &[Row], out: &mut impl Write) -> io::Result<()> {
    let mut last = None;
    for row in rows {
        let plan = [&row.write.plan, &row.read.plan];
        if last.replace(plan) != Some(plan) {
            let [write, read] = plan;
            writeln!(out, "from {} ranks on: {write}\n{:>8}{read}", row.ranks, "")?;
        }
    }
    Ok(())
}

const SIMULATED_HEADER: [(&str, Align); 13] = [
    ("ranks", Align::Right),
    ("nodes", Align::Right),
    ("aggregators", Align::Right),
    ("", Align::Left),
    ("virtual ms", Align::Right),
    ("GB/s", Align::Right),
    ("messages", Align::Right),
    ("at most", Align::Right),
    ("KiB sent", Align::Right),
    ("events", Align::Right),
    ("look-ups", Align::Right),
    ("memory", Align::Right),
    ("overlap", Align::Right),
];

/// Prints a simulation.
pub(super) fn simulated(result: &Simulated<'_>, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{}, simulated: 100 Gbit/s links, 64 file servers of 2 GB/s, stripes of 4 MiB\n",
        result.workload
    )?;
    let mut table = Table::new(SIMULATED_HEADER);
    for row in &result.rows {
        table.push(simulated_cells(row));
    }
    table.print(out)?;
    writeln!(
        out,
        "\nmessages, KiB sent: per rank, between nodes; at most: messages of the rank that sends \
         most; events, look-ups:\nof a rank that is not an aggregator, at most; memory: MiB of \
         buffers of a rank, at most; overlap: share of the\nbytes between nodes that moved while \
         their aggregator accessed the file"
    )
}

fn simulated_cells(row: &simulate::Row) -> Vec<String> {
    let per_rank = |count: u64| count as f64 / f64::from(row.ranks.max(1));
    let milliseconds = row.virtual_ns as f64 / 1e6;
    let overlap = row.overlap.map(|share| format!("{:.0} %", share * 100.0));
    vec![
        row.ranks.to_string(),
        row.nodes.to_string(),
        row.aggregators.to_string(),
        row.direction.name().to_owned(),
        format!("{milliseconds:.1}"),
        format!("{:.1}", row.bytes as f64 / row.virtual_ns.max(1) as f64),
        format!("{:.1}", per_rank(row.messages)),
        row.messages_max.to_string(),
        format!("{:.1}", per_rank(row.bytes_sent) / 1024.0),
        row.events_max.to_string(),
        row.lookups_max.to_string(),
        format!("{:.1}", row.memory_max_bytes as f64 / f64::from(1 << 20)),
        or_dash(overlap),
    ]
}
