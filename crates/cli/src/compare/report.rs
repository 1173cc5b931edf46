//! The comparison on a terminal, and as JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::Comparison;
use super::contest::conclude;
use super::figures::{Contender, Row, Section, Side, Summary, is_behind};
use crate::machine::Machine;
use crate::measure::{Direction, Doubt, Samples, print_doubts};
use crate::output::{Align, Table, or_dash};

/// Marks a ratio below one.
const BEHIND: char = '<';

/// One section's rows and their summary.
pub(crate) fn section(
    comparison: &Comparison,
    section: &Section,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(out, "\n{}", section.title())?;
    let mut header = vec![("pattern", Align::Left), ("", Align::Left)];
    let mut groups = vec![(String::new(), 2)];
    for mpi in &comparison.mpis {
        let titles = ["own", "raw", "pario", "raw", "ratio  "];
        header.extend(titles.map(|title| (title, Align::Right)));
        groups.push((mpi.name.clone(), titles.len()));
    }
    header.push(("best peer  ", Align::Right));
    let mut table = Table::new(header).grouped(groups);
    for row in &section.rows {
        table.push(cells(row, comparison.mpis.len()));
    }
    table.print(out)?;
    for (index, mpi) in comparison.mpis.iter().enumerate() {
        if let Some(summary) = section.over_own(index) {
            writeln!(out, "pario vs. {}: {}", mpi.name, words(&summary))?;
        }
    }
    if let Some(summary) = section.over_best_peer() {
        writeln!(out, "pario vs. the best peer: {}", words(&summary))?;
    }
    Ok(())
}

fn cells(row: &Row, mpis: usize) -> Vec<String> {
    let mut cells = vec![row.pattern.to_owned(), row.direction.name().to_owned()];
    for mpi in 0..mpis {
        for side in Side::ALL {
            let repeats = row.repeats(Contender { mpi, side });
            cells.push(repeats.samples.speed_cell(row.bytes));
            cells.push(or_dash(repeats.of_raw.map(|it| format!("{it:.2}"))));
        }
        cells.push(marked(row.over_own(mpi)));
    }
    cells.push(marked(row.over_best_peer()));
    cells
}

fn marked(ratio: Option<f64>) -> String {
    match ratio {
        None => "-  ".to_owned(),
        Some(ratio) if is_behind(ratio) => format!("{ratio:.2}x {BEHIND}"),
        Some(ratio) => format!("{ratio:.2}x  "),
    }
}

fn words(summary: &Summary) -> String {
    let (worst, row) = &summary.worst;
    format!(
        "geometric mean {:.2}x, worst {worst:.2}x ({row}), behind in {} of {}",
        summary.mean, summary.behind, summary.rows
    )
}

/// The meaning of the columns, and the failures.
pub(crate) fn end(comparison: &Comparison, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "\nMB/s from open to close, best of {}; raw: relative to plain POSIX calls that move the \
         same amount in the same run;\nratio: pario relative to the MPI's own MPI-IO; best peer: \
         the best of pario relative to the best of the MPIs' own; {BEHIND}: pario is slower",
        comparison.repeats_in_words()
    )?;
    let samples = comparison.sections.iter().flat_map(Section::samples);
    print_doubts(samples.filter_map(Samples::doubt), "--scale", out)?;
    conclude(&comparison.notes, &comparison.faults, out)
}

/// The comparison as JSON.
#[derive(Serialize)]
pub(crate) struct Document<'a> {
    #[serde(flatten)]
    machine: &'a Machine,
    command: &'a str,
    scale: f64,
    repeats: u32,
    mpis: Vec<MpiDocument<'a>>,
    notes: &'a [String],
    faults: &'a [String],
    sections: Vec<SectionDocument<'a>>,
}

#[derive(Serialize)]
struct MpiDocument<'a> {
    name: &'a str,
    launcher: String,
    library: &'a str,
    version: &'a str,
}

#[derive(Serialize)]
struct SectionDocument<'a> {
    directory: &'a str,
    file_system: &'a str,
    ranks: u32,
    mode: &'static str,
    rows: Vec<RowDocument<'a>>,
}

#[derive(Serialize)]
struct RowDocument<'a> {
    pattern: &'static str,
    #[serde(with = "crate::measure::direction")]
    direction: Direction,
    bytes: u64,
    pieces: u64,
    figures: Vec<FigureDocument<'a>>,
}

#[derive(Serialize)]
struct FigureDocument<'a> {
    mpi: &'a str,
    mpi_io: &'static str,
    seconds: &'a Samples,
    megabytes_per_second: Option<f64>,
    of_raw: Option<f64>,
    doubt: Option<Doubt>,
}

impl<'a> From<&'a Comparison> for Document<'a> {
    fn from(comparison: &'a Comparison) -> Self {
        let mpis = comparison.mpis.iter().map(|mpi| MpiDocument {
            name: &mpi.name,
            launcher: mpi.launcher.display().to_string(),
            library: &mpi.described.library,
            version: &mpi.described.version,
        });
        let sections = comparison.sections.iter().map(|section| SectionDocument {
            directory: &section.directory,
            file_system: &section.file_system,
            ranks: section.ranks,
            mode: section.mode.name(),
            rows: section.rows.iter().map(|it| row(comparison, it)).collect(),
        });
        Document {
            machine: &comparison.machine,
            command: &comparison.command,
            scale: comparison.scale,
            repeats: comparison.repeats,
            mpis: mpis.collect(),
            notes: &comparison.notes,
            faults: &comparison.faults,
            sections: sections.collect(),
        }
    }
}

fn row<'a>(comparison: &'a Comparison, row: &'a Row) -> RowDocument<'a> {
    let figures = Contender::all(comparison.mpis.len()).map(|contender| {
        let repeats = row.repeats(contender);
        FigureDocument {
            mpi: &comparison.mpis[contender.mpi].name,
            mpi_io: contender.side.name(),
            seconds: &repeats.samples,
            megabytes_per_second: row.speed(contender),
            of_raw: repeats.of_raw,
            doubt: repeats.samples.doubt(),
        }
    });
    RowDocument {
        pattern: row.pattern,
        direction: row.direction,
        bytes: row.bytes,
        pieces: row.pieces,
        // A contender has no figure if all of its runs failed.
        figures: figures.filter(|it| it.of_raw.is_some()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::comparison;
    use super::*;

    #[test]
    fn rows_where_pario_is_slower_are_marked() {
        let comparison = comparison();
        let mut text = Vec::new();
        section(&comparison, &comparison.sections[0], &mut text).unwrap();
        end(&comparison, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let row = |pattern: &str, direction: &str| {
            let is_row = |line: &&str| {
                let mut words = line.split_whitespace();
                (words.next(), words.next()) == (Some(pattern), Some(direction))
            };
            text.lines().find(is_row).unwrap()
        };
        let tile = row("tile", "write");
        assert!(
            tile.contains("2.00x  ") && tile.contains("0.50x <"),
            "{text}"
        );
        let empty = row("small", "read");
        assert!(empty.contains(" -") && !empty.contains('<'), "{text}");
        assert!(
            text.contains("pario vs. MPI B: geometric mean 0.50x"),
            "{text}"
        );
        assert!(text.contains("behind in 3 of 3"), "{text}");
        assert!(text.contains("FAILED MPI A: wrong"), "{text}");
    }

    #[test]
    fn every_figure_is_in_the_json() {
        let comparison = comparison();
        let value = serde_json::to_value(Document::from(&comparison)).unwrap();
        assert_eq!(value.to_string().matches("\"seconds\"").count(), 12);
        assert_eq!(
            value["sections"][0]["rows"][0]["figures"][1],
            json!({
                "mpi": "MPI A", "mpi_io": "pario", "seconds": [2.0, 1.0],
                "megabytes_per_second": 2.0, "of_raw": 1.0, "doubt": "spread"
            })
        );
        assert_eq!(value["sections"][0]["rows"][3]["figures"], json!([]));
    }
}
