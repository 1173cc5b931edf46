//! `pario bench limits`: how fast the machine itself writes and reads one file, without MPI-IO. The
//! design of collective I/O depends on such facts: whether two writers are faster than one, what a
//! small call or a mapping costs.

mod contenders;
mod huge_pages;
mod mapping;
mod method;
mod pattern;
mod report;
mod session;
mod threads;
mod verify;

use std::io::Write;
use std::path::PathBuf;

use contenders::{CONTENDERS, State};
use report::Document;
use session::{Row, Session};

use crate::failure::Failure;
use crate::machine::Machine;
use crate::measure::capacity::Kept;
use crate::measure::{Need, Scratch, progress_bar};
use crate::output::{self, JsonOption};
use crate::workload;

/// Sizes are multiples of this, so that parts of files are whole pages.
const SIZE_UNIT: u64 = 1 << 20;

/// The smallest file: one large call.
const SIZE_MIN: u64 = 8 << 20;

/// Files that exist at the same time: one that is read, one that is written.
const FILES: u64 = 2;

/// Memory in use at the same time, in file sizes: what is written, what is read into, what the
/// kernel copies from.
const BUFFERS: u64 = 3;

/// The options of `pario bench limits`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Directory for the files [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Size of the file, a multiple of 1M, at least 8M
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = parse_size)]
    size: u64,
    /// Number of times each contender runs; the best counts
    #[arg(long, value_name = "NUMBER", aliases = ["repeat", "rounds"], default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: u32,
    #[command(flatten)]
    json: JsonOption,
}

/// The results.
struct Limits {
    machine: Machine,
    /// The directory that was measured.
    directory: PathBuf,
    file_system: String,
    size: usize,
    repeats: u32,
    rows: Vec<Row>,
}

impl Limits {
    /// Bytes that a contender moves.
    fn bytes(&self, row: &Row) -> u64 {
        row.contender.pattern.bytes(self.size) as u64
    }

    /// The speed of a contender relative to the first one.
    fn of_pwrite(&self, row: &Row, state: State) -> Option<f64> {
        let speed = |row: &Row| row.samples(state).megabytes_per_second(self.bytes(row));
        Some(speed(row)? / speed(self.rows.first()?)?)
    }

    /// Time per piece in the best repeat.
    fn nanoseconds_per_piece(&self, row: &Row, state: State) -> Option<f64> {
        let pieces = row.contender.pattern.count(self.size);
        Some(row.samples(state).best_seconds()? * 1e9 / pieces as f64)
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), Failure> {
    arguments.json.check()?;
    let scratch = Scratch::new(arguments.dir.as_deref())?;
    let need = Need {
        memory: arguments.size.saturating_mul(BUFFERS),
        files: arguments.size.saturating_mul(FILES),
        // The files are read from the cache, wherever they are stored.
        kept: Kept::InMemory,
        size_option: "--size",
    };
    need.check(scratch.parent())?;
    let limits = measure(arguments, &scratch)?;
    let document = Document::from(&limits);
    match arguments.json.is_printed() {
        true => output::json(&document, out),
        false => report::table(&limits, out),
    }
    .map_err(Failure::Output)?;
    arguments.json.save(&document)
}

fn measure(arguments: &Arguments, scratch: &Scratch) -> Result<Limits, Failure> {
    let mut session = Session::new(arguments.size, scratch.path())?;
    let mut rows: Vec<_> = CONTENDERS.iter().map(Row::new).collect();
    let progress = progress_bar(u64::from(arguments.repeats + 1) * rows.len() as u64);
    progress.set_message("check");
    for row in &mut rows {
        session.check(row)?;
        progress.inc(1);
    }
    progress.set_message("measure");
    for round in 0..arguments.repeats {
        session.round(round, &mut rows, || progress.inc(1))?;
    }
    progress.finish_and_clear();
    let mut machine = Machine::this();
    let huge_pages = huge_pages::setting();
    machine
        .facts
        .extend(huge_pages.map(|setting| ("Huge pages", setting)));
    Ok(Limits {
        machine,
        directory: scratch.parent().to_owned(),
        file_system: scratch.facts().file_system.to_string(),
        size: session.size(),
        repeats: arguments.repeats,
        rows,
    })
}

fn parse_size(text: &str) -> Result<u64, String> {
    let size = workload::parse_size(text)?;
    match size {
        small if small < SIZE_MIN => Err(format!("must be at least {} MiB", SIZE_MIN >> 20)),
        odd if odd % SIZE_UNIT != 0 => Err("must be a multiple of 1 MiB, as in 64M".to_owned()),
        size => Ok(size),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Two contenders with times and one that is not available.
    pub(super) fn limits() -> Limits {
        let named = |name: &str| {
            let found = CONTENDERS.iter().find(|it| it.name == name);
            Row::new(found.unwrap())
        };
        let mut rows = [
            "pwrite, one writer",
            "pwrite, calls of 4 KiB",
            "pwrite, O_DIRECT",
        ]
        .map(named);
        let [pwrite, small, direct] = &mut rows;
        pwrite.fresh.push(Duration::from_secs(2));
        pwrite.existing.push(Duration::from_secs(1));
        small.fresh.push(Duration::from_secs(8));
        small.existing.push(Duration::from_secs(2));
        direct.unavailable = Some("the file system has no \"O_DIRECT\"".to_owned());
        Limits {
            machine: Machine {
                date: "2000-02-29".to_owned(),
                pario: "0",
                facts: vec![("Kernel", "Linux".to_owned())],
            },
            directory: PathBuf::from("/data"),
            file_system: "tmpfs".to_owned(),
            size: 8 << 20,
            repeats: 1,
            rows: rows.into(),
        }
    }

    #[test]
    fn speeds_are_compared_with_the_first_contender() {
        let limits = limits();
        let small = &limits.rows[1];
        assert_eq!(limits.of_pwrite(small, State::Fresh), Some(0.25));
        assert_eq!(limits.of_pwrite(small, State::Existing), Some(0.5));
        let speed = small.fresh.megabytes_per_second(limits.bytes(small));
        assert_eq!(speed, Some(1.048_576));
        let time = limits.nanoseconds_per_piece(small, State::Existing);
        assert_eq!(time, Some(2e9 / 2048.0));
        assert_eq!(limits.of_pwrite(&limits.rows[2], State::Fresh), None);
    }

    #[test]
    fn sizes_have_bounds() {
        assert_eq!(parse_size("8M"), Ok(8 << 20));
        assert_eq!(parse_size("1g"), Ok(1 << 30));
        for (text, reason) in [
            ("7M", "at least 8 MiB"),
            ("0", "at least 8 MiB"),
            ("8388609", "multiple of 1 MiB"),
            ("99999999999G", "exceeds"),
            ("many", "not a number"),
        ] {
            let rejected = parse_size(text).unwrap_err();
            assert!(rejected.contains(reason), "{text}: {rejected}");
        }
    }
}
