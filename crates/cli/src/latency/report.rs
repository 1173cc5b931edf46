//! The times as tables, as comma-separated values and as JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::figures::{Figure, Latencies, Section, Times};
use crate::compare::contest::conclude;
use crate::compare::figures::Side;
use crate::compare::options::runs;
use crate::machine::Machine;
use crate::measure::{Doubt, print_doubts};
use crate::output::{Table, or_dash};

/// Prints what the figures were measured on.
pub(super) fn introduce(latencies: &Latencies, out: &mut impl Write) -> io::Result<()> {
    for (name, value) in &latencies.machine.facts {
        writeln!(out, "{name}: {value}")?;
    }
    out.flush()
}

/// Prints the table of a section.
pub(super) fn section(
    latencies: &Latencies,
    section: &Section,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(
        out,
        "\n{} in {} ({})",
        section.title(),
        latencies.directory,
        latencies.file_system
    )?;
    section_table(section).print(out)?;
    out.flush()
}

/// Prints what the columns mean, and what went wrong.
pub(super) fn end(latencies: &Latencies, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "\nmicroseconds per call: the best of {} and, in parentheses, their median; ratio: the MPI's \
         own best time relative to pario's",
        runs(latencies.repeats)
    )?;
    let figures = latencies.sections.iter().flat_map(|it| &it.figures);
    let times = figures.flat_map(|it| Side::ALL.map(|side| it.times(side)));
    print_doubts(times.filter_map(Times::doubt), "--time", out)?;
    conclude(&latencies.notes, &latencies.faults, out)
}

fn section_table(section: &Section) -> Table {
    let mut table = Table::of_numbers(["call", "bytes", "in flight", "own", "pario", "ratio"]);
    for figure in &section.figures {
        let [own, pario] = Side::ALL.map(|side| cell(figure.times(side)));
        table.push([
            figure.row.call.name.to_owned(),
            figure.row.bytes.to_string(),
            figure.row.in_flight.to_string(),
            own,
            pario,
            or_dash(figure.ratio().map(|it| format!("{it:.2}x"))),
        ]);
    }
    table
}

/// A mark follows if the time is doubtful, otherwise a blank, so that digits align.
fn cell(times: &Times) -> String {
    let mark = times.doubt().map_or(' ', Doubt::mark);
    let text = times.best_and_median();
    or_dash(text.map(|(best, median)| format!("{best:.2} ({median:.2}){mark}")))
}

/// A line of comma-separated values.
#[derive(Serialize)]
struct Record<'a> {
    mpi: &'a str,
    ranks: u32,
    call: &'static str,
    bytes: u64,
    in_flight: usize,
    mpi_io: &'static str,
    us_per_call: Option<f64>,
    us_median: Option<f64>,
    doubt: Option<Doubt>,
}

/// Prints one line per call and side.
pub(super) fn csv(latencies: &Latencies, out: &mut impl Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    for section in &latencies.sections {
        for figure in &section.figures {
            for side in Side::ALL {
                writer.serialize(record(section, figure, side))?;
            }
        }
    }
    writer.flush()
}

fn record<'a>(section: &'a Section, figure: &Figure, side: Side) -> Record<'a> {
    let times = figure.times(side);
    Record {
        mpi: &section.mpi,
        ranks: section.ranks,
        call: figure.row.call.name,
        bytes: figure.row.bytes,
        in_flight: figure.row.in_flight,
        mpi_io: side.name(),
        us_per_call: times.best_and_median().map(|it| it.0),
        us_median: times.best_and_median().map(|it| it.1),
        doubt: times.doubt(),
    }
}

/// The times as JSON.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    #[serde(flatten)]
    machine: &'a Machine,
    directory: &'a str,
    file_system: &'a str,
    repeats: u32,
    notes: &'a [String],
    faults: &'a [String],
    sections: Vec<SectionDocument<'a>>,
}

#[derive(Serialize)]
struct SectionDocument<'a> {
    mpi: &'a str,
    ranks: u32,
    rows: Vec<RowDocument<'a>>,
}

#[derive(Serialize)]
struct RowDocument<'a> {
    call: &'static str,
    bytes: u64,
    in_flight: usize,
    own: TimesDocument<'a>,
    pario: TimesDocument<'a>,
    ratio: Option<f64>,
}

#[derive(Serialize)]
struct TimesDocument<'a> {
    seconds: &'a Times,
    microseconds_per_call: Option<f64>,
    microseconds_median: Option<f64>,
    doubt: Option<Doubt>,
}

impl<'a> From<&'a Latencies> for Document<'a> {
    fn from(latencies: &'a Latencies) -> Self {
        let sections = latencies.sections.iter().map(|section| SectionDocument {
            mpi: &section.mpi,
            ranks: section.ranks,
            rows: section.figures.iter().map(row).collect(),
        });
        Document {
            machine: &latencies.machine,
            directory: &latencies.directory,
            file_system: &latencies.file_system,
            repeats: latencies.repeats,
            notes: &latencies.notes,
            faults: &latencies.faults,
            sections: sections.collect(),
        }
    }
}

fn row(figure: &Figure) -> RowDocument<'_> {
    let [own, pario] = Side::ALL.map(|side| {
        let times = figure.times(side);
        TimesDocument {
            seconds: times,
            microseconds_per_call: times.best_and_median().map(|it| it.0),
            microseconds_median: times.best_and_median().map(|it| it.1),
            doubt: times.doubt(),
        }
    });
    RowDocument {
        call: figure.row.call.name,
        bytes: figure.row.bytes,
        in_flight: figure.row.in_flight,
        own,
        pario,
        ratio: figure.ratio(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::figures::tests::latencies;
    use super::*;

    #[test]
    fn rows_have_times_or_dashes() {
        let mut text = Vec::new();
        let latencies = latencies();
        introduce(&latencies, &mut text).unwrap();
        section(&latencies, &latencies.sections[0], &mut text).unwrap();
        end(&latencies, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.contains("\nMPI, A, 2 ranks in /data (tmpfs)\n"),
            "{text}"
        );
        let rows: Vec<Vec<_>> = text
            .lines()
            .filter(|line| line.starts_with("write_at"))
            .map(|line| line.split_whitespace().collect())
            .collect();
        let expected = [
            "write_at", "0", "1", "4.00", "(4.50)", "2.00", "(3.00)~", "2.00x",
        ];
        assert_eq!(rows[0], expected);
        assert_eq!(rows[1], ["write_at", "8", "1", "-", "-", "-"]);
        assert!(
            text.contains("\n~ ") && text.contains("or --time"),
            "{text}"
        );
        assert!(text.contains("FAILED MPI, A: wrong"), "{text}");
    }

    #[test]
    fn lines_have_all_fields() {
        let mut text = Vec::new();
        csv(&latencies(), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 1 + 2 * 2);
        assert_eq!(lines[1], "\"MPI, A\",2,write_at,0,1,own,4.0,4.5,");
        assert_eq!(lines[4], "\"MPI, A\",2,write_at,8,1,pario,,,");
    }

    #[test]
    fn every_repeat_is_in_the_json() {
        let latencies = latencies();
        let value = serde_json::to_value(Document::from(&latencies)).unwrap();
        assert_eq!(value["faults"], json!(["MPI, A: wrong"]));
        let rows = &value["sections"][0]["rows"];
        assert_eq!(
            rows[0]["pario"],
            json!({
                "seconds": [2e-6, 3e-6, 4e-6], "microseconds_per_call": 2.0,
                "microseconds_median": 3.0, "doubt": "spread"
            })
        );
        assert_eq!(rows[1]["own"]["seconds"], json!([]));
    }
}
