//! `pario bench latency`: microseconds per call of every family of file functions, with the MPI's
//! own MPI-IO and with pario, under every MPI on this machine.

mod calls;
mod figures;
mod functions;
mod report;
pub(crate) mod worker;

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::compare::figures::Side;
use crate::compare::launch::Launch;
use crate::compare::mpis::{self, Mpi, Search};
use crate::compare::protocol::Line;
use crate::failure::Failure;
use crate::machine::Machine;
use crate::measure::capacity::Kept;
use crate::measure::{Need, Scratch, alternating, progress_bar};
use crate::output::{self, JsonOption};
use crate::run::library;
use crate::workload;
use calls::Row;
use figures::{Latencies, Section};
use report::Document;

/// Maximum bytes per call: larger calls measure bandwidth.
const SIZE_MAX: u64 = 16 << 20;

/// The options of `pario bench latency`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Numbers of ranks, as in 2,4
    #[arg(long, short = 'n', value_name = "NUMBERS", value_delimiter = ',', default_value = "2", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    ranks: Vec<u32>,
    /// Calls, as in write_at,iwrite_at_all; may be repeated [default: all]
    #[arg(long, short, value_name = "LIST", value_delimiter = ',')]
    call: Vec<String>,
    /// Bytes per rank, per call, as in 8,64K
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0,8,4K,64K", value_parser = parse_size)]
    size: Vec<u64>,
    /// Number of times each contender runs; the best counts
    #[arg(long, value_name = "NUMBER", aliases = ["repeat", "rounds"], default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: u32,
    /// Time of each call in each repeat
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    time: u64,
    /// Directory for the file [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// An additional MPI: a directory that has bin/mpirun, or a launcher; may be repeated
    #[arg(long, value_name = "PREFIX")]
    mpi: Vec<OsString>,
    /// Do not search for MPIs: measure only those of --mpi
    #[arg(long, requires = "mpi")]
    no_search: bool,
    /// The drop-in library [default: that of PARIO_LIBRARY, or of this installation]
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// Time limit of a run of all calls by one contender
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    time_max: u64,
    /// Print comma-separated values instead of tables
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    #[command(flatten)]
    json: JsonOption,
}

fn parse_size(text: &str) -> Result<u64, String> {
    match workload::parse_size(text)? {
        size if size > SIZE_MAX => Err(format!("must be at most {} MiB", SIZE_MAX >> 20)),
        size => Ok(size),
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), Failure> {
    let library = library::find(arguments.library.as_deref())?;
    let calls = calls::named(&arguments.call).map_err(Failure::Arguments)?;
    let rows = calls::rows(&calls, &arguments.size);
    arguments.json.check()?;
    let scratch = Scratch::new(arguments.dir.as_deref())?;
    arguments.check_capacity(&rows, &scratch)?;
    let search = match arguments.no_search {
        true => Search::Named,
        false => Search::Machine,
    };
    let found = mpis::find(&arguments.mpi, search)?;
    let mut latencies = Latencies {
        machine: Machine::this(),
        folder: scratch.parent().display().to_string(),
        file_system: scratch.facts().file_system.to_string(),
        repeats: arguments.repeats,
        sections: Vec::new(),
        notes: found.notes,
        faults: Vec::new(),
    };
    let case = Case {
        arguments,
        library: &library,
        scratch: &scratch,
    };
    case.measure(&found.mpis, &rows, &mut latencies);
    arguments.print(&latencies, out)?;
    arguments.json.save(&Document::from(&latencies))?;
    match latencies.faults.len() {
        0 => Ok(()),
        count => Err(Failure::Faults { count }),
    }
}

impl Arguments {
    /// Fails unless the machine has memory for the buffers of the calls in flight and the directory
    /// has space for their data.
    fn check_capacity(&self, rows: &[Row], scratch: &Scratch) -> Result<(), Failure> {
        let per_rank = rows.iter().map(|it| it.bytes * it.in_flight as u64);
        let ranks = self.ranks.iter().max().copied().unwrap_or(0);
        let bytes = per_rank.max().unwrap_or(0) * u64::from(ranks);
        let need = Need {
            memory: bytes,
            files: bytes,
            kept: Kept::of(scratch),
            size_option: "--size",
        };
        need.check(scratch.parent())
    }

    fn print(&self, latencies: &Latencies, out: &mut impl Write) -> Result<(), Failure> {
        match (self.csv, self.json.is_printed()) {
            (false, false) => report::table(latencies, out),
            (true, _) => report::csv(latencies, out),
            (false, true) => output::json(&Document::from(latencies), out),
        }
        .map_err(Failure::Output)?;
        if self.csv {
            // CSV cannot hold them.
            let faults = latencies
                .faults
                .iter()
                .map(|fault| format!("FAILED {fault}"));
            let lines = latencies.notes.iter().cloned().chain(faults);
            lines.for_each(|line| eprintln!("pario: {line}"));
        }
        Ok(())
    }
}

/// What all runs share.
struct Case<'a> {
    arguments: &'a Arguments,
    library: &'a Path,
    scratch: &'a Scratch,
}

impl Case<'_> {
    /// Runs both sides, interleaved, under every MPI with every number of ranks.
    fn measure(&self, mpis: &[Mpi], rows: &[Row], latencies: &mut Latencies) {
        let repeats = self.arguments.repeats;
        let sections = mpis.len() * self.arguments.ranks.len();
        let runs = u64::from(repeats) * (sections * Side::ALL.len()) as u64;
        let progress = progress_bar(runs);
        for mpi in mpis {
            for &ranks in &self.arguments.ranks {
                let mut section = Section::new(&mpi.name, ranks, rows);
                progress.set_message(section.title());
                for repeat in 0..repeats {
                    for place in alternating(u64::from(repeat), Side::ALL.len()) {
                        let side = Side::ALL[place];
                        self.run(mpi, side, &mut section, &mut latencies.faults);
                        progress.inc(1);
                    }
                }
                latencies.sections.push(section);
            }
        }
        progress.finish_and_clear();
    }

    /// One run of one side.
    fn run(&self, mpi: &Mpi, side: Side, section: &mut Section, faults: &mut Vec<String>) {
        let launch = Launch {
            launcher: &mpi.launcher,
            ranks: section.ranks,
            worker: worker::NAME,
            arguments: self.worker_arguments(mpi, side),
            time_max: Duration::from_secs(self.arguments.time_max),
            scratch: Some(self.scratch),
        };
        let mut found = Vec::new();
        let mut reported = 0;
        let outcome = launch.run(&mut |line| {
            let Line::Latency(latency) = line else { return };
            reported += 1;
            found.extend(section.add(side, latency).err());
        });
        let expected = section.figures.len();
        match outcome {
            Ok(()) if reported < expected => {
                found.push(format!("reported {reported} times instead of {expected}"));
            }
            Ok(()) => {}
            Err(reason) => {
                let figure = section.figures.get(reported);
                let place = figure.map_or("at its end", |it| it.row.call.name);
                found.push(format!("{place}: {reason}"));
            }
        }
        let context = format!("{}: {}", section.title(), side.name());
        for fault in found {
            let fault = format!("{context}: {fault}");
            if !faults.contains(&fault) {
                faults.push(fault);
            }
        }
    }

    fn worker_arguments(&self, mpi: &Mpi, side: Side) -> Vec<OsString> {
        let sizes: Vec<_> = self.arguments.size.iter().map(u64::to_string).collect();
        let mut words: Vec<OsString> = vec!["--dir".into(), self.scratch.path().into()];
        let mut option = |name: &str, value: OsString| words.extend([name.into(), value]);
        option("--size", sizes.join(",").into());
        option("--time", self.arguments.time.to_string().into());
        if !self.arguments.call.is_empty() {
            option("--call", self.arguments.call.join(",").into());
        }
        if let Some(library) = &mpi.named_library {
            option("--mpi-library", library.into());
        }
        if side == Side::Pario {
            option("--library", self.library.into());
        }
        words
    }
}
