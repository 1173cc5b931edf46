//! The figures as a table, as comma-separated values and as JSON.

use std::io::{self, Write};

use super::Section;
use crate::json::quoted;

/// How to print figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people
    Table,
    /// Comma-separated values
    Csv,
    /// JSON
    Json,
}

/// Microseconds per call: the best and the median of the rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Times {
    best: f64,
    median: f64,
}

impl Times {
    fn of(seconds: &[f64]) -> Option<Times> {
        let mut sorted = seconds.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Times {
            best: sorted.first()? * 1e6,
            median: sorted[sorted.len() / 2] * 1e6,
        })
    }
}

/// Prints all sections.
pub(super) fn write(
    format: Format,
    sections: &[Section<'_>],
    out: &mut impl Write,
) -> io::Result<()> {
    match format {
        Format::Table => sections.iter().try_for_each(|it| table(it, out)),
        Format::Csv => csv(sections, out),
        Format::Json => json(sections, out),
    }
}

fn table(section: &Section<'_>, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "\n{}: microseconds per call, best (median) of the rounds",
        section.title()
    )?;
    writeln!(
        out,
        "{:<22}{:>8}{:>10}{:>22}{:>22}{:>8}",
        "call", "bytes", "in flight", "the MPI's own", "pario", "ratio"
    )?;
    for (row, [own, pario]) in section.rows.iter().zip(&section.seconds) {
        let (own, pario) = (Times::of(own), Times::of(pario));
        let text = |times: Option<Times>| match times {
            Some(times) => format!("{:.2} ({:.2})", times.best, times.median),
            None => "-".to_owned(),
        };
        let ratio = own.zip(pario).map(|(own, pario)| own.best / pario.best);
        writeln!(
            out,
            "{:<22}{:>8}{:>10}{:>22}{:>22}{:>8}",
            row.call.name,
            row.bytes,
            row.in_flight,
            text(own),
            text(pario),
            ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
        )?;
    }
    Ok(())
}

/// One line per row and side, with the section it is of.
fn figures<'a>(sections: &'a [Section<'a>]) -> impl Iterator<Item = (Vec<String>, Times)> + 'a {
    sections.iter().flat_map(|section| {
        let rows = section.rows.iter().zip(&section.seconds);
        rows.flat_map(move |(row, sides)| {
            let sides = ["own", "pario"].into_iter().zip(sides);
            sides.filter_map(move |(side, seconds)| {
                let labels = vec![
                    section.mpi.name.clone(),
                    section.ranks.to_string(),
                    row.call.name.to_owned(),
                    row.bytes.to_string(),
                    row.in_flight.to_string(),
                    side.to_owned(),
                ];
                Some((labels, Times::of(seconds)?))
            })
        })
    })
}

fn csv(sections: &[Section<'_>], out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "mpi,ranks,call,bytes,in_flight,mpi_io,us_best,us_median"
    )?;
    for (labels, times) in figures(sections) {
        let labels: Vec<_> = labels.iter().map(|label| label.replace(',', ";")).collect();
        let labels = labels.join(",");
        writeln!(out, "{labels},{:.3},{:.3}", times.best, times.median)?;
    }
    Ok(())
}

fn json(sections: &[Section<'_>], out: &mut impl Write) -> io::Result<()> {
    let figures: Vec<_> = figures(sections)
        .map(|(labels, times)| {
            format!(
                "  {{\"mpi\": {}, \"ranks\": {}, \"call\": {}, \"bytes\": {}, \"in_flight\": {}, \
                 \"mpi_io\": {}, \"us_best\": {:.3}, \"us_median\": {:.3}}}",
                quoted(&labels[0]),
                labels[1],
                quoted(&labels[2]),
                labels[3],
                labels[4],
                quoted(&labels[5]),
                times.best,
                times.median
            )
        })
        .collect();
    writeln!(out, "[\n{}\n]", figures.join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_and_median_are_of_the_rounds() {
        let times = Times::of(&[3e-6, 1e-6, 2e-6]).unwrap();
        assert!((times.best - 1.0).abs() < 1e-9 && (times.median - 2.0).abs() < 1e-9);
        assert_eq!(Times::of(&[]), None);
    }
}
