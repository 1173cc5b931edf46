//! The table of a comparison.

use std::io::{self, Write};

use super::super::ranking;
use super::super::row::{Comparison, Row, Side};
use crate::measure::{DIRECTIONS, Direction, Doubt};
use crate::output::{Align, Table, or_dash};

/// From this many calls on, the time per call is shown.
const CALLS_MANY: u64 = 100;

/// Prints the results of all methods on one job.
pub(crate) fn table(comparison: &Comparison, out: &mut impl Write) -> io::Result<()> {
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
    for row in comparison.rows.iter().filter(|row| !row.is_unavailable()) {
        let mut cells = vec![row.method.name.clone()];
        for direction in DIRECTIONS {
            let side = row.side(direction);
            let of_raw = comparison.of_raw(row, direction);
            let share = side.transfer_share;
            cells.push(side.samples.speed_cell(comparison.bytes));
            cells.push(or_dash(of_raw.map(|it| format!("{it:.2}"))));
            cells.push(or_dash(share.map(|it| format!("{:.0}%", it * 100.0))));
        }
        cells.push(verified(row));
        table.push(cells);
    }
    table.print(out)?;
    unavailable(comparison, out)?;
    choice(comparison, out)?;
    latency(comparison, out)
}

fn heading(comparison: &Comparison) -> String {
    let megabytes = comparison.bytes as f64 / 1e6;
    let target = &comparison.target;
    let choices = match target.choices.as_str() {
        "" => String::new(),
        choices => format!(":{choices}"),
    };
    let swept = match &target.swept {
        None => String::new(),
        Some((choice, value)) => format!(" with {choice}={value}"),
    };
    let (workload, sizes) = (target.workload.name, &comparison.sizes);
    format!("{workload}{choices}{swept}: {sizes}; {megabytes:.1} MB")
}

fn verified(row: &Row) -> String {
    let reason = |direction| row.side(direction).unavailable.as_deref();
    match (reason(Direction::Write), reason(Direction::Read)) {
        (Some(reason), None) => format!("every byte; does not write: {reason}"),
        (None, Some(reason)) => format!("every byte; does not read: {reason}"),
        _ => "every byte".to_owned(),
    }
}

/// Which methods cannot be used, by reason.
fn unavailable(comparison: &Comparison, out: &mut impl Write) -> io::Result<()> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in comparison.rows.iter().filter(|row| row.is_unavailable()) {
        let reason = &row.side(Direction::Read).unavailable;
        let reason = reason.as_deref().unwrap_or_default();
        let name = row.method.name.as_str();
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    for (reason, names) in reasons {
        writeln!(out, "not applicable: {}: {reason}", names.join(", "))?;
    }
    Ok(())
}

/// How pario's automatic choice compares with the best that it could have chosen, and whether it is
/// clear which is the best.
fn choice(comparison: &Comparison, out: &mut impl Write) -> io::Result<()> {
    let candidates = || comparison.rows.iter().filter(|it| it.method.is_choosable());
    if candidates().count() < 2 {
        return Ok(());
    }
    let mut rows = comparison.rows.iter();
    if let Some(chosen) = rows.find(|it| it.method.name == "automatic") {
        let best = |direction| {
            let samples = |row| &Row::side(row, direction).samples;
            let best = candidates()
                .filter(|row| samples(row).best().is_some())
                .min_by_key(|row| samples(row).best())?;
            let fraction = samples(chosen).speed_over(samples(best))?;
            let doubts = [chosen, best].map(|row| samples(row).doubt());
            let mark = doubts.into_iter().flatten().next().map(Doubt::mark);
            let mark = mark.map_or_else(String::new, String::from);
            let name = &best.method.name;
            Some(format!("{fraction:.2}{mark} of the best ({name})"))
        };
        let [write, read] = DIRECTIONS.map(|direction| or_dash(best(direction)));
        writeln!(out, "automatic: write {write}, read {read}")?;
    }
    let unclear = DIRECTIONS
        .into_iter()
        .filter(|it| !ranking::is_settled(&comparison.rows, *it));
    let unclear: Vec<_> = unclear.map(Direction::name).collect();
    match unclear.as_slice() {
        [] => Ok(()),
        directions => writeln!(
            out,
            "not settled: {}: a method near the best reached its best time only once",
            directions.join(", ")
        ),
    }
}

/// The time per call, for jobs with many calls.
fn latency(comparison: &Comparison, out: &mut impl Write) -> io::Result<()> {
    let calls = comparison.calls;
    if calls < CALLS_MANY {
        return Ok(());
    }
    writeln!(
        out,
        "microseconds per call, including set_view where the workload calls it, and for opening and closing the file:"
    )?;
    let mut table = Table::of_numbers(["method", "write", "open+close", "read", "open+close"]);
    // Raw POSIX makes different calls.
    let rows = comparison.rows.iter().skip(1);
    for row in rows.filter(|row| !row.is_unavailable()) {
        let cell = |time: Option<f64>| or_dash(time.map(|it| format!("{it:.1}")));
        let times = |side: &Side| {
            [
                cell(side.microseconds_per_call(calls)),
                cell(side.microseconds_open_close()),
            ]
        };
        let times = DIRECTIONS.map(|direction| times(row.side(direction)));
        let name = std::iter::once(row.method.name.clone());
        table.push(name.chain(times.into_iter().flatten()));
    }
    table.print(out)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::testing::comparison;
    use super::*;
    use crate::bench::method::Method;

    fn printed(comparison: &Comparison) -> String {
        let mut text = Vec::new();
        table(comparison, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn speeds_are_next_to_raw() {
        let text = printed(&comparison());
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
        assert_eq!(lines[4], "not applicable: resonant: no servers", "{text}");
    }

    #[test]
    fn methods_that_are_not_settled_are_named_without_an_automatic_choice() {
        let row = |name: &str, millis: [u64; 2]| {
            let mut row = Row::new(Method::parse(name).unwrap());
            for millis in millis {
                let samples = &mut row.side_mut(Direction::Write).samples;
                samples.push(Duration::from_millis(millis));
            }
            row
        };
        let mut comparison = comparison();
        comparison.rows = vec![row("two-phase", [10, 12]), row("individual", [11, 11])];
        let text = printed(&comparison);
        assert!(text.contains("\nnot settled: write: "), "{text}");
        assert!(!text.contains("automatic"), "{text}");
        comparison.rows[0] = row("two-phase", [10, 10]);
        let text = printed(&comparison);
        assert!(!text.contains("not settled"), "{text}");
    }

    #[test]
    fn many_calls_have_their_time_and_that_of_open_and_close() {
        let mut comparison = comparison();
        comparison.calls = 1000;
        let text = printed(&comparison);
        let (_, latency) = text.split_once("closing the file:\n").unwrap();
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
