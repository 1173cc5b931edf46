//! The parts of the page that are text and tables.

use std::fmt::Write as _;
use std::path::Path;

use super::plot::{Measure, plot};
use super::{colour, escaped};
use crate::compare::Comparison;
use crate::compare::figures::{Contender, Row, Section, Side, Summary, is_behind};

/// What went wrong and what could not be used.
pub(super) fn faults(comparison: &Comparison) -> String {
    let list = |class: &str, head: &str, lines: &[String]| {
        if lines.is_empty() {
            return String::new();
        }
        let lines: String = lines
            .iter()
            .map(|line| format!("<li>{}</li>\n", escaped(line)))
            .collect();
        format!("<div class=\"{class}\"><p>{head}</p><ul>\n{lines}</ul></div>\n")
    };
    let doubt: Vec<_> = comparison.doubt().into_iter().collect();
    list("faults", "Wrong bytes or failures:", &comparison.faults)
        + &list("notes", "To mind:", &doubt)
        + &list("notes", "Not compared:", &comparison.notes)
}

/// Geometric means of every section.
pub(super) fn cards(comparison: &Comparison) -> String {
    let mut cards = String::new();
    for section in &comparison.sections {
        let title = escaped(&section.title());
        let _ = write!(cards, "<div class=\"card\"><h3>{title}</h3><div>");
        let own = comparison
            .mpis
            .iter()
            .enumerate()
            .filter_map(|(index, mpi)| {
                let summary = section.over_own(index)?;
                Some((format!("over {}’s own", mpi.name), summary))
            });
        let peer = section.over_best_peer();
        // With one MPI its own is the best peer.
        let peer = peer.filter(|_| comparison.mpis.len() > 1);
        let peer = peer.map(|it| ("over the best peer".to_owned(), it));
        for (over, summary) in own.chain(peer) {
            cards.push_str(&card_line(&over, &summary));
        }
        cards.push_str("</div></div>\n");
    }
    cards
}

fn card_line(over: &str, summary: &Summary) -> String {
    let (worst, row) = &summary.worst;
    format!(
        "<p><strong>{:.2}×</strong>{}; behind in {} of {}, worst {worst:.2}× ({row})</p>",
        summary.mean,
        escaped(over),
        summary.behind,
        summary.rows
    )
}

/// What the figures are from.
pub(super) fn machine(comparison: &Comparison) -> String {
    let mut list = String::new();
    let mut add = |name: &str, value: &str| {
        let _ = writeln!(
            list,
            "<dt>{}</dt><dd>{}</dd>",
            escaped(name),
            escaped(value)
        );
    };
    add("Date", &comparison.machine.date);
    for (name, value) in &comparison.machine.facts {
        add(name, value);
    }
    let mut folders: Vec<_> = comparison
        .sections
        .iter()
        .map(|it| format!("{} ({})", it.folder, it.file_system))
        .collect();
    folders.dedup();
    add("File systems", &folders.join(", "));
    for mpi in &comparison.mpis {
        let mut version: String = mpi.described.version.chars().take(VERSION_MAX).collect();
        if version.len() < mpi.described.version.len() {
            version.push('…');
        }
        // Where it is installed is nobody's business.
        let library = Path::new(&mpi.described.library).file_name();
        let library = library.unwrap_or_default().to_string_lossy();
        add(&mpi.name, &format!("{version} ({library})"));
    }
    list
}

/// Some MPIs tell how they were configured, at length.
const VERSION_MAX: usize = 80;

/// What each pattern is.
pub(super) fn patterns(comparison: &Comparison) -> String {
    let rows = comparison.patterns.iter();
    rows.map(|it| {
        format!(
            "<tr><td>{}</td><td>{}</td></tr>\n",
            escaped(it.name),
            escaped(it.about)
        )
    })
    .collect()
}

/// Plots and figures of a section.
pub(super) fn section(comparison: &Comparison, section: &Section) -> String {
    let plots = [
        (
            Measure::Ratio,
            "pario over the MPI’s own",
            bar_key(comparison),
        ),
        (
            Measure::OfRaw,
            "Speed over that of raw POSIX calls",
            dot_key(comparison),
        ),
        (Measure::Speed, "Speed in MB/s", dot_key(comparison)),
    ];
    let mut text = format!("<section>\n<h2>{}</h2>\n", escaped(&section.title()));
    for (measure, head, key) in plots {
        let _ = writeln!(
            text,
            "<h3>{head}</h3>\n{key}<div class=\"scroll\">{}</div>",
            plot(comparison, section, measure)
        );
    }
    let _ = writeln!(
        text,
        "<details open><summary>All figures: MB/s, of raw, ratio</summary>\
         <div class=\"scroll\">{}</div></details>\n</section>",
        table(comparison, section)
    );
    text
}

fn bar_key(comparison: &Comparison) -> String {
    let swatch = "<svg viewBox=\"0 0 30 12\"><rect class=\"bar\" x=\"2\" y=\"2\" width=\"26\" height=\"8\" rx=\"1.5\"/></svg>";
    key(comparison, |name| format!("{swatch}{name}"))
}

fn dot_key(comparison: &Comparison) -> String {
    let swatch = "<svg viewBox=\"0 0 30 12\"><line class=\"between\" x1=\"5\" x2=\"25\" y1=\"6\" y2=\"6\"/><circle class=\"own\" cx=\"5\" cy=\"6\" r=\"3.8\"/><circle class=\"pario\" cx=\"25\" cy=\"6\" r=\"3.8\"/></svg>";
    key(comparison, |name| {
        format!("{swatch}{name}: its own (ring), pario (dot)")
    })
}

fn key(comparison: &Comparison, entry: impl Fn(&str) -> String) -> String {
    let mpis = comparison.mpis.iter().enumerate();
    let entries: String = mpis
        .map(|(index, mpi)| {
            let (class, entry) = (colour(index), entry(&escaped(&mpi.name)));
            format!("<span class=\"{class}\">{entry}</span>\n")
        })
        .collect();
    format!("<div class=\"key\">\n{entries}</div>\n")
}

fn table(comparison: &Comparison, section: &Section) -> String {
    let mut table = String::from("<table>\n<thead>\n<tr><th></th><th></th>");
    for mpi in &comparison.mpis {
        let name = escaped(&mpi.name);
        let _ = write!(table, "<th class=\"group start\" colspan=\"5\">{name}</th>");
    }
    table.push_str("<th class=\"start\"></th></tr>\n<tr><th>pattern</th><th></th>");
    for _ in &comparison.mpis {
        table.push_str(
            "<th class=\"start\">own</th><th>of raw</th><th>pario</th><th>of raw</th><th>ratio</th>",
        );
    }
    table.push_str("<th class=\"start\">best peer</th></tr>\n</thead>\n<tbody>\n");
    for row in &section.rows {
        table.push_str(&table_row(row, comparison.mpis.len()));
    }
    table.push_str("</tbody>\n<tfoot><tr><td colspan=\"2\">geometric mean</td>");
    for mpi in 0..comparison.mpis.len() {
        let mean = section.over_own(mpi).map(|summary| summary.mean);
        let _ = write!(
            table,
            "<td class=\"start\" colspan=\"4\"></td>{}",
            ratio(mean, "")
        );
    }
    let mean = section.over_best_peer().map(|summary| summary.mean);
    let _ = write!(table, "{}</tr></tfoot>\n</table>", ratio(mean, " start"));
    table
}

fn table_row(row: &Row, mpis: usize) -> String {
    let mut cells = format!("<td>{}</td><td>{}</td>", row.pattern, row.direction.name());
    for mpi in 0..mpis {
        for side in Side::ALL {
            let contender = Contender { mpi, side };
            let class = match side {
                Side::Own => " class=\"start\"",
                Side::Pario => "",
            };
            let speed = row.speed(contender).map(|it| format!("{it:.0}"));
            let of_raw = row.best(contender).map(|it| format!("{:.2}", it.of_raw));
            let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
            let _ = write!(
                cells,
                "<td{class}>{}</td><td>{}</td>",
                or_dash(speed),
                or_dash(of_raw)
            );
        }
        cells.push_str(&ratio(row.over_own(mpi), ""));
    }
    cells.push_str(&ratio(row.over_best_peer(), " start"));
    format!("<tr>{cells}</tr>\n")
}

fn ratio(ratio: Option<f64>, class: &str) -> String {
    match ratio {
        None => format!("<td class=\"{}\">–</td>", class.trim()),
        Some(ratio) if is_behind(ratio) => {
            format!(
                "<td class=\"{}\"><span class=\"behind\">◂ {ratio:.2}×</span></td>",
                class.trim()
            )
        }
        Some(ratio) => format!("<td class=\"{}\">{ratio:.2}×</td>", class.trim()),
    }
}
