//! The comparison on a terminal.

use std::io::{self, Write};

use super::Comparison;
use super::figures::{Contender, Row, Section, Side, Summary, is_behind};

/// Widths of the columns.
const PATTERN: usize = 11;
const DIRECTION: usize = 6;
const SPEED: usize = 7;
const OF_RAW: usize = 7;
const RATIO: usize = 9;

/// Marks a ratio below one.
const BEHIND: char = '<';

/// One section's rows and what follows from them.
pub(crate) fn section(
    comparison: &Comparison,
    section: &Section,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(out, "\n{}", section.title())?;
    let group = 2 * (SPEED + OF_RAW) + RATIO + 2;
    let mut names = format!("{:1$}", "", PATTERN + DIRECTION);
    let mut heads = format!("{:<PATTERN$}{:<DIRECTION$}", "pattern", "");
    for mpi in &comparison.mpis {
        names.push_str(&format!("  {:^group$}", shortened(&mpi.name, group)));
        heads.push_str(&format!(
            "  {:>SPEED$}{:>OF_RAW$}{:>SPEED$}{:>OF_RAW$}{:>RATIO$}  ",
            "own", "raw", "pario", "raw", "ratio"
        ));
    }
    writeln!(out, "{}", names.trim_end())?;
    writeln!(out, "{heads}  best peer")?;
    for row in &section.rows {
        writeln!(out, "{}", line(row, comparison.mpis.len()).trim_end())?;
    }
    for (index, mpi) in comparison.mpis.iter().enumerate() {
        if let Some(summary) = section.over_own(index) {
            writeln!(out, "pario over {}'s own: {}", mpi.name, words(&summary))?;
        }
    }
    if let Some(summary) = section.over_best_peer() {
        writeln!(out, "pario over the best peer: {}", words(&summary))?;
    }
    Ok(())
}

/// What the columns mean, and what went wrong.
pub(crate) fn end(comparison: &Comparison, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "\nMB/s from open to close, the best of {}; raw: over plain POSIX calls of as many \
         bytes in the same run;\nratio: pario over the MPI's own; best peer: the best of pario over \
         the best of the MPIs' own; {BEHIND} marks where pario is behind",
        comparison.rounds_in_words()
    )?;
    if let Some(doubt) = comparison.doubt() {
        writeln!(out, "{doubt}")?;
    }
    for note in &comparison.notes {
        writeln!(out, "{note}")?;
    }
    for fault in &comparison.faults {
        writeln!(out, "FAILED {fault}")?;
    }
    Ok(())
}

fn line(row: &Row, mpis: usize) -> String {
    let mut line = format!(
        "{:<PATTERN$}{:<DIRECTION$}",
        row.pattern,
        row.direction.name()
    );
    for mpi in 0..mpis {
        line.push_str("  ");
        for side in Side::ALL {
            let contender = Contender { mpi, side };
            let speed = row.speed(contender).map(|it| format!("{it:.0}"));
            let of_raw = row.best(contender).map(|it| format!("{:.2}", it.of_raw));
            line.push_str(&format!(
                "{:>SPEED$}{:>OF_RAW$}",
                or_dash(speed),
                or_dash(of_raw)
            ));
        }
        line.push_str(&marked(row.over_own(mpi)));
    }
    line.push_str(&marked(row.over_best_peer()));
    line
}

fn marked(ratio: Option<f64>) -> String {
    let mark = match ratio {
        Some(ratio) if is_behind(ratio) => BEHIND,
        _ => ' ',
    };
    let ratio = ratio.map(|ratio| format!("{ratio:.2}x"));
    format!("{:>RATIO$} {mark}", or_dash(ratio))
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

fn words(summary: &Summary) -> String {
    let (worst, row) = &summary.worst;
    format!(
        "geometric mean {:.2}x, worst {worst:.2}x ({row}), behind in {} of {}",
        summary.mean, summary.behind, summary.rows
    )
}

fn shortened(name: &str, width: usize) -> String {
    name.chars().take(width).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::comparison;
    use super::*;

    #[test]
    fn rows_where_pario_is_behind_are_marked() {
        let comparison = comparison();
        let mut text = Vec::new();
        section(&comparison, &comparison.sections[0], &mut text).unwrap();
        end(&comparison, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let row = text
            .lines()
            .find(|line| line.starts_with("tile       write"))
            .unwrap();
        assert!(row.contains("2.00x  ") && row.contains("0.50x <"), "{text}");
        let empty = text
            .lines()
            .find(|line| line.starts_with("small      read"))
            .unwrap();
        assert!(empty.contains(" -") && !empty.contains('<'), "{text}");
        assert!(
            text.contains("pario over MPI B's own: geometric mean 0.50x"),
            "{text}"
        );
        assert!(text.contains("behind in 3 of 3"), "{text}");
        assert!(text.contains("FAILED MPI A: wrong"), "{text}");
    }
}
