//! `pario bench latency`: microseconds per call of every family of file functions, with the MPI's
//! own MPI-IO and with pario, under every MPI on this machine.

mod calls;
mod figures;
mod functions;
mod report;
pub(crate) mod worker;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;

use crate::compare::contest::Contest;
use crate::compare::figures::Side;
use crate::compare::launch::Launch;
use crate::compare::mpis::Mpi;
use crate::compare::options::{self, Options};
use crate::compare::protocol::Line;
use crate::failure::Failure;
use crate::machine::Machine;
use crate::measure::capacity::Kept;
use crate::measure::{Need, Scratch, interleave};
use crate::output;
use crate::workload;
use calls::Row;
use figures::{Latencies, Section};
use report::Document;

/// Maximum bytes per call: larger calls measure bandwidth.
const SIZE_MAX: u64 = 16 << 20;

/// The options of `pario bench latency`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Calls, as in write_at,iwrite_at_all; may be repeated [default: all]
    #[arg(long, short, value_name = "LIST", value_delimiter = ',')]
    call: Vec<String>,
    /// Bytes per rank, per call, as in 8,64K
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0,8,4K,64K", value_parser = parse_size)]
    size: Vec<u64>,
    /// Time of each figure in each repeat
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    time: u64,
    /// Directory for the file [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print comma-separated values instead of tables
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    #[command(flatten)]
    options: Options,
}

fn parse_size(text: &str) -> Result<u64, String> {
    match workload::parse_size(text)? {
        size if size > SIZE_MAX => Err(format!("must be at most {} MiB", SIZE_MAX >> 20)),
        size => Ok(size),
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), Failure> {
    let library = arguments.options.library()?;
    let calls = calls::named(&arguments.call).map_err(Failure::Arguments)?;
    let rows = calls::rows(&calls, &arguments.size);
    arguments.options.json.check()?;
    let scratch = Scratch::new(arguments.dir.as_deref())?;
    arguments.check_capacity(&rows, &scratch)?;
    let found = arguments.options.mpis()?;
    let mut latencies = Latencies {
        machine: Machine::this(),
        directory: scratch.parent().display().to_string(),
        file_system: scratch.facts().file_system.to_string(),
        repeats: arguments.options.repeats,
        sections: Vec::new(),
        notes: found.notes,
        faults: Vec::new(),
    };
    let case = Case {
        arguments,
        library: &library,
        scratch: &scratch,
    };
    match arguments.prints_tables() {
        true => case.measure(&found.mpis, &rows, &mut latencies, out)?,
        false => case.measure(&found.mpis, &rows, &mut latencies, &mut io::sink())?,
    }
    arguments.print(&latencies, out)?;
    arguments.options.json.save(&Document::from(&latencies))?;
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
        let ranks = self.options.ranks.iter().max().copied().unwrap_or(0);
        let bytes = per_rank.max().unwrap_or(0) * u64::from(ranks);
        let need = Need {
            memory: bytes,
            files: bytes,
            kept: Kept::of(scratch),
            size_option: "--size",
        };
        need.check(scratch.parent())
    }

    fn prints_tables(&self) -> bool {
        !self.csv && !self.options.json.is_printed()
    }

    /// Prints what is left when all is measured; of tables, the end.
    fn print(&self, latencies: &Latencies, out: &mut impl Write) -> Result<(), Failure> {
        match (self.csv, self.options.json.is_printed()) {
            (false, false) => report::end(latencies, out),
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
    /// Lets both sides run in turn, under every MPI with every number of ranks, and prints the table
    /// of each as soon as there is one.
    fn measure(
        &self,
        mpis: &[Mpi],
        rows: &[Row],
        latencies: &mut Latencies,
        out: &mut impl Write,
    ) -> Result<(), Failure> {
        report::introduce(latencies, out).map_err(Failure::Output)?;
        for mpi in mpis {
            for &ranks in &self.arguments.options.ranks {
                let section = self.section(mpi, ranks, rows, &mut latencies.faults);
                report::section(latencies, &section, out).map_err(Failure::Output)?;
                latencies.sections.push(section);
            }
        }
        Ok(())
    }

    fn section(&self, mpi: &Mpi, ranks: u32, rows: &[Row], faults: &mut Vec<String>) -> Section {
        let mut section = Section::new(&mpi.name, ranks, rows);
        let (repeats, sides) = (self.arguments.options.repeats, Side::ALL);
        interleave(repeats, sides.len(), rows.len(), |place, _, progress| {
            let side = sides[place];
            progress.set_message(format!("{}, {}", section.title(), side.name()));
            self.run(mpi, side, &mut section, faults, progress);
        });
        section
    }

    /// One run of one side.
    fn run(
        &self,
        mpi: &Mpi,
        side: Side,
        section: &mut Section,
        faults: &mut Vec<String>,
        progress: &ProgressBar,
    ) {
        let launch = Launch {
            launcher: &mpi.launcher,
            ranks: section.ranks,
            worker: worker::NAME,
            arguments: self.worker_arguments(mpi, side),
            time_max: self.arguments.options.time_max(),
            scratch: Some(self.scratch),
        };
        let contest = Contest {
            launch,
            context: format!("{}: {}", section.title(), side.name()),
            expected: section.figures.len(),
        };
        let names: Vec<_> = section.figures.iter().map(|it| it.row.call.name).collect();
        let place = |figure: usize| names.get(figure).copied();
        contest.run(faults, place, &mut |line| {
            let Line::Latency(latency) = line else {
                return None;
            };
            progress.inc(1);
            Some(section.add(side, latency))
        });
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
        words.extend(options::libraries(mpi, side, self.library));
        words
    }
}
