//! SVG plots of two panels, one for writes and one for reads: bars or dots by row, or lines.

use std::fmt::Write as _;

pub(crate) use super::axis::Scale;
use super::axis::{Axis, label};
use crate::measure::DIRECTIONS;

/// Colours and fonts of plots, light or dark like the reader's system.
pub(crate) const STYLE: &str = include_str!("plot.css");

/// Number of colours in the style.
const COLOURS: usize = 6;

/// Sizes in pixels.
const WIDTH: f64 = 1040.0;
const PANEL: f64 = 410.0;
const PANEL_HEIGHT: f64 = 280.0;
const GAP: f64 = 46.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 22.0;
const LINE: f64 = 13.0;
const PADDING: f64 = 9.0;
const DOT: f64 = 3.8;
const BAR: f64 = 8.0;
const LEGEND_LINE: f64 = 18.0;

/// Marks by row, with several lines per row.
pub(crate) struct RowPlot {
    /// The accessible description.
    pub(crate) title: String,
    pub(crate) scale: Scale,
    /// The unit after every number.
    pub(crate) unit: &'static str,
    pub(crate) rows: Vec<Row>,
}

/// Named lines of marks.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) lines: Vec<RowLine>,
}

/// A line of a row: one mark per direction.
pub(crate) struct RowLine {
    /// The tooltip.
    pub(crate) title: String,
    pub(crate) marks: [Mark; 2],
}

/// The marks of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mark {
    /// A bar from a base to a value, red if the value is less.
    Bar { base: f64, value: Option<f64> },
    /// A ring, a dot, and a line between them.
    Pair { ring: Option<f64>, dot: Option<f64> },
}

impl Mark {
    fn values(self) -> impl Iterator<Item = f64> {
        let values = match self {
            Mark::Bar { value, .. } => [value, None],
            Mark::Pair { ring, dot } => [ring, dot],
        };
        values.into_iter().flatten()
    }
}

impl RowPlot {
    /// Draws it for a page that includes the style.
    pub(crate) fn svg(&self) -> String {
        let lines = self.rows.iter().map(|row| row.lines.len()).max();
        let row_height = lines.unwrap_or(0) as f64 * LINE + PADDING;
        let bottom = TOP + self.rows.len() as f64 * row_height;
        let mut svg = format!(
            "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" aria-label=\"{}\">\n",
            bottom + BOTTOM,
            escaped(&self.title)
        );
        for (index, row) in self.rows.iter().enumerate() {
            let top = TOP + index as f64 * row_height;
            if index % 2 == 0 {
                let _ = writeln!(
                    svg,
                    "<rect class=\"band\" x=\"0\" y=\"{top:.1}\" width=\"{WIDTH}\" \
                     height=\"{row_height:.1}\"/>"
                );
            }
            svg += &text(
                "name",
                4.0,
                top + row_height / 2.0 + 4.0,
                "start",
                &row.name,
            );
        }
        let marks = self.rows.iter().flat_map(|row| &row.lines);
        // Both directions have the same axis.
        let values: Vec<f64> = marks
            .flat_map(|line| line.marks.into_iter().flat_map(Mark::values))
            .collect();
        for (index, direction) in DIRECTIONS.into_iter().enumerate() {
            let start = panel_start(index);
            let axis = Axis::new(self.scale, &values, start, PANEL);
            svg += &text(
                "name",
                start + PANEL / 2.0,
                14.0,
                "middle",
                direction.name(),
            );
            self.grid(&axis, bottom, &mut svg);
            for (number, row) in self.rows.iter().enumerate() {
                let top = TOP + number as f64 * row_height + PADDING / 2.0;
                self.row(row, index, &axis, top, &mut svg);
            }
        }
        svg + "</svg>\n"
    }

    fn grid(&self, axis: &Axis, bottom: f64, svg: &mut String) {
        for tick in axis.ticks() {
            let x = axis.place(tick);
            let class = match self.scale {
                Scale::Ratio | Scale::Linear if tick == 1.0 => "unit",
                _ => "grid",
            };
            *svg += &line(class, (x, TOP), (x, bottom));
            *svg += &text("", x, bottom + 15.0, "middle", &label(tick));
        }
    }

    fn row(&self, row: &Row, direction: usize, axis: &Axis, top: f64, svg: &mut String) {
        for (number, line) in row.lines.iter().enumerate() {
            let y = top + (number as f64 + 0.5) * LINE;
            let _ = writeln!(svg, "<g class=\"{}\">", colour(number));
            match line.marks[direction] {
                Mark::Bar { value: None, .. } => {}
                Mark::Bar {
                    base,
                    value: Some(value),
                } => *svg += &self.bar(axis, (base, value), y, &line.title),
                Mark::Pair { ring, dot } => *svg += &self.pair(axis, ring, dot, y, &line.title),
            }
            svg.push_str("</g>\n");
        }
    }

    fn bar(&self, axis: &Axis, (base, value): (f64, f64), y: f64, title: &str) -> String {
        let (from, to) = (axis.place(base), axis.place(value));
        let worse = if value < base { " worse" } else { "" };
        let (left, width) = (from.min(to), (to - from).abs().max(1.0));
        let bar = format!(
            "<rect class=\"bar{worse}\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{width:.1}\" \
             height=\"{BAR}\" rx=\"1.5\"><title>{}: {}{}</title></rect>\n",
            y - BAR / 2.0,
            escaped(title),
            short(value),
            self.unit
        );
        // The number is next to the bar.
        let at = from.max(to) + 4.0;
        bar + &text(
            &format!("value{worse}"),
            at,
            y + 3.3,
            "start",
            &short(value),
        )
    }

    fn pair(
        &self,
        axis: &Axis,
        ring: Option<f64>,
        dot: Option<f64>,
        y: f64,
        title: &str,
    ) -> String {
        let mut svg = String::new();
        if let (Some(ring), Some(dot)) = (ring, dot) {
            svg += &line("between", (axis.place(ring), y), (axis.place(dot), y));
        }
        for (value, class) in [(ring, "own"), (dot, "pario")] {
            let Some(value) = value else { continue };
            let _ = writeln!(
                svg,
                "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"{DOT}\">\
                 <title>{}, {class}: {}{}</title></circle>",
                axis.place(value),
                escaped(title),
                short(value),
                self.unit
            );
        }
        svg
    }
}

/// One line per series over some values.
pub(crate) struct LinePlot {
    pub(crate) title: String,
    /// Names of the places along the horizontal axis.
    pub(crate) places: Vec<String>,
    pub(crate) series: Vec<Series>,
}

/// A line in each panel.
pub(crate) struct Series {
    pub(crate) name: String,
    /// By direction and place.
    pub(crate) values: [Vec<Option<f64>>; 2],
}

impl LinePlot {
    /// Draws it for a page that includes the style.
    pub(crate) fn svg(&self) -> String {
        let bottom = TOP + PANEL_HEIGHT;
        let height = bottom + 2.0 * BOTTOM + self.series.len() as f64 * LEGEND_LINE;
        let mut svg = format!(
            "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" \
             aria-label=\"{}\">\n",
            escaped(&self.title)
        );
        let values = self.series.iter().flat_map(|it| it.values.iter().flatten());
        let values: Vec<f64> = values.copied().flatten().collect();
        let axis = Axis::new(Scale::Linear, &values, bottom, -PANEL_HEIGHT);
        for (index, direction) in DIRECTIONS.into_iter().enumerate() {
            let start = panel_start(index);
            svg += &text(
                "name",
                start + PANEL / 2.0,
                14.0,
                "middle",
                direction.name(),
            );
            for tick in axis.ticks() {
                let y = axis.place(tick);
                svg += &line("grid", (start, y), (start + PANEL, y));
                svg += &text("", start - 6.0, y + 4.0, "end", &label(tick));
            }
            self.panel(index, &axis, bottom, &mut svg);
        }
        for (number, series) in self.series.iter().enumerate() {
            let y = bottom + 2.0 * BOTTOM + number as f64 * LEGEND_LINE;
            let from = panel_start(0);
            svg += &polyline(
                number,
                &format!("{from:.1},{y:.1} {:.1},{y:.1}", from + 30.0),
            );
            svg += &text("name", from + 38.0, y + 4.0, "start", &series.name);
        }
        svg + "</svg>\n"
    }

    fn panel(&self, direction: usize, axis: &Axis, bottom: f64, svg: &mut String) {
        const INSET: f64 = 20.0;
        let steps = self.places.len().saturating_sub(1).max(1) as f64;
        let start = panel_start(direction) + INSET;
        let x = |place: usize| start + (PANEL - 2.0 * INSET) * place as f64 / steps;
        for (place, name) in self.places.iter().enumerate() {
            *svg += &text("", x(place), bottom + 15.0, "middle", name);
        }
        for (number, series) in self.series.iter().enumerate() {
            let values = series.values[direction].iter().enumerate();
            let points = values.filter_map(|(place, value)| {
                let y = axis.place((*value)?);
                Some(format!("{:.1},{y:.1}", x(place)))
            });
            *svg += &polyline(number, &points.collect::<Vec<_>>().join(" "));
        }
    }
}

/// A plot as a standalone file.
pub(crate) fn standalone(svg: &str) -> String {
    let open = "<svg xmlns=\"http://www.w3.org/2000/svg\" ";
    let svg = svg.replacen("<svg ", open, 1);
    svg.replacen(">\n", &format!(">\n<style>\n{STYLE}</style>\n"), 1)
}

/// The class that gives a line its colour.
pub(crate) fn colour(number: usize) -> String {
    format!("m{}", number % COLOURS)
}

/// Text without markup.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn panel_start(direction: usize) -> f64 {
    const NAMES: f64 = 128.0;
    NAMES + direction as f64 * (PANEL + GAP)
}

fn text(class: &str, x: f64, y: f64, anchor: &str, text: &str) -> String {
    format!(
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>\n",
        escaped(text)
    )
}

fn line(class: &str, from: (f64, f64), to: (f64, f64)) -> String {
    format!(
        "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>\n",
        from.0, from.1, to.0, to.1
    )
}

/// The line of a series; dashed once the colours are used up.
fn polyline(number: usize, points: &str) -> String {
    let dashed = if number < COLOURS { "" } else { " dashed" };
    format!(
        "<polyline class=\"series{dashed} {}\" points=\"{points}\"/>\n",
        colour(number)
    )
}

/// A number with about three digits.
fn short(value: f64) -> String {
    match value {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_names_stays_text() {
        assert!(text("", 0.0, 0.0, "start", "a<b&c").contains("a&lt;b&amp;c"));
    }

    #[test]
    fn a_file_of_its_own_has_the_style() {
        let plot = LinePlot {
            title: "a <b>".to_owned(),
            places: vec!["64".to_owned()],
            series: Vec::new(),
        };
        let svg = standalone(&plot.svg());
        assert!(
            svg.starts_with("<svg xmlns=") && svg.contains("<style>"),
            "{svg}"
        );
        assert!(
            svg.contains("aria-label=\"a &lt;b&gt;\">\n<style>"),
            "{svg}"
        );
    }
}
