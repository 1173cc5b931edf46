//! Comma-separated values: a line a method and direction.

use std::io::{self, Write};

use super::super::row::{Comparison, Side};

const HEADER: &str = "workload,choices,swept,ranks,calls,bytes,method,direction,seconds,MB/s,\
                      of_raw,io_share,us_a_call,us_open_close,doubt,missing";

/// Prints all comparisons.
pub(crate) fn csv(comparisons: &[Comparison], out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{HEADER}")?;
    for comparison in comparisons {
        let Some(raw) = comparison.rows.first() else {
            continue;
        };
        for row in &comparison.rows {
            for (direction, side, raw) in [
                ("write", &row.write, &raw.write),
                ("read", &row.read, &raw.read),
            ] {
                line(comparison, &row.method.name, direction, (side, raw), out)?;
            }
        }
    }
    Ok(())
}

fn line(
    comparison: &Comparison,
    method: &str,
    direction: &str,
    (side, raw): (&Side, &Side),
    out: &mut impl Write,
) -> io::Result<()> {
    let number = |number: Option<f64>| number.map_or_else(String::new, |it| format!("{it:.6}"));
    let swept = comparison.swept.as_ref();
    let fields = [
        comparison.workload.to_owned(),
        comparison.choices.clone(),
        swept.map_or_else(String::new, |(choice, value)| format!("{choice}={value}")),
        comparison.ranks.to_string(),
        comparison.calls.to_string(),
        comparison.bytes.to_string(),
        method.to_owned(),
        direction.to_owned(),
        number(side.samples.best().map(|it| it.as_secs_f64())),
        number(side.samples.megabytes_per_second(comparison.bytes)),
        number(side.fraction(raw)),
        number(side.transfer_share),
        number(side.microseconds_a_call(comparison.calls)),
        number(side.microseconds_open_close()),
        side.samples.doubt().map_or("", |it| it.name()).to_owned(),
        side.missing.clone().unwrap_or_default(),
    ];
    let fields = fields.map(|field| quoted(&field));
    writeln!(out, "{}", fields.join(","))
}

/// A field, in quotes where it needs them.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
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
            assert_eq!(line.split(',').count(), HEADER.split(',').count(), "{line}");
        }
        assert!(
            lines[3].contains("list,write,0.020000,500.000000,0.500000"),
            "{text}"
        );
        assert!(
            lines[3].contains(",0.250000,18000.000000,2000.000000,spread,"),
            "{text}"
        );
    }

    #[test]
    fn commas_and_quotes_are_quoted() {
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
        assert_eq!(quoted("ab"), "ab");
    }
}
