//! `pario bench server-order`: how many requests each server of a striped file gets from each method of
//! collective I/O, and in which order, which Zhang 2009 is about.

mod osds;
mod request;
mod trial;

use std::io::{self, Write};
use std::path::PathBuf;

use pario_driver::Direction;
use pario_plan::algorithm::ALGORITHMS;
use pario_plan::partition::PARTITIONS;

use crate::failure::Failure;
use crate::output::Table;
use crate::workload::parse_size;
use osds::Records;
use request::{Count, Request, by_server};

/// The options of `pario bench server-order`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Directory for the files, with or without a driver prefix. If its file system does not stripe files,
    /// servers are assumed
    #[arg(long = "dir", value_name = "DIR", default_value_os_t = std::env::temp_dir())]
    directory: PathBuf,
    /// Numbers of simulated nodes
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "2,4", value_parser = clap::value_parser!(u32).range(1..=64))]
    nodes: Vec<u32>,
    /// Number of ranks, threads of this process
    #[arg(long, short = 'n', value_name = "NUMBER", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=64))]
    ranks: u32,
    /// Number of servers of a file
    #[arg(long, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    servers: u32,
    /// Bytes per stripe
    #[arg(long, value_name = "SIZE", default_value = "64k", value_parser = parse_size)]
    unit: u64,
    /// Bytes per piece; the pieces of the ranks are interleaved
    #[arg(long, value_name = "SIZE", default_value = "16k", value_parser = parse_size)]
    piece: u64,
    /// Pieces per rank
    #[arg(long, value_name = "NUMBER", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pieces: u32,
    /// Bytes per window of an aggregator (`cb_buffer_size`)
    #[arg(long, value_name = "SIZE", default_value = "512k", value_parser = parse_size)]
    window: u64,
    /// Only methods whose names contain this; may be repeated
    #[arg(long, short, value_name = "NAME")]
    method: Vec<String>,
    /// Print the offsets of each server's requests, in KiB of its object
    #[arg(long)]
    offsets: bool,
    /// Directory with the admin sockets of all OSDs of the CephFS: count what these remember, not what the ranks
    /// submitted. The OSDs must remember enough requests (`osd_op_history_size`)
    #[arg(long, value_name = "DIR")]
    osd_sockets: Option<PathBuf>,
}

impl Arguments {
    fn bytes_per_rank(&self) -> usize {
        self.piece as usize * self.pieces as usize
    }

    fn bytes(&self) -> u64 {
        self.bytes_per_rank() as u64 * u64::from(self.ranks)
    }
}

/// An algorithm, and a partition of two-phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Method {
    algorithm: &'static str,
    partition: Option<&'static str>,
}

impl Method {
    fn name(&self) -> String {
        match self.partition {
            Some(partition) => format!("{}, {partition}", self.algorithm),
            None => self.algorithm.to_owned(),
        }
    }

    fn all() -> Vec<Method> {
        let of = |algorithm: &'static str| match algorithm {
            "two-phase" => PARTITIONS
                .iter()
                .map(|partition| Method {
                    algorithm,
                    partition: Some(partition.name()),
                })
                .collect(),
            _ => vec![Method {
                algorithm,
                partition: None,
            }],
        };
        ALGORITHMS.iter().flat_map(|it| of(it.name())).collect()
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), Failure> {
    let methods: Vec<_> = Method::all()
        .into_iter()
        .filter(|it| is_selected(&arguments.method, &it.name()))
        .collect();
    if methods.is_empty() {
        let names: Vec<_> = Method::all().iter().map(Method::name).collect();
        return Err(Failure::Arguments(format!(
            "no method has {:?} in its name; methods are {}",
            arguments.method,
            names.join("; ")
        )));
    }
    let sockets = arguments.osd_sockets.as_deref();
    let records = sockets.map(|directory| {
        Records::find(directory).map_err(Failure::file("find sockets in", directory))
    });
    let records = records.transpose()?;
    for nodes in &arguments.nodes {
        let mut table = Table::of_numbers([
            "method", "writes", "most", "backward", "KiB each", "reads", "most", "backward",
            "KiB each",
        ]);
        let mut orders = Vec::new();
        for method in &methods {
            let requests = trial::run(arguments, method, *nodes, records.as_ref())?;
            check(arguments, method, &requests)?;
            table.push(row(method, &requests));
            orders.push((method.name(), requests));
        }
        print(*nodes, &table, &orders, arguments, out).map_err(Failure::Output)?;
    }
    Ok(())
}

fn is_selected(wanted: &[String], name: &str) -> bool {
    wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str()))
}

/// Whether no request is missing. No method writes a byte twice; reads may.
fn is_complete(arguments: &Arguments, requests: &[Request]) -> bool {
    let bytes = |direction| Count::of(requests, direction).bytes;
    bytes(Direction::Write) == arguments.bytes() && bytes(Direction::Read) >= arguments.bytes()
}

/// Fails if requests are missing.
fn check(arguments: &Arguments, method: &Method, requests: &[Request]) -> Result<(), Failure> {
    if is_complete(arguments, requests) {
        return Ok(());
    }
    let bytes = |direction| Count::of(requests, direction).bytes;
    Err(Failure::Method {
        method: method.name(),
        reason: format!(
            "requests for {} bytes written and {} read are known, of {}",
            bytes(Direction::Write),
            bytes(Direction::Read),
            arguments.bytes()
        ),
    })
}

fn row(method: &Method, requests: &[Request]) -> Vec<String> {
    let mut row = vec![method.name()];
    for direction in [Direction::Write, Direction::Read] {
        let count = Count::of(requests, direction);
        row.extend([
            count.requests.to_string(),
            count.most.to_string(),
            count.backward.to_string(),
            (count.bytes / 1024 / count.requests.max(1) as u64).to_string(),
        ]);
    }
    row
}

fn print(
    nodes: u32,
    table: &Table,
    orders: &[(String, Vec<Request>)],
    arguments: &Arguments,
    out: &mut impl Write,
) -> io::Result<()> {
    let source = match arguments.osd_sockets {
        Some(_) => "as the OSDs received them",
        None => "as the ranks submitted them",
    };
    writeln!(
        out,
        "{} ranks on {nodes} nodes, {} servers with stripes of {} KiB, requests {source}",
        arguments.ranks,
        arguments.servers,
        arguments.unit / 1024,
    )?;
    table.print(out)?;
    writeln!(out)?;
    if !arguments.offsets {
        return Ok(());
    }
    for (name, requests) in orders {
        for (title, direction) in [("writes", Direction::Write), ("reads", Direction::Read)] {
            writeln!(out, "{name}, {title}")?;
            for (server, own) in by_server(requests, direction) {
                let offsets: Vec<_> = own
                    .iter()
                    .map(|it| (it.offset / 1024).to_string())
                    .collect();
                writeln!(out, "  server {server}: {}", offsets.join(" "))?;
            }
        }
    }
    writeln!(out)
}
