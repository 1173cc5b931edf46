//! SVG files: speeds by method, and by value of a sweep.

use std::io::Write;
use std::path::Path;

use super::super::options::Target;
use super::super::row::{Comparison, Row};
use crate::failure::Failure;
use crate::measure::{DIRECTIONS, Direction};
use crate::output::plot::{self, LinePlot, Mark, RowLine, RowPlot, Scale, Series, standalone};
use crate::output::save;

/// The plot file of a job; all values of a sweep share one.
pub(crate) fn plot_name(target: &Target) -> String {
    let choices = match target.choices.as_str() {
        "" => String::new(),
        // User input must not escape the directory.
        choices => format!("-{}", choices.replace('/', "_")),
    };
    let swept = target.swept.as_ref();
    let swept = swept.map_or_else(String::new, |(choice, _)| format!("-{choice}"));
    format!("{}{choices}{swept}.svg", target.workload.name)
}

/// Plots all comparisons to files in a directory, and prints their names.
pub(crate) fn plots(
    comparisons: &[Comparison],
    directory: &Path,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let is_same = |one: &Comparison, other: &Comparison| {
        one.target.swept.is_some() && plot_name(&one.target) == plot_name(&other.target)
    };
    for group in comparisons.chunk_by(is_same) {
        let path = directory.join(plot_name(&group[0].target));
        let svg = match group[0].target.swept {
            Some(_) => lines(group).svg(),
            None => bars(&group[0]).svg(),
        };
        save(&path, standalone(&svg).as_bytes())?;
        writeln!(out, "plot: {}", path.display()).map_err(Failure::Output)?;
    }
    Ok(())
}

fn speed(comparison: &Comparison, row: &Row, direction: Direction) -> Option<f64> {
    let samples = &row.side(direction).samples;
    samples.megabytes_per_second(comparison.bytes)
}

/// One bar per method and direction.
fn bars(comparison: &Comparison) -> RowPlot {
    let rows = comparison.rows.iter().map(|row| plot::Row {
        name: row.method.name.clone(),
        lines: vec![RowLine {
            title: row.method.name.clone(),
            marks: DIRECTIONS.map(|direction| Mark::Bar {
                base: 0.0,
                value: speed(comparison, row, direction),
            }),
        }],
    });
    RowPlot {
        title: format!("{}: {}", comparison.target.workload.name, comparison.sizes),
        scale: Scale::Linear,
        unit: " MB/s",
        rows: rows.collect(),
    }
}

/// One line per method over the values of a sweep.
fn lines(group: &[Comparison]) -> LinePlot {
    let values = |row: &Row, direction| {
        let value = |comparison: &Comparison| {
            let mut rows = comparison.rows.iter();
            let same = rows.find(|it| it.method.name == row.method.name)?;
            speed(comparison, same, direction)
        };
        group.iter().map(value).collect()
    };
    let series = group[0].rows.iter().map(|row| Series {
        name: row.method.name.clone(),
        values: DIRECTIONS.map(|direction| values(row, direction)),
    });
    let swept = group.iter().filter_map(|it| it.target.swept.as_ref());
    LinePlot {
        title: format!("{} in MB/s", plot_name(&group[0].target)),
        places: swept.map(|(_, value)| value.clone()).collect(),
        series: series.collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::testing::comparison;
    use super::*;

    #[test]
    fn sweeps_are_one_plot_and_others_one_each() {
        let directory = tempfile::tempdir().unwrap();
        let swept = comparison();
        let mut second = swept.clone();
        second.target.swept = Some(("record".to_owned(), "1M".to_owned()));
        let mut single = swept.clone();
        single.target.swept = None;
        let mut output = Vec::new();
        plots(&[swept, second, single], directory.path(), &mut output).unwrap();
        let output = String::from_utf8(output).unwrap();
        assert_eq!(output.lines().count(), 2, "{output}");
        for (name, parts) in [("strided-record.svg", "polyline"), ("strided.svg", "<rect")] {
            let plot = fs::read_to_string(directory.path().join(name)).unwrap();
            assert!(plot.starts_with("<svg") && plot.ends_with("</svg>\n"));
            assert!(plot.matches(parts).count() >= 5, "{name}: {plot}");
        }
    }
}
