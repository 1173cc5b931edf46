//! The table of a comparison, and advice about all of them.

use std::collections::BTreeSet;
use std::io::{self, Write};

use super::super::row::{Comparison, Row, Side};
use super::super::timing::Doubt;
use super::table::{Align, Table};

/// From this many calls on, what a call takes is told.
const CALLS_WORTH_TELLING: u64 = 100;

/// Prints what all methods did on one job.
pub(crate) fn table(comparison: &Comparison, out: &mut impl Write) -> io::Result<()> {
    let Some(raw) = comparison.rows.first() else {
        return Ok(());
    };
    writeln!(out, "\n{}", heading(comparison))?;
    let mut table = Table::new([
        ("method", Align::Left),
        ("write MB/s", Align::Right),
        ("of raw", Align::Right),
        ("I/O", Align::Right),
        ("read MB/s", Align::Right),
        ("of raw", Align::Right),
        ("I/O", Align::Right),
        ("verified", Align::Left),
    ]);
    for row in comparison.rows.iter().filter(|row| !row.is_missing()) {
        let [write, write_of_raw, write_share] = cells(&row.write, &raw.write, comparison.bytes);
        let [read, read_of_raw, read_share] = cells(&row.read, &raw.read, comparison.bytes);
        table.push([
            row.method.name.clone(),
            write,
            write_of_raw,
            write_share,
            read,
            read_of_raw,
            read_share,
            verified(&row.write, &row.read),
        ]);
    }
    table.print(out)?;
    missing(comparison, out)?;
    choice(comparison, out)?;
    latency(comparison, out)
}

/// Which methods cannot be used, by reason.
fn missing(comparison: &Comparison, out: &mut impl Write) -> io::Result<()> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in comparison.rows.iter().filter(|row| row.is_missing()) {
        let reason = row.read.missing.as_deref().unwrap_or_default();
        let name = row.method.name.as_str();
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    for (reason, names) in reasons {
        writeln!(out, "not for this: {}: {reason}", names.join(", "))?;
    }
    Ok(())
}

/// How the method that pario chooses by itself compares with the best that it could have chosen.
fn choice(comparison: &Comparison, out: &mut impl Write) -> io::Result<()> {
    let Some(chosen) = comparison
        .rows
        .iter()
        .find(|it| it.method.name == "automatic")
    else {
        return Ok(());
    };
    let candidates = || comparison.rows.iter().filter(|it| it.method.is_choosable());
    if candidates().count() < 2 {
        return Ok(());
    }
    let best = |side: fn(&Row) -> &Side| {
        let seconds = |row: &Row| side(row).samples.best();
        let best = candidates()
            .filter(|row| seconds(row).is_some())
            .min_by_key(|row| seconds(row));
        let best = best?;
        let fraction = side(chosen).fraction(side(best))?;
        let doubts = [chosen, best].map(|row| side(row).samples.doubt());
        let mark = doubts.into_iter().flatten().next().map(Doubt::mark);
        let mark = mark.map_or_else(String::new, String::from);
        Some(format!(
            "{fraction:.2}{mark} of the best ({})",
            best.method.name
        ))
    };
    let dash = || "-".to_owned();
    let write = best(|row| &row.write).unwrap_or_else(dash);
    let read = best(|row| &row.read).unwrap_or_else(dash);
    writeln!(out, "automatic: write {write}, read {read}")
}

fn heading(comparison: &Comparison) -> String {
    let megabytes = comparison.bytes as f64 / 1e6;
    let choices = match comparison.choices.as_str() {
        "" => String::new(),
        choices => format!(":{choices}"),
    };
    let swept = match &comparison.swept {
        None => String::new(),
        Some((choice, value)) => format!(" with {choice}={value}"),
    };
    let (workload, sizes) = (comparison.workload, &comparison.sizes);
    format!("{workload}{choices}{swept}: {sizes}; {megabytes:.1} MB")
}

/// Speed, fraction of raw, share of I/O.
fn cells(side: &Side, raw: &Side, bytes: u64) -> [String; 3] {
    let dash = || "-".to_owned();
    let speed = side.samples.megabytes_per_second(bytes);
    // A mark if it is doubtful; a blank otherwise, so that the digits align.
    let mark = side.samples.doubt().map_or(' ', Doubt::mark);
    let share = side.transfer_share;
    [
        speed.map_or_else(dash, |speed| format!("{speed:.0}{mark}")),
        side.fraction(raw)
            .map_or_else(dash, |it| format!("{it:.2}")),
        share.map_or_else(dash, |share| format!("{:.0}%", share * 100.0)),
    ]
}

fn verified(write: &Side, read: &Side) -> String {
    match (&write.missing, &read.missing) {
        (None, None) => "every byte".to_owned(),
        (Some(reason), None) => format!("every byte; does not write: {reason}"),
        (None, Some(reason)) => format!("every byte; does not read: {reason}"),
        (Some(_), Some(_)) => "-".to_owned(),
    }
}

/// What a call takes, where there are so many that this is what matters.
fn latency(comparison: &Comparison, out: &mut impl Write) -> io::Result<()> {
    let calls = comparison.calls;
    if calls < CALLS_WORTH_TELLING {
        return Ok(());
    }
    writeln!(
        out,
        "a call with its set_view takes, in microseconds; and opening and closing the file:"
    )?;
    let mut table = Table::new([
        ("method", Align::Left),
        ("write", Align::Right),
        ("open+close", Align::Right),
        ("read", Align::Right),
        ("open+close", Align::Right),
    ]);
    // The yardstick's calls are other ones.
    let rows = comparison.rows.iter().skip(1);
    for row in rows.filter(|row| !row.is_missing()) {
        let cell = |took: Option<f64>| took.map_or_else(|| "-".to_owned(), |it| format!("{it:.1}"));
        table.push([
            row.method.name.clone(),
            cell(row.write.microseconds_a_call(calls)),
            cell(row.write.microseconds_open_close()),
            cell(row.read.microseconds_a_call(calls)),
            cell(row.read.microseconds_open_close()),
        ]);
    }
    table.print(out)
}

/// What to make of doubtful numbers.
pub(crate) fn advice(comparisons: &[Comparison], out: &mut impl Write) -> io::Result<()> {
    let rows = comparisons.iter().flat_map(|it| &it.rows);
    let sides = rows.flat_map(|row| [&row.write, &row.read]);
    let doubts: BTreeSet<_> = sides.filter_map(|side| side.samples.doubt()).collect();
    if !doubts.is_empty() {
        writeln!(out)?;
    }
    for doubt in doubts {
        writeln!(out, "{}", doubt.advice())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::comparison;
    use super::*;

    #[test]
    fn speeds_stand_next_to_raw() {
        let comparison = comparison();
        let mut text = Vec::new();
        table(&comparison, &mut text).unwrap();
        advice(&[comparison], &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<_> = text.lines().skip(2).collect();
        let words = |line: usize| lines[line].split_whitespace().collect::<Vec<_>>();
        assert_eq!(words(1)[2..6], ["1000", "1.00", "-", "1000"], "{text}");
        assert_eq!(
            words(2)[1..6],
            ["500~", "0.50", "25%", "250", "0.25"],
            "{text}"
        );
        assert_eq!(words(3)[1..4], ["-", "-", "-"], "{text}");
        assert!(
            lines[3].ends_with("does not write: it only reads"),
            "{text}"
        );
        assert_eq!(lines[4], "not for this: resonant: no servers", "{text}");
        assert!(lines.last().unwrap().starts_with("~ "), "{text}");
    }

    #[test]
    fn many_calls_have_their_time_and_that_of_open_and_close() {
        let mut comparison = comparison();
        comparison.calls = 1000;
        let mut text = Vec::new();
        table(&comparison, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let (_, latency) = text.split_once("opening and closing the file:\n").unwrap();
        let rows: Vec<Vec<_>> = latency
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(
            rows,
            [
                vec!["method", "write", "open+close", "read", "open+close"],
                vec!["list", "18.0", "2000.0", "36.0", "4000.0"],
                vec!["private-sieve", "-", "-", "18.0", "2000.0"],
            ],
            "{text}"
        );
    }
}
