//! JSON: a list of comparisons, each with its methods and every repeat.

use std::io::{self, Write};

use super::super::row::{Comparison, Side};
use crate::json::quoted;

/// Prints all comparisons.
pub(crate) fn json(comparisons: &[Comparison], out: &mut impl Write) -> io::Result<()> {
    let comparisons: Vec<_> = comparisons.iter().map(comparison).collect();
    writeln!(out, "[{}\n]", comparisons.join(","))
}

fn comparison(comparison: &Comparison) -> String {
    let raw = comparison.rows.first();
    let rows: Vec<_> = comparison
        .rows
        .iter()
        .map(|row| {
            let write = side(&row.write, raw.map(|raw| &raw.write), comparison);
            let read = side(&row.read, raw.map(|raw| &raw.read), comparison);
            let method = quoted(&row.method.name);
            format!("\n    {{\"method\": {method}, \"write\": {write}, \"read\": {read}}}")
        })
        .collect();
    let swept = comparison.swept.as_ref().map_or_else(
        || "null".to_owned(),
        |(choice, value)| quoted(&format!("{choice}={value}")),
    );
    format!(
        "\n  {{\"workload\": {}, \"choices\": {}, \"swept\": {swept}, \"sizes\": {}, \
         \"ranks\": {}, \"calls\": {}, \"bytes\": {}, \"methods\": [{}\n  ]}}",
        quoted(comparison.workload),
        quoted(&comparison.choices),
        quoted(&comparison.sizes),
        comparison.ranks,
        comparison.calls,
        comparison.bytes,
        rows.join(",")
    )
}

fn side(side: &Side, raw: Option<&Side>, comparison: &Comparison) -> String {
    let number = |it: Option<f64>| it.map_or_else(|| "null".to_owned(), |it| format!("{it:.6}"));
    let seconds: Vec<_> = side
        .samples
        .all()
        .iter()
        .map(|it| format!("{:.9}", it.as_secs_f64()))
        .collect();
    let text = |text: Option<&str>| text.map_or_else(|| "null".to_owned(), quoted);
    format!(
        "{{\"seconds\": [{}], \"megabytes_per_second\": {}, \"of_raw\": {}, \"io_share\": {}, \
         \"microseconds_a_call\": {}, \"microseconds_open_close\": {}, \"doubt\": {}, \"missing\": {}}}",
        seconds.join(", "),
        number(side.samples.megabytes_per_second(comparison.bytes)),
        number(raw.and_then(|raw| side.fraction(raw))),
        number(side.transfer_share),
        number(side.microseconds_a_call(comparison.calls)),
        number(side.microseconds_open_close()),
        text(side.samples.doubt().map(|it| it.name())),
        text(side.missing.as_deref()),
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::comparison;
    use super::*;

    #[test]
    fn brackets_match_and_every_repeat_is_there() {
        let mut text = Vec::new();
        json(&[comparison(), comparison()], &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        for (open, close) in [('[', ']'), ('{', '}')] {
            let count = |wanted| text.chars().filter(|it| *it == wanted).count();
            assert_eq!(count(open), count(close), "{text}");
        }
        assert!(
            text.contains("\"seconds\": [0.020000000, 0.040000000]"),
            "{text}"
        );
        assert!(
            text.contains(
                "\"microseconds_a_call\": 18000.000000, \"microseconds_open_close\": 2000.000000"
            ),
            "{text}"
        );
        assert!(text.contains("\"missing\": \"it only reads\""), "{text}");
    }
}
