//! `pario bench limits`: what the machine itself does with one file of a folder, before any MPI-IO.
//! The choices of collective I/O rest on such facts: whether two writers are faster than one, what
//! a small call takes, what a mapping costs.

mod contenders;
mod crew;
mod huge_pages;
mod json;
mod mapping;
mod pattern;
mod ring;
mod room;
mod session;
mod table;
mod verify;
mod way;

use std::io::Write;
use std::path::PathBuf;

use contenders::{CONTENDERS, State};
use session::{Row, Session};

use crate::bench::folder::Folder;
use crate::bench::progress_bar;
use crate::compare::machine::Machine;
use crate::failure::Failure;
use crate::workload;

/// Sizes are whole multiples of this, so that parts of files are whole pages.
const SIZE_UNIT: u64 = 1 << 20;

/// The smallest file: one large call.
const SIZE_MIN: u64 = 8 << 20;

/// What to measure.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Folder for the files [default: the system's folder for temporary files]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Size of the file, in whole MiB, at least 8M
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = parse_size)]
    size: u64,
    /// Times each contender is run; the best counts
    #[arg(long, value_name = "TIMES", alias = "repeat", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What was measured.
struct Limits {
    machine: Machine,
    /// The folder that was measured.
    folder: PathBuf,
    file_system: String,
    /// Bytes of the file.
    size: usize,
    repeats: u32,
    rows: Vec<Row>,
}

impl Limits {
    /// The speed of a contender's best repeat; `None` where it was not run.
    fn megabytes_per_second(&self, row: &Row, state: State) -> Option<f64> {
        let bytes = row.contender.pattern.bytes(self.size);
        row.samples(state).megabytes_per_second(bytes as u64)
    }

    /// The same over the speed of the first contender.
    fn of_pwrite(&self, row: &Row, state: State) -> Option<f64> {
        let pwrite = self.megabytes_per_second(self.rows.first()?, state)?;
        Some(self.megabytes_per_second(row, state)? / pwrite)
    }

    /// What a piece takes in the best repeat.
    fn nanoseconds_a_piece(&self, row: &Row, state: State) -> Option<f64> {
        let best = row.samples(state).best()?;
        let pieces = row.contender.pattern.count(self.size);
        Some(best.as_secs_f64() * 1e9 / pieces as f64)
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), Failure> {
    let folder = Folder::new(arguments.dir.as_deref())?;
    room::require(folder.parent(), arguments.size)?;
    let limits = measure(arguments, &folder)?;
    match arguments.json {
        true => json::write(&limits, out),
        false => table::write(&limits, out),
    }
    .map_err(Failure::Output)
}

fn measure(arguments: &Arguments, folder: &Folder) -> Result<Limits, Failure> {
    let mut session = Session::new(arguments.size, folder.path())?;
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
        folder: folder.parent().to_owned(),
        file_system: folder.facts().file_system.to_string(),
        size: session.size(),
        repeats: arguments.repeats,
        rows,
    })
}

fn parse_size(text: &str) -> Result<u64, String> {
    let size = workload::parse_size(text)?;
    match size {
        small if small < SIZE_MIN => Err(format!("a size is at least {} MiB", SIZE_MIN >> 20)),
        odd if odd % SIZE_UNIT != 0 => Err("a size is whole MiB, as in 64M".to_owned()),
        size => Ok(size),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Two contenders with times and one that was refused.
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
        direct.refused = Some("the file system has no \"O_DIRECT\"".to_owned());
        Limits {
            machine: Machine {
                date: "2000-02-29".to_owned(),
                facts: vec![("Kernel", "Linux".to_owned())],
            },
            folder: PathBuf::from("/data"),
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
        let speed = limits.megabytes_per_second(small, State::Fresh);
        assert_eq!(speed, Some(1.048_576));
        let time = limits.nanoseconds_a_piece(small, State::Existing);
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
            ("8388609", "whole MiB"),
            ("99999999999G", "more than"),
            ("many", "no number"),
        ] {
            let refused = parse_size(text).unwrap_err();
            assert!(refused.contains(reason), "{text}: {refused}");
        }
    }
}
