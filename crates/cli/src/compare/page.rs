//! The comparison as an HTML page: one file without external resources.

use std::path::Path;

use super::Comparison;
use super::figures::{Contender, Row, Section, Side, Summary, is_behind};
use crate::measure::DIRECTIONS;
use crate::output::plot::{self, Mark, RowLine, RowPlot, Scale, colour, escaped};

/// The page, with `{{names}}` as placeholders.
const TEMPLATE: &str = include_str!("template.html");
const STYLE: &str = include_str!("style.css");

/// Some MPIs report their configuration at length.
const VERSION_MAX: usize = 80;

/// The whole page.
pub(crate) fn page(comparison: &Comparison) -> String {
    let mut page = String::new();
    let mut parts = TEMPLATE.split("{{");
    page.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (name, rest) = part
            .split_once("}}")
            .expect("the template closes its braces");
        page.push_str(&filled_in(comparison, name));
        page.push_str(rest);
    }
    page
}

fn filled_in(comparison: &Comparison, name: &str) -> String {
    match name {
        "style" => format!("{}{STYLE}", plot::STYLE),
        "date" => escaped(&comparison.machine.date),
        "version" => escaped(comparison.machine.pario),
        "command" => escaped(&comparison.command),
        "repeats" => comparison.repeats_in_words(),
        "scale" => comparison.scale.to_string(),
        "faults" => faults(comparison),
        "cards" => comparison
            .sections
            .iter()
            .map(|it| card(comparison, it))
            .collect(),
        "machine" => machine(comparison),
        "patterns" => {
            let rows = comparison.patterns.iter();
            rows.map(|it| {
                format!(
                    "<tr><td>{}</td><td>{}</td></tr>\n",
                    it.name,
                    escaped(it.about)
                )
            })
            .collect()
        }
        "sections" => {
            let sections = comparison.sections.iter();
            sections.map(|it| section(comparison, it)).collect()
        }
        unknown => unreachable!("the template asks for {unknown}"),
    }
}

/// Failures, and MPIs that could not be used.
fn faults(comparison: &Comparison) -> String {
    let list = |class: &str, head: &str, lines: &[String]| {
        if lines.is_empty() {
            return String::new();
        }
        let lines = lines
            .iter()
            .map(|line| format!("<li>{}</li>\n", escaped(line)));
        let lines: String = lines.collect();
        format!("<div class=\"{class}\"><p>{head}</p><ul>\n{lines}</ul></div>\n")
    };
    let doubts: Vec<_> = comparison.doubts().into_iter().collect();
    list("faults", "Wrong bytes or failures:", &comparison.faults)
        + &list("notes", "Note:", &doubts)
        + &list("notes", "Not compared:", &comparison.notes)
}

/// Geometric means of a section.
fn card(comparison: &Comparison, section: &Section) -> String {
    let line = |peer: &str, summary: Summary| {
        let (worst, row) = &summary.worst;
        format!(
            "<p><strong>{:.2}×</strong>vs. {}; behind in {} of {}, worst {worst:.2}× ({row})</p>",
            summary.mean,
            escaped(peer),
            summary.behind,
            summary.rows
        )
    };
    let mpis = comparison.mpis.iter().enumerate();
    let mut lines: String = mpis
        .filter_map(|(index, mpi)| Some(line(&mpi.name, section.over_own(index)?)))
        .collect();
    // With a single MPI, its own MPI-IO is the best peer.
    if comparison.mpis.len() > 1
        && let Some(summary) = section.over_best_peer()
    {
        lines += &line("the best peer", summary);
    }
    let title = escaped(&section.title());
    format!("<div class=\"card\"><h3>{title}</h3><div>{lines}</div></div>\n")
}

/// The machine that the figures come from.
fn machine(comparison: &Comparison) -> String {
    let entry = |(name, value): (&str, &str)| {
        format!("<dt>{}</dt><dd>{}</dd>\n", escaped(name), escaped(value))
    };
    let facts = comparison.machine.facts.iter();
    let facts = facts.map(|(name, value)| entry((name, value)));
    let mut directories: Vec<_> = comparison
        .sections
        .iter()
        .map(|it| format!("{} ({})", it.directory, it.file_system))
        .collect();
    directories.dedup();
    let mpis = comparison.mpis.iter().map(|mpi| {
        let mut version: String = mpi.described.version.chars().take(VERSION_MAX).collect();
        if version.len() < mpi.described.version.len() {
            version.push('…');
        }
        // The page is published: it omits installation paths.
        let library = Path::new(&mpi.described.library).file_name();
        let library = library.unwrap_or_default().to_string_lossy();
        entry((&mpi.name, &format!("{version} ({library})")))
    });
    std::iter::once(entry(("Date", &comparison.machine.date)))
        .chain(facts)
        .chain([entry(("File systems", &directories.join(", ")))])
        .chain(mpis)
        .collect()
}

/// Plots and figures of a section.
fn section(comparison: &Comparison, section: &Section) -> String {
    const BAR: &str = "<rect class=\"bar\" x=\"2\" y=\"2\" width=\"26\" height=\"8\" rx=\"1.5\"/>";
    const PAIR: &str = "<line class=\"between\" x1=\"5\" x2=\"25\" y1=\"6\" y2=\"6\"/>\
                        <circle class=\"own\" cx=\"5\" cy=\"6\" r=\"3.8\"/>\
                        <circle class=\"pario\" cx=\"25\" cy=\"6\" r=\"3.8\"/>";
    const WHICH: &str = ": own (ring), pario (dot)";
    let mut text = format!("<section>\n<h2>{}</h2>\n", escaped(&section.title()));
    for (head, swatch, words, plot) in [
        (
            "pario vs. the MPI’s own",
            BAR,
            "",
            ratios(comparison, section),
        ),
        (
            "Speed relative to raw POSIX calls",
            PAIR,
            WHICH,
            speeds(comparison, section, Scale::Linear, "", |row, contender| {
                row.repeats(contender).of_raw
            }),
        ),
        (
            "Speed in MB/s",
            PAIR,
            WHICH,
            speeds(comparison, section, Scale::Logarithmic, " MB/s", Row::speed),
        ),
    ] {
        let key = key(comparison, swatch, words);
        text += &format!(
            "<h3>{head}</h3>\n{key}<div class=\"scroll\">{}</div>\n",
            plot.svg()
        );
    }
    text + &format!(
        "<details open><summary>All figures: MB/s, relative to raw, ratio</summary>\
         <div class=\"scroll\">{}</div></details>\n</section>\n",
        table(comparison, section)
    )
}

fn key(comparison: &Comparison, swatch: &str, words: &str) -> String {
    let mpis = comparison.mpis.iter().enumerate();
    let entries = mpis.map(|(index, mpi)| {
        format!(
            "<span class=\"{}\"><svg viewBox=\"0 0 30 12\">{swatch}</svg>{}{words}</span>\n",
            colour(index),
            escaped(&mpi.name)
        )
    });
    let entries: String = entries.collect();
    format!("<div class=\"key\">\n{entries}</div>\n")
}

/// A row per pattern, a line per MPI.
fn plot(
    comparison: &Comparison,
    section: &Section,
    (scale, unit): (Scale, &'static str),
    mark: impl Fn(&Row, usize) -> Mark,
) -> RowPlot {
    // Rows are writes and reads of each pattern.
    let rows = section.rows.chunks_exact(DIRECTIONS.len()).map(|rows| {
        let mpis = comparison.mpis.iter().enumerate();
        let lines = mpis.map(|(index, mpi)| RowLine {
            title: format!("{}, {}", rows[0].pattern, mpi.name),
            marks: [mark(&rows[0], index), mark(&rows[1], index)],
        });
        plot::Row {
            name: rows[0].pattern.to_owned(),
            lines: lines.collect(),
        }
    });
    RowPlot {
        title: section.title(),
        scale,
        unit,
        rows: rows.collect(),
    }
}

fn ratios(comparison: &Comparison, section: &Section) -> RowPlot {
    plot(comparison, section, (Scale::Ratio, "×"), |row, mpi| {
        Mark::Bar {
            base: 1.0,
            value: row.over_own(mpi),
        }
    })
}

fn speeds(
    comparison: &Comparison,
    section: &Section,
    scale: Scale,
    unit: &'static str,
    value: impl Fn(&Row, Contender) -> Option<f64>,
) -> RowPlot {
    plot(comparison, section, (scale, unit), |row, mpi| {
        let of = |side| value(row, Contender { mpi, side });
        Mark::Pair {
            ring: of(Side::Own),
            dot: of(Side::Pario),
        }
    })
}

fn table(comparison: &Comparison, section: &Section) -> String {
    const HEADS: &str = "<th class=\"start\">own</th><th>raw</th><th>pario</th><th>raw</th>\
                         <th>ratio</th>";
    let mpis = comparison.mpis.len();
    let names: String = comparison
        .mpis
        .iter()
        .map(|mpi| {
            let name = escaped(&mpi.name);
            format!("<th class=\"group start\" colspan=\"5\">{name}</th>")
        })
        .collect();
    let rows: String = section
        .rows
        .iter()
        .map(|row| table_row(row, mpis))
        .collect();
    let mean = |summary: Option<Summary>| summary.map(|it| it.mean);
    let means: String = (0..mpis)
        .map(|mpi| {
            let ratio = ratio(mean(section.over_own(mpi)), "");
            format!("<td class=\"start\" colspan=\"4\"></td>{ratio}")
        })
        .collect();
    format!(
        "<table>\n<thead>\n<tr><th></th><th></th>{names}<th class=\"start\"></th></tr>\n\
         <tr><th>pattern</th><th></th>{}<th class=\"start\">best peer</th></tr>\n</thead>\n\
         <tbody>\n{rows}</tbody>\n\
         <tfoot><tr><td colspan=\"2\">geometric mean</td>{means}{}</tr></tfoot>\n</table>",
        HEADS.repeat(mpis),
        ratio(mean(section.over_best_peer()), "start")
    )
}

fn table_row(row: &Row, mpis: usize) -> String {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let mut cells = format!("<td>{}</td><td>{}</td>", row.pattern, row.direction.name());
    for mpi in 0..mpis {
        for (side, class) in Side::ALL.into_iter().zip(["start", ""]) {
            let contender = Contender { mpi, side };
            let speed = row.speed(contender).map(|it| format!("{it:.0}"));
            let of_raw = row.repeats(contender).of_raw.map(|it| format!("{it:.2}"));
            cells += &format!(
                "<td class=\"{class}\">{}</td><td>{}</td>",
                or_dash(speed),
                or_dash(of_raw)
            );
        }
        cells += &ratio(row.over_own(mpi), "");
    }
    cells += &ratio(row.over_best_peer(), "start");
    format!("<tr>{cells}</tr>\n")
}

fn ratio(ratio: Option<f64>, class: &str) -> String {
    let cell = match ratio {
        None => "–".to_owned(),
        Some(ratio) if is_behind(ratio) => {
            format!("<span class=\"behind\">◂ {ratio:.2}×</span>")
        }
        Some(ratio) => format!("{ratio:.2}×"),
    };
    format!("<td class=\"{class}\">{cell}</td>")
}

#[cfg(test)]
mod tests {
    use super::super::tests::comparison;
    use super::*;

    #[test]
    fn the_page_is_complete_and_self_contained() {
        let page = page(&comparison());
        assert!(!page.contains("{{") && !page.contains("NaN"), "{page}");
        for outside in ["http://", "https://", "src=", "href=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
        for tag in [
            "section", "table", "svg", "tr", "td", "div", "details", "dl", "g",
        ] {
            let open = page.matches(&format!("<{tag} ")).count()
                + page.matches(&format!("<{tag}>")).count();
            assert_eq!(open, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }

    #[test]
    fn machine_texts_are_escaped_and_losses_are_shown() {
        let page = page(&comparison());
        assert!(page.contains("2 of &lt;some&gt;") && page.contains("MPI &lt;&amp;&gt; more"));
        assert!(page.contains("0.50×") && page.contains("class=\"behind\""));
        assert!(page.contains("MPI A: wrong"));
        assert!(page.contains("2000-02-29"));
        assert!(page.contains("(libmpi.so)") && !page.contains("/lib/libmpi.so"));
    }
}
