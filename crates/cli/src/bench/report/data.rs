//! Machine-readable results.

use std::io::{self, Write};

use serde::Serialize;

use super::super::row::{Comparison, Row};
use crate::measure::{DIRECTIONS, Direction, Doubt, Samples};

/// A job with its methods.
#[derive(Serialize)]
pub(crate) struct Document<'a> {
    workload: &'static str,
    choices: &'a str,
    swept: Option<String>,
    sizes: &'a str,
    ranks: u32,
    calls: u64,
    bytes: u64,
    methods: Vec<MethodDocument<'a>>,
}

#[derive(Serialize)]
struct MethodDocument<'a> {
    method: &'a str,
    write: Figure<'a>,
    read: Figure<'a>,
}

/// One method in one direction.
#[derive(Serialize)]
struct Figure<'a> {
    seconds: &'a Samples,
    megabytes_per_second: Option<f64>,
    of_raw: Option<f64>,
    io_share: Option<f64>,
    microseconds_per_call: Option<f64>,
    microseconds_open_close: Option<f64>,
    doubt: Option<Doubt>,
    unavailable: Option<&'a str>,
}

/// The same as a line of comma-separated values.
#[derive(Serialize)]
struct Record<'a> {
    workload: &'static str,
    choices: &'a str,
    swept: Option<String>,
    ranks: u32,
    calls: u64,
    bytes: u64,
    method: &'a str,
    #[serde(with = "crate::measure::direction")]
    direction: Direction,
    /// Of the best repeat.
    seconds: Option<f64>,
    #[serde(rename = "MB/s")]
    megabytes_per_second: Option<f64>,
    of_raw: Option<f64>,
    io_share: Option<f64>,
    us_per_call: Option<f64>,
    us_open_close: Option<f64>,
    doubt: Option<Doubt>,
    unavailable: Option<&'a str>,
}

impl<'a> Figure<'a> {
    fn new(comparison: &Comparison, row: &'a Row, direction: Direction) -> Self {
        let side = row.side(direction);
        Figure {
            seconds: &side.samples,
            megabytes_per_second: side.samples.megabytes_per_second(comparison.bytes),
            of_raw: comparison.of_raw(row, direction),
            io_share: side.transfer_share,
            microseconds_per_call: side.microseconds_per_call(comparison.calls),
            microseconds_open_close: side.microseconds_open_close(),
            doubt: side.samples.doubt(),
            unavailable: side.unavailable.as_deref(),
        }
    }
}

fn swept(comparison: &Comparison) -> Option<String> {
    let swept = comparison.target.swept.as_ref();
    swept.map(|(choice, value)| format!("{choice}={value}"))
}

/// All comparisons as JSON.
pub(crate) fn documents(comparisons: &[Comparison]) -> Vec<Document<'_>> {
    let document = |it| {
        let comparison: &Comparison = it;
        let methods = comparison.rows.iter().map(|row| MethodDocument {
            method: &row.method.name,
            write: Figure::new(comparison, row, Direction::Write),
            read: Figure::new(comparison, row, Direction::Read),
        });
        Document {
            workload: comparison.target.workload.name,
            choices: &comparison.target.choices,
            swept: swept(comparison),
            sizes: &comparison.sizes,
            ranks: comparison.target.setting.ranks,
            calls: comparison.calls,
            bytes: comparison.bytes,
            methods: methods.collect(),
        }
    };
    comparisons.iter().map(document).collect()
}

/// Prints all comparisons as comma-separated values, one line per method and direction.
pub(crate) fn csv(comparisons: &[Comparison], out: &mut impl Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    for comparison in comparisons {
        let rows = comparison.rows.iter();
        let rows = rows.flat_map(|row| DIRECTIONS.map(|direction| (row, direction)));
        for (row, direction) in rows {
            let figure = Figure::new(comparison, row, direction);
            writer.serialize(Record {
                workload: comparison.target.workload.name,
                choices: &comparison.target.choices,
                swept: swept(comparison),
                ranks: comparison.target.setting.ranks,
                calls: comparison.calls,
                bytes: comparison.bytes,
                method: &row.method.name,
                direction,
                seconds: figure.seconds.best_seconds(),
                megabytes_per_second: figure.megabytes_per_second,
                of_raw: figure.of_raw,
                io_share: figure.io_share,
                us_per_call: figure.microseconds_per_call,
                us_open_close: figure.microseconds_open_close,
                doubt: figure.doubt,
                unavailable: figure.unavailable,
            })?;
        }
    }
    writer.flush()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::comparison;
    use super::*;

    #[test]
    fn lines_have_all_fields() {
        let mut text = Vec::new();
        csv(&[comparison()], &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 1 + 4 * 2);
        for line in &lines {
            assert_eq!(line.split(',').count(), 16, "{line}");
        }
        assert!(lines[3].contains("list,write,0.02,500.0,0.5,"), "{text}");
        assert!(lines[3].contains(",0.25,18000.0,2000.0,spread,"), "{text}");
    }

    #[test]
    fn every_repeat_is_in_the_json() {
        let comparison = comparison();
        let value = serde_json::to_value(documents(&[comparison.clone(), comparison])).unwrap();
        assert_eq!(value.as_array().unwrap().len(), 2);
        let methods = &value[1]["methods"];
        assert_eq!(
            methods[1]["write"],
            json!({
                "seconds": [0.02, 0.04], "megabytes_per_second": 500.0, "of_raw": 0.5,
                "io_share": 0.25, "microseconds_per_call": 18000.0,
                "microseconds_open_close": 2000.0, "doubt": "spread", "unavailable": null
            })
        );
        assert_eq!(methods[2]["write"]["unavailable"], "it only reads");
    }
}
