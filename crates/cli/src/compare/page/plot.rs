//! Plots of a section: writes on the left, reads on the right, a row a pattern, a line an MPI.

use std::fmt::Write as _;

use super::axis::{Axis, Scale, label};
use super::{colour, escaped};
use crate::compare::Comparison;
use crate::compare::figures::{Contender, Row, Section, Side, is_behind};
use crate::compare::protocol::Direction;

/// Sizes in pixels.
const WIDTH: f64 = 1040.0;
const NAMES: f64 = 88.0;
const PANEL: f64 = 430.0;
const GAP: f64 = 46.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 22.0;
const LINE: f64 = 13.0;
const PADDING: f64 = 9.0;
const DOT: f64 = 3.8;
const BAR: f64 = 8.0;

/// What a plot shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// pario over the MPI's own.
    Ratio,
    /// Speed over that of raw POSIX calls.
    OfRaw,
    /// MB/s.
    Speed,
}

impl Measure {
    /// A contender's value; the ratio is pario's.
    fn value(self, row: &Row, contender: Contender) -> Option<f64> {
        match self {
            Measure::Ratio => row.over_own(contender.mpi),
            Measure::OfRaw => row.best(contender).map(|best| best.of_raw),
            Measure::Speed => row.speed(contender),
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Measure::Ratio => "×",
            Measure::OfRaw => "",
            Measure::Speed => " MB/s",
        }
    }

    fn axis(self, values: &[f64], start: f64) -> Axis {
        match self {
            Measure::Ratio => Axis::new(Scale::Logarithmic, values, start, PANEL),
            Measure::OfRaw => Axis::new(Scale::Linear, values, start, PANEL),
            Measure::Speed => Axis::of_speeds(values, start, PANEL),
        }
    }
}

/// Draws a section.
pub(super) fn plot(comparison: &Comparison, section: &Section, measure: Measure) -> String {
    let mpis = comparison.mpis.len();
    let values = values(section, measure, mpis);
    let row_height = mpis as f64 * LINE + PADDING;
    let bottom = TOP + comparison.patterns.len() as f64 * row_height;
    let height = bottom + BOTTOM;
    let mut svg = format!(
        "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"{}\">\n",
        escaped(&section.title())
    );
    for (index, pattern) in comparison.patterns.iter().enumerate() {
        let top = TOP + index as f64 * row_height;
        if index % 2 == 0 {
            let _ = writeln!(
                svg,
                "<rect class=\"band\" x=\"0\" y=\"{top:.1}\" width=\"{WIDTH}\" height=\"{row_height:.1}\"/>"
            );
        }
        let middle = top + row_height / 2.0 + 4.0;
        let _ = writeln!(
            svg,
            "<text class=\"name\" x=\"4\" y=\"{middle:.1}\">{}</text>",
            pattern.name
        );
    }
    for (index, direction) in Direction::ALL.into_iter().enumerate() {
        let start = NAMES + index as f64 * (PANEL + GAP);
        let panel = Panel {
            comparison,
            measure,
            axis: measure.axis(&values, start),
            middle: start + PANEL / 2.0,
            bottom,
        };
        panel.grid(direction, &mut svg);
        let rows = section.rows.iter().filter(|row| row.direction == direction);
        for (index, row) in rows.enumerate() {
            let top = TOP + index as f64 * row_height + PADDING / 2.0;
            panel.row(row, top, &mut svg);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// Every value of a section, so that both directions have the same axis.
fn values(section: &Section, measure: Measure, mpis: usize) -> Vec<f64> {
    let contenders = || (0..mpis).flat_map(|mpi| Side::ALL.map(|side| Contender { mpi, side }));
    let rows = section.rows.iter();
    rows.flat_map(|row| contenders().filter_map(|it| measure.value(row, it)))
        .collect()
}

/// One direction.
struct Panel<'a> {
    comparison: &'a Comparison,
    measure: Measure,
    axis: Axis,
    middle: f64,
    bottom: f64,
}

impl Panel<'_> {
    fn grid(&self, direction: Direction, svg: &mut String) {
        let _ = writeln!(
            svg,
            "<text class=\"name\" x=\"{:.1}\" y=\"14\" text-anchor=\"middle\">{}</text>",
            self.middle,
            direction.name()
        );
        for tick in self.axis.ticks() {
            let x = self.axis.place(tick);
            let class = match self.measure {
                Measure::Ratio | Measure::OfRaw if tick == 1.0 => "unit",
                _ => "grid",
            };
            let _ = writeln!(
                svg,
                "<line class=\"{class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{:.1}\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}{}</text>",
                self.bottom,
                self.bottom + 15.0,
                label(tick),
                if self.measure == Measure::Ratio {
                    "×"
                } else {
                    ""
                }
            );
        }
    }

    fn row(&self, row: &Row, top: f64, svg: &mut String) {
        for (mpi, it) in self.comparison.mpis.iter().enumerate() {
            let y = top + (mpi as f64 + 0.5) * LINE;
            let of = |side| self.measure.value(row, Contender { mpi, side });
            let name = format!("{} {}, {}", row.pattern, row.direction.name(), it.name);
            let _ = writeln!(svg, "<g class=\"{}\">", colour(mpi));
            match (self.measure, of(Side::Own), of(Side::Pario)) {
                (Measure::Ratio, _, Some(ratio)) => self.bar(ratio, y, &name, svg),
                (_, own, pario) => self.dots(own, pario, y, &name, svg),
            }
            svg.push_str("</g>\n");
        }
    }

    /// A bar from one to a ratio.
    fn bar(&self, ratio: f64, y: f64, name: &str, svg: &mut String) {
        let (one, x) = (self.axis.place(1.0), self.axis.place(ratio));
        let worse = if is_behind(ratio) { " worse" } else { "" };
        let (left, width) = (one.min(x), (x - one).abs().max(1.0));
        // The number stands where the bar is not.
        let (at, anchor) = match is_behind(ratio) {
            true => (one + 4.0, "start"),
            false => (x + 4.0, "start"),
        };
        let _ = writeln!(
            svg,
            "<rect class=\"bar{worse}\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{width:.1}\" \
             height=\"{BAR}\" rx=\"1.5\"><title>{}: {ratio:.2}×</title></rect>\
             <text class=\"value{worse}\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">\
             {}</text>",
            y - BAR / 2.0,
            escaped(name),
            y + 3.3,
            short(ratio)
        );
    }

    /// The MPI's own as a ring, pario as a dot, and a line between.
    fn dots(&self, own: Option<f64>, pario: Option<f64>, y: f64, name: &str, svg: &mut String) {
        if let (Some(own), Some(pario)) = (own, pario) {
            let (from, to) = (self.axis.place(own), self.axis.place(pario));
            let _ = writeln!(
                svg,
                "<line class=\"between\" x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
            );
        }
        for (value, class, whose) in [(own, "own", "its own"), (pario, "pario", "pario")] {
            let Some(value) = value else { continue };
            let _ = writeln!(
                svg,
                "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"{DOT}\">\
                 <title>{}, {whose}: {}{}</title></circle>",
                self.axis.place(value),
                escaped(name),
                short(value),
                self.measure.unit()
            );
        }
    }
}

/// A number in about three digits.
fn short(value: f64) -> String {
    match value {
        large if large >= 100.0 => format!("{large:.0}"),
        middle if middle >= 10.0 => format!("{middle:.1}"),
        small => format!("{small:.2}"),
    }
}
