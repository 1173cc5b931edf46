//! The findings, as text and as JSON.

use std::io::{self, Write};

use serde::Serialize;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Good,
    /// Works with limitations.
    Note,
    /// Required but missing.
    Missing,
}

impl Level {
    fn mark(self) -> &'static str {
        match self {
            Level::Good => "  ",
            Level::Note => "! ",
            Level::Missing => "X ",
        }
    }
}

/// One item that was examined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    level: Level,
    subject: String,
    found: String,
    /// The consequence, or what to do.
    remarks: Vec<String>,
}

impl Finding {
    fn new(level: Level, subject: impl Into<String>, found: impl Into<String>) -> Finding {
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

    /// Adds the consequence, or what to do.
    pub(super) fn remark(mut self, remark: impl Into<String>) -> Finding {
        self.remarks.push(remark.into());
        self
    }
}

/// Findings of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Section {
    name: &'static str,
    findings: Vec<Finding>,
}

impl Section {
    pub(super) fn new(name: &'static str, findings: Vec<Finding>) -> Section {
        Section { name, findings }
    }
}

/// The whole report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Report {
    /// The number of required items that are missing.
    pub(super) missing: usize,
    sections: Vec<Section>,
}

impl Report {
    pub(super) fn new(sections: Vec<Section>) -> Report {
        let findings = sections.iter().flat_map(|section| &section.findings);
        Report {
            missing: findings.filter(|it| it.level == Level::Missing).count(),
            sections,
        }
    }

    /// Prints aligned lines.
    pub(super) fn text(&self, out: &mut impl Write) -> io::Result<()> {
        for section in &self.sections {
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
        writeln!(out, "!: works with limitations; X: required, but missing")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report::new(vec![Section::new(
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
        assert_eq!(report().missing, 1);
    }

    #[test]
    fn json_has_every_finding() {
        let value = serde_json::to_value(report()).unwrap();
        assert_eq!(value["missing"], 1);
        let memory = &value["sections"][0]["findings"][1];
        assert_eq!(memory["level"], "missing");
        assert_eq!(memory["remarks"], serde_json::json!(["buy some"]));
    }
}
