//! SVG plots: speeds by method, and by value of a sweep. Self-contained files.

use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::Path;

use super::super::row::{Comparison, Side};
use crate::failure::Failure;

/// Colours of writes and reads, and of the lines of a sweep; told apart by most eyes.
const WRITE: &str = "#0072b2";
const READ: &str = "#e69f00";
const LINES: &[&str] = &[
    "#000000", "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#7f7f7f",
];

/// Sizes of plots, in pixels.
const LABEL_WIDTH: f64 = 190.0;
const BAR_WIDTH: f64 = 420.0;
const BAR_HEIGHT: f64 = 11.0;
const ROW_HEIGHT: f64 = 30.0;
const TOP: f64 = 56.0;
const MARGIN: f64 = 70.0;
const PANEL: (f64, f64) = (380.0, 280.0);

/// Draws all comparisons into files of a folder, and says which.
pub(crate) fn svg(
    comparisons: &[Comparison],
    folder: &Path,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let cannot = |action, path: &Path| {
        let path = path.to_owned();
        move |source| Failure::Storage {
            action,
            path,
            source,
        }
    };
    fs::create_dir_all(folder).map_err(cannot("create", folder))?;
    let mut pictures = Vec::new();
    for group in comparisons.chunk_by(|a, b| a.swept.is_some() && same_sweep(a, b)) {
        let name = match group[0].choices.as_str() {
            "" => group[0].workload.to_owned(),
            // The folder is the user's; what the user typed stays within it.
            choices => format!("{}-{}", group[0].workload, choices.replace('/', "_")),
        };
        match &group[0].swept {
            Some((choice, _)) => pictures.push((format!("{name}-{choice}.svg"), lines(group))),
            None => pictures.push((format!("{name}.svg"), bars(&group[0]))),
        }
    }
    for (name, picture) in pictures {
        let path = folder.join(name);
        fs::write(&path, picture).map_err(cannot("write", &path))?;
        writeln!(out, "drawn: {}", path.display()).map_err(Failure::Output)?;
    }
    Ok(())
}

fn same_sweep(first: &Comparison, second: &Comparison) -> bool {
    let choice = |it: &Comparison| it.swept.as_ref().map(|(choice, _)| choice.clone());
    let job = |it: &Comparison| (it.workload, it.choices.clone());
    job(first) == job(second) && choice(first) == choice(second)
}

/// Speed of a method, in MB/s.
fn speed(side: &Side, bytes: u64) -> Option<f64> {
    side.samples.megabytes_per_second(bytes)
}

/// The highest speed of some comparisons; at least 1, to divide by.
fn highest(comparisons: &[Comparison]) -> f64 {
    let speeds = comparisons.iter().flat_map(|it| {
        let sides = it.rows.iter().flat_map(|row| [&row.write, &row.read]);
        sides.filter_map(|side| speed(side, it.bytes))
    });
    speeds.fold(1.0, f64::max)
}

fn open(width: f64, height: f64, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{}",
        text(10.0, 22.0, "start", &format!("{title} (MB/s)"))
    )
}

fn text(x: f64, y: f64, anchor: &str, text: &str) -> String {
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>\n")
}

fn bar(x: f64, y: f64, width: f64, colour: &str) -> String {
    format!(
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BAR_HEIGHT}\" \
         fill=\"{colour}\"/>\n"
    )
}

/// A bar for writes and one for reads of each method.
fn bars(comparison: &Comparison) -> String {
    let rows = comparison.rows.len() as f64;
    let width = LABEL_WIDTH + BAR_WIDTH + MARGIN;
    let title = format!("{}: {}", comparison.workload, comparison.sizes);
    let mut picture = open(width, TOP + rows * ROW_HEIGHT + 10.0, &title);
    picture += &bar(LABEL_WIDTH, TOP - 22.0, BAR_HEIGHT, WRITE);
    picture += &text(LABEL_WIDTH + 16.0, TOP - 12.0, "start", "write");
    picture += &bar(LABEL_WIDTH + 60.0, TOP - 22.0, BAR_HEIGHT, READ);
    picture += &text(LABEL_WIDTH + 76.0, TOP - 12.0, "start", "read");
    let scale = BAR_WIDTH / highest(std::slice::from_ref(comparison));
    let mut y = TOP;
    for row in &comparison.rows {
        picture += &text(
            LABEL_WIDTH - 8.0,
            y + BAR_HEIGHT + 3.0,
            "end",
            &row.method.name,
        );
        for (line, (side, colour)) in [(&row.write, WRITE), (&row.read, READ)].iter().enumerate() {
            let top = y + line as f64 * (BAR_HEIGHT + 1.0);
            let Some(speed) = speed(side, comparison.bytes) else {
                continue;
            };
            picture += &bar(LABEL_WIDTH, top, speed * scale, colour);
            let end = LABEL_WIDTH + speed * scale + 4.0;
            picture += &text(end, top + BAR_HEIGHT - 1.0, "start", &format!("{speed:.0}"));
        }
        y += ROW_HEIGHT;
    }
    picture + "</svg>\n"
}

/// A panel for writes and one for reads, a line a method, a place a value.
fn lines(group: &[Comparison]) -> String {
    let rows = group[0].rows.len() as f64;
    let width = MARGIN + 2.0 * (PANEL.0 + MARGIN) + LABEL_WIDTH;
    let height = (TOP + PANEL.1 + 50.0).max(TOP + rows * 18.0 + 20.0);
    let choice = group[0].swept.as_ref().map_or("", |(choice, _)| choice);
    let title = format!("{} by {choice}", group[0].workload);
    let mut picture = open(width, height, &title);
    let top_speed = highest(group);
    for (number, name) in ["write", "read"].iter().enumerate() {
        let left = MARGIN + number as f64 * (PANEL.0 + MARGIN);
        picture += &panel(group, left, top_speed, name);
    }
    let legend = MARGIN + 2.0 * (PANEL.0 + MARGIN) - 40.0;
    for (number, row) in group[0].rows.iter().enumerate() {
        let y = TOP + number as f64 * 18.0;
        let colour = LINES[number % LINES.len()];
        picture += &bar(legend, y, BAR_HEIGHT, colour);
        picture += &text(
            legend + 18.0,
            y + BAR_HEIGHT - 1.0,
            "start",
            &row.method.name,
        );
    }
    picture + "</svg>\n"
}

fn panel(group: &[Comparison], left: f64, top_speed: f64, direction: &str) -> String {
    let (width, height) = PANEL;
    let bottom = TOP + height;
    let mut picture = format!(
        "<path d=\"M{left} {TOP}V{bottom}H{}\" fill=\"none\" stroke=\"black\"/>\n",
        left + width
    );
    picture += &text(left + width / 2.0, TOP - 8.0, "middle", direction);
    picture += &text(left - 6.0, TOP + 4.0, "end", &format!("{top_speed:.0}"));
    picture += &text(left - 6.0, bottom, "end", "0");
    let place = |number: usize| {
        let steps = (group.len() - 1).max(1) as f64;
        left + 20.0 + (width - 40.0) * number as f64 / steps
    };
    for (number, comparison) in group.iter().enumerate() {
        let value = comparison.swept.as_ref().map_or("", |(_, value)| value);
        picture += &text(place(number), bottom + 18.0, "middle", value);
    }
    for (number, row) in group[0].rows.iter().enumerate() {
        let mut points = String::new();
        for (at, comparison) in group.iter().enumerate() {
            let same = comparison
                .rows
                .iter()
                .find(|it| it.method.name == row.method.name);
            let side = same.map(|row| match direction {
                "write" => &row.write,
                _ => &row.read,
            });
            if let Some(speed) = side.and_then(|side| speed(side, comparison.bytes)) {
                let y = bottom - height * speed / top_speed;
                let _ = write!(points, "{:.1},{y:.1} ", place(at));
            }
        }
        let colour = LINES[number % LINES.len()];
        // Lines past the number of colours are dashed.
        let dashes = if number < LINES.len() {
            ""
        } else {
            " stroke-dasharray=\"5 3\""
        };
        let _ = writeln!(
            picture,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>",
            points.trim_end()
        );
    }
    picture
}

#[cfg(test)]
mod tests {
    use super::super::testing::comparison;
    use super::*;

    #[test]
    fn sweeps_are_one_picture_and_others_one_each() {
        let folder = tempfile::tempdir().unwrap();
        let swept = comparison();
        let mut second = swept.clone();
        second.swept = Some(("record".to_owned(), "1M".to_owned()));
        let single = Comparison {
            swept: None,
            ..swept.clone()
        };
        let mut said = Vec::new();
        svg(&[swept, second, single], folder.path(), &mut said).unwrap();
        let said = String::from_utf8(said).unwrap();
        assert_eq!(said.lines().count(), 2, "{said}");
        for (name, parts) in [("strided-record.svg", "polyline"), ("strided.svg", "<rect")] {
            let picture = fs::read_to_string(folder.path().join(name)).unwrap();
            assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
            assert!(picture.matches(parts).count() >= 5, "{name}: {picture}");
        }
    }

    #[test]
    fn markup_in_names_stays_text() {
        assert!(text(0.0, 0.0, "start", "a<b&c").contains("a&lt;b&amp;c"));
    }
}
