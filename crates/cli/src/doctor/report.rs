//! What was found, for people and for programs.

use std::io::{self, Write};

use crate::json::quoted;

/// How good something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// As it should be.
    Good,
    /// Works, but less well or not for all.
    Note,
    /// Needed and not there.
    Missing,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Good => "good",
            Level::Note => "note",
            Level::Missing => "missing",
        }
    }

    fn mark(self) -> &'static str {
        match self {
            Level::Good => "  ",
            Level::Note => "! ",
            Level::Missing => "X ",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    level: Level,
    subject: String,
    found: String,
    /// What follows from it, or what to do.
    remarks: Vec<String>,
}

impl Finding {
    pub(super) fn new(
        level: Level,
        subject: impl Into<String>,
        found: impl Into<String>,
    ) -> Finding {
        Finding {
            level,
            subject: subject.into(),
            found: found.into(),
            remarks: Vec::new(),
        }
    }

    pub(super) fn good(subject: impl Into<String>, found: impl Into<String>) -> Finding {
        Self::new(Level::Good, subject, found)
    }

    pub(super) fn note(subject: impl Into<String>, found: impl Into<String>) -> Finding {
        Self::new(Level::Note, subject, found)
    }

    pub(super) fn missing(subject: impl Into<String>, found: impl Into<String>) -> Finding {
        Self::new(Level::Missing, subject, found)
    }

    /// Adds what follows from it, or what to do.
    pub(super) fn remark(mut self, remark: impl Into<String>) -> Finding {
        self.remarks.push(remark.into());
        self
    }

    fn json(&self) -> String {
        let remarks: Vec<_> = self.remarks.iter().map(|it| quoted(it)).collect();
        format!(
            "{{\"level\": {}, \"subject\": {}, \"found\": {}, \"remarks\": [{}]}}",
            quoted(self.level.name()),
            quoted(&self.subject),
            quoted(&self.found),
            remarks.join(", ")
        )
    }
}

/// Things of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    name: &'static str,
    findings: Vec<Finding>,
}

impl Section {
    pub(super) fn new(name: &'static str, findings: Vec<Finding>) -> Section {
        Section { name, findings }
    }
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Report(pub(super) Vec<Section>);

impl Report {
    /// How many things are needed and not there.
    pub(super) fn missing(&self) -> usize {
        let findings = self.0.iter().flat_map(|section| &section.findings);
        findings.filter(|it| it.level == Level::Missing).count()
    }

    /// Aligned lines for people.
    pub(super) fn text(&self, out: &mut impl Write) -> io::Result<()> {
        for section in &self.0 {
            writeln!(out, "{}", section.name)?;
            let width = section.findings.iter().map(|it| it.subject.chars().count());
            let width = width.max().unwrap_or(0);
            for finding in &section.findings {
                let (mark, subject) = (finding.level.mark(), &finding.subject);
                writeln!(out, "{mark}{subject:<width$}  {}", finding.found)?;
                for remark in &finding.remarks {
                    writeln!(out, "  {:<width$}  {remark}", "")?;
                }
            }
            writeln!(out)?;
        }
        writeln!(
            out,
            "!: works, but less well or not for all; X: needed and not there"
        )
    }

    /// One JSON object.
    pub(super) fn json(&self, out: &mut impl Write) -> io::Result<()> {
        let sections = self.0.iter().map(|section| {
            let findings = section.findings.iter().map(Finding::json);
            let findings = findings.collect::<Vec<_>>().join(",\n    ");
            let name = quoted(section.name);
            format!("{{\"name\": {name}, \"findings\": [\n    {findings}]}}")
        });
        let sections = sections.collect::<Vec<_>>().join(",\n  ");
        let missing = self.missing();
        writeln!(
            out,
            "{{\"missing\": {missing}, \"sections\": [\n  {sections}]}}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report(vec![Section::new(
            "Machine",
            vec![
                Finding::good("processors", "2"),
                Finding::missing("memory", "none").remark("buy some"),
            ],
        )])
    }

    #[test]
    fn lines_are_aligned_and_marked() {
        let mut text = Vec::new();
        report().text(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.starts_with(
                "Machine\n  processors  2\nX memory      none\n              buy some\n"
            ),
            "{text}"
        );
        assert_eq!(report().missing(), 1);
    }

    #[test]
    fn json_has_every_finding() {
        let mut text = Vec::new();
        report().json(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.starts_with("{\"missing\": 1, \"sections\": ["),
            "{text}"
        );
        assert!(text.contains("\"remarks\": [\"buy some\"]"), "{text}");
    }
}
