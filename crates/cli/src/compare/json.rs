//! The comparison for programs.

use std::io::{self, Write};

use super::Comparison;
use super::figures::{Contender, Row, Section, Side};
use crate::json::quoted;

/// One JSON object.
pub(crate) fn write(comparison: &Comparison, out: &mut impl Write) -> io::Result<()> {
    let texts = |texts: &[String]| joined(texts.iter().map(|text| quoted(text)));
    let facts = comparison.machine.facts.iter();
    let facts = facts.map(|(name, value)| format!("{}: {}", quoted(name), quoted(value)));
    let mpis = comparison.mpis.iter().map(|mpi| {
        format!(
            "{{\"name\": {}, \"launcher\": {}, \"library\": {}, \"version\": {}}}",
            quoted(&mpi.name),
            quoted(&mpi.launcher.to_string_lossy()),
            quoted(&mpi.described.library),
            quoted(&mpi.described.version)
        )
    });
    let sections = comparison.sections.iter().map(|it| section(comparison, it));
    writeln!(
        out,
        "{{\"date\": {}, \"command\": {}, \"pario\": {}, \"scale\": {}, \"rounds\": {},\n\
         \"machine\": {{{}}},\n\"mpis\": [{}],\n\"notes\": [{}],\n\"faults\": [{}],\n\
         \"sections\": [\n{}]}}",
        quoted(&comparison.machine.date),
        quoted(&comparison.command),
        quoted(env!("CARGO_PKG_VERSION")),
        comparison.scale,
        comparison.rounds,
        joined(facts),
        joined(mpis),
        texts(&comparison.notes),
        texts(&comparison.faults),
        sections.collect::<Vec<_>>().join(",\n")
    )
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

fn section(comparison: &Comparison, section: &Section) -> String {
    let rows = section.rows.iter().map(|it| row(comparison, it));
    format!(
        "{{\"folder\": {}, \"file_system\": {}, \"ranks\": {}, \"mode\": {}, \"rows\": [\n{}]}}",
        quoted(&section.folder),
        quoted(&section.file_system),
        section.ranks,
        quoted(section.mode.name()),
        rows.collect::<Vec<_>>().join(",\n")
    )
}

fn row(comparison: &Comparison, row: &Row) -> String {
    let contenders =
        (0..comparison.mpis.len()).flat_map(|mpi| Side::ALL.map(|side| Contender { mpi, side }));
    let contenders = contenders.filter_map(|it| {
        let best = row.best(it)?;
        let side = match it.side {
            Side::Own => "own",
            Side::Pario => "pario",
        };
        Some(format!(
            "{{\"mpi\": {}, \"mpi_io\": {}, \"seconds\": {}, \"of_raw\": {}, \"rounds\": {:?}}}",
            quoted(&comparison.mpis[it.mpi].name),
            quoted(side),
            best.seconds,
            best.of_raw,
            best.rounds
        ))
    });
    format!(
        "  {{\"pattern\": {}, \"direction\": {}, \"bytes\": {}, \"pieces\": {}, \"figures\": [{}]}}",
        quoted(row.pattern),
        quoted(row.direction.name()),
        row.bytes,
        row.pieces,
        joined(contenders)
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::comparison;

    #[test]
    fn every_figure_is_there() {
        let mut text = Vec::new();
        super::write(&comparison(), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.matches("\"seconds\"").count(), 12, "{text}");
        assert!(
            text.contains(
                "\"mpi_io\": \"pario\", \"seconds\": 1, \"of_raw\": 1, \"rounds\": [2.0, 1.0]}"
            ),
            "{text}"
        );
        let braces = |open, close| text.matches(open).count() == text.matches(close).count();
        assert!(braces('{', '}') && braces('[', ']'), "{text}");
    }
}
