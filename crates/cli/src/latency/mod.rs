//! `pario bench latency`: microseconds per call of every family of file functions, with the MPI's own
//! MPI-IO and with pario, under every MPI of a machine.

mod calls;
mod functions;
mod report;
pub(crate) mod worker;

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::bench::folder::Folder;
use crate::compare::figures::Side;
use crate::compare::launch::{Launch, WorkerCommand};
use crate::compare::mpis::{self, Mpi, Search};
use crate::compare::protocol::Line;
use crate::failure::Failure;
use crate::run::library;
use calls::Row;
use report::Format;

/// What to measure.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Numbers of ranks
    #[arg(long, short = 'n', value_name = "NUMBERS", value_delimiter = ',', default_value = "2", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    ranks: Vec<u32>,
    /// Calls, as in write_at,iwrite_at_all [default: all of them]
    #[arg(long, short, value_name = "NAMES", value_delimiter = ',')]
    call: Vec<String>,
    /// Bytes per rank and call
    #[arg(
        long,
        value_name = "NUMBERS",
        value_delimiter = ',',
        default_value = "0,8,4096,65536"
    )]
    size: Vec<u64>,
    /// Times each contender is run; the best and the median are told
    #[arg(long, value_name = "TIMES", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Time for each figure of a round, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    time: u64,
    /// Folder for the file [default: the system's folder for temporary files]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// One more MPI: a folder that has bin/mpirun, or a launcher; may be given several times
    #[arg(long, value_name = "PREFIX")]
    mpi: Vec<OsString>,
    /// Do not look for MPIs: only those of --mpi
    #[arg(long, requires = "mpi")]
    no_search: bool,
    /// The drop-in library [default: libpario.so of this installation, or what the environment
    /// variable PARIO_LIBRARY names]
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// A run of all calls that takes longer has failed
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    time_max: u64,
    /// How to print the figures
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// The figures of one number of ranks under one MPI.
struct Section<'a> {
    mpi: &'a Mpi,
    ranks: u32,
    rows: Vec<Row>,
    /// By row and side, the seconds per call of each round.
    seconds: Vec<[Vec<f64>; 2]>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), Failure> {
    let library = library::find(arguments.library.as_deref())?;
    let calls = calls::named(&arguments.call).map_err(Failure::Arguments)?;
    let rows = calls::rows(&calls, &arguments.size);
    let folder = Folder::new(arguments.dir.as_deref())?;
    let search = match arguments.no_search {
        true => Search::Named,
        false => Search::Machine,
    };
    let found = mpis::find(&arguments.mpi, search)?;
    for note in &found.notes {
        eprintln!("pario: {note}");
    }
    let mut faults = Vec::new();
    let mut sections = Vec::new();
    for mpi in &found.mpis {
        for &ranks in &arguments.ranks {
            let mut section = Section {
                mpi,
                ranks,
                seconds: vec![<[Vec<f64>; 2]>::default(); rows.len()],
                rows: rows.clone(),
            };
            // In turn, so that what disturbs the machine meets both alike.
            for round in 0..arguments.rounds {
                let mut sides = Side::ALL;
                if round % 2 == 1 {
                    sides.reverse();
                }
                for side in sides {
                    section.measure(arguments, &library, &folder, side, &mut faults);
                }
            }
            sections.push(section);
        }
    }
    report::write(arguments.format, &sections, out).map_err(Failure::Output)?;
    for fault in &faults {
        eprintln!("pario: {fault}");
    }
    match faults.len() {
        0 => Ok(()),
        count => Err(Failure::Faults { count }),
    }
}

impl Section<'_> {
    fn title(&self) -> String {
        format!("{}, {} ranks", self.mpi.name, self.ranks)
    }

    /// One run of one side.
    fn measure(
        &mut self,
        arguments: &Arguments,
        library: &Path,
        folder: &Folder,
        side: Side,
        faults: &mut Vec<String>,
    ) {
        let sizes: Vec<_> = arguments.size.iter().map(u64::to_string).collect();
        let mut words: Vec<OsString> = vec!["--dir".into(), folder.path().into()];
        let mut option = |name: &str, value: OsString| words.extend([name.into(), value]);
        option("--size", sizes.join(",").into());
        option("--time", arguments.time.to_string().into());
        if !arguments.call.is_empty() {
            option("--call", arguments.call.join(",").into());
        }
        if let Some(library) = &self.mpi.named_library {
            option("--mpi-library", library.into());
        }
        if side == Side::Pario {
            option("--library", library.into());
        }
        let launch = Launch {
            launcher: &self.mpi.launcher,
            ranks: self.ranks,
            worker: WorkerCommand::Latency,
            arguments: words,
            time_max: Duration::from_secs(arguments.time_max),
        };
        let title = self.title();
        let outcome = launch.run(&mut |line| {
            let Line::Figure(figure) = line else { return };
            let row = self.rows.iter().position(|row| {
                row.call.name == figure.pattern
                    && row.bytes == figure.bytes
                    && row.in_flight as u64 == figure.pieces
            });
            match (row, figure.fault) {
                (Some(row), None) => self.seconds[row][side as usize].push(figure.seconds),
                (_, fault) => faults.push(format!(
                    "{title}: {}: {}",
                    figure.pattern,
                    fault.unwrap_or_else(|| "nobody asked for this call".to_owned())
                )),
            }
        });
        if let Err(reason) = outcome {
            let side = match side {
                Side::Own => "its own MPI-IO",
                Side::Pario => "pario",
            };
            faults.push(format!("{title}: {side}: {reason}"));
        }
    }
}
