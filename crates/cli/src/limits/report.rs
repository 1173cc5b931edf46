//! The limits as a table and as JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::Limits;
use super::contenders::State;
use super::session::Row;
use crate::machine::Machine;
use crate::measure::{Doubt, Samples, print_doubts};
use crate::output::{Align, Table, or_dash};

/// The time per piece is shown for pieces of up to this size.
const SMALL_PIECE: usize = 4 << 10;

/// Prints the machine, a table, and the meaning of the columns.
pub(super) fn table(limits: &Limits, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "one file of {} MiB in {} ({}), best of {}",
        limits.size >> 20,
        limits.directory.display(),
        limits.file_system,
        limits.repeats
    )?;
    for (name, value) in &limits.machine.facts {
        writeln!(out, "{name}: {value}")?;
    }
    let mut table = Table::new([
        ("", Align::Left),
        ("", Align::Left),
        ("fresh MB/s", Align::Right),
        ("of pwrite", Align::Right),
        ("existing MB/s", Align::Right),
        ("of pwrite", Align::Right),
        ("", Align::Left),
    ]);
    let mut kind = "";
    for row in &limits.rows {
        let name = row.contender.kind.name();
        let mut cells = vec![(if name == kind { "" } else { name }).to_owned()];
        kind = name;
        cells.push(row.contender.name.to_owned());
        for state in [State::Fresh, State::Existing] {
            let ratio = limits.of_pwrite(row, state);
            cells.push(row.samples(state).speed_cell(limits.bytes(row)));
            cells.push(or_dash(ratio.map(|ratio| format!("{ratio:.2}x"))));
        }
        cells.push(remark(limits, row));
        table.push(cells);
    }
    writeln!(out)?;
    table.print(out)?;
    writeln!(
        out,
        "\nfresh: a new file; existing: written or read again, its pages in the cache; of pwrite: \
         relative to one\nwriter with large calls; holes: every second piece of 256 bytes; the \
         bytes of every contender were verified once"
    )?;
    let samples = limits.rows.iter().flat_map(|it| [&it.fresh, &it.existing]);
    print_doubts(samples.filter_map(Samples::doubt), "--size", out)
}

/// Why there are no numbers, or a remark on them.
fn remark(limits: &Limits, row: &Row) -> String {
    if let Some(reason) = &row.unavailable {
        return format!("not available: {reason}");
    }
    let mut remarks: Vec<_> = row.note.clone().into_iter().collect();
    if row.contender.pattern.piece() <= SMALL_PIECE {
        let times: Vec<_> = [State::Fresh, State::Existing]
            .iter()
            .filter_map(|state| limits.nanoseconds_per_piece(row, *state))
            .map(|time| format!("{time:.0}"))
            .collect();
        remarks.push(format!("{} ns per piece", times.join(" and ")));
    }
    remarks.join(", ")
}

/// The limits as JSON.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    #[serde(flatten)]
    machine: &'a Machine,
    directory: String,
    file_system: &'a str,
    size: usize,
    repeats: u32,
    contenders: Vec<Contender<'a>>,
}

#[derive(Serialize)]
struct Contender<'a> {
    kind: &'static str,
    name: &'static str,
    piece_bytes: usize,
    pieces: usize,
    bytes: u64,
    fresh: Option<Figure<'a>>,
    existing: Option<Figure<'a>>,
    unavailable: Option<&'a str>,
    note: Option<&'a str>,
}

#[derive(Serialize)]
struct Figure<'a> {
    megabytes_per_second: f64,
    of_pwrite: Option<f64>,
    nanoseconds_per_piece: Option<f64>,
    doubt: Option<Doubt>,
    seconds: &'a Samples,
}

impl<'a> From<&'a Limits> for Document<'a> {
    fn from(limits: &'a Limits) -> Self {
        let contender = |row: &'a Row| Contender {
            kind: row.contender.kind.name(),
            name: row.contender.name,
            piece_bytes: row.contender.pattern.piece(),
            pieces: row.contender.pattern.count(limits.size),
            bytes: limits.bytes(row),
            fresh: figure(limits, row, State::Fresh),
            existing: figure(limits, row, State::Existing),
            unavailable: row.unavailable.as_deref(),
            note: row.note.as_deref(),
        };
        Document {
            machine: &limits.machine,
            directory: limits.directory.display().to_string(),
            file_system: &limits.file_system,
            size: limits.size,
            repeats: limits.repeats,
            contenders: limits.rows.iter().map(contender).collect(),
        }
    }
}

fn figure<'a>(limits: &Limits, row: &'a Row, state: State) -> Option<Figure<'a>> {
    let samples = row.samples(state);
    Some(Figure {
        megabytes_per_second: samples.megabytes_per_second(limits.bytes(row))?,
        of_pwrite: limits.of_pwrite(row, state),
        nanoseconds_per_piece: limits.nanoseconds_per_piece(row, state),
        doubt: samples.doubt(),
        seconds: samples,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::limits;
    use super::*;

    #[test]
    fn rows_have_speeds_or_reasons() {
        let mut text = Vec::new();
        table(&limits(), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let row = |name: &str| {
            let found = text.lines().find(|line| line.contains(name));
            let words = found.unwrap().split_whitespace();
            words.collect::<Vec<_>>().join(" ")
        };
        assert!(text.starts_with("one file of 8 MiB in /data (tmpfs), best of 1\nKernel: Linux\n"));
        assert_eq!(
            row("one writer "),
            "write pwrite, one writer 4 1.00x 8 1.00x"
        );
        assert_eq!(
            row("4 KiB"),
            "pwrite, calls of 4 KiB 1 0.25x 4 0.50x 3906250 and 976562 ns per piece"
        );
        assert_eq!(
            row("O_DIRECT"),
            "pwrite, O_DIRECT - - - - not available: the file system has no \"O_DIRECT\""
        );
    }

    #[test]
    fn every_contender_is_in_the_json() {
        let limits = limits();
        let value = serde_json::to_value(Document::from(&limits)).unwrap();
        assert_eq!(
            (&value["date"], &value["size"]),
            (&json!("2000-02-29"), &json!(8 << 20))
        );
        let small = &value["contenders"][1];
        assert_eq!(small["name"], "pwrite, calls of 4 KiB");
        assert_eq!(
            (&small["pieces"], &small["bytes"]),
            (&json!(2048), &json!(8 << 20))
        );
        assert_eq!(
            small["fresh"],
            json!({
                "megabytes_per_second": 1.048_576, "of_pwrite": 0.25,
                "nanoseconds_per_piece": 3_906_250.0, "doubt": null, "seconds": [8.0]
            })
        );
        let direct = &value["contenders"][2];
        assert_eq!(
            (&direct["fresh"], &direct["existing"]),
            (&json!(null), &json!(null))
        );
        assert_eq!(direct["unavailable"], "the file system has no \"O_DIRECT\"");
    }
}
