//! Resolves hints from several sources to those in force.

use crate::definition::{Definition, Moment, Scope};
use crate::info::Info;
use crate::source::{Source, Sources, Warning};
use crate::table::{CACHE_RANGE, Hints};
use crate::words::Buffering;
use std::borrow::Cow;
use std::fmt::{self, Write};

/// Resolved hints, and the values that were ignored.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The hints in force.
    pub hints: Hints,
    /// The values of known hints that were malformed.
    pub warnings: Vec<Warning>,
}

/// A hint in which two ranks differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The hint.
    pub hint: &'static str,
    /// This rank's value; `None` where it is not set.
    pub own: Option<String>,
    /// The other's value.
    pub other: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: &Option<String>| match value {
            Some(value) => format!("`{value}`"),
            None => "no value".to_owned(),
        };
        let (own, other) = (text(&self.own), text(&self.other));
        write!(
            f,
            "hint `{}` differs between ranks: {other} on rank 0, which is used, {own} on another",
            self.hint
        )
    }
}

impl Hints {
    /// The hints for a file that is opened with `info`.
    pub fn resolve(info: &Info, sources: &Sources) -> Resolved {
        let mut hints = Hints::default();
        let mut warnings = sources.warnings.clone();
        let mut seen = Vec::new();
        for (key, value) in &sources.file {
            // ROMIO takes the first of two lines with the same key.
            if !seen.contains(&key) {
                seen.push(key);
                hints.apply(key, value, Source::HintsFile, &mut warnings);
            }
        }
        for (key, value) in info.iter() {
            hints.apply(key, value, Source::Call, &mut warnings);
        }
        for (key, value) in &sources.environment {
            hints.apply(key, value, Source::Environment, &mut warnings);
        }
        hints.follow_no_indep_rw();
        Resolved { hints, warnings }
    }

    /// Applies those hints of `info` that may change after open.
    ///
    /// Values set by the environment stay: it takes precedence over a call.
    pub fn update(&mut self, info: &Info) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for (key, value) in info.iter() {
            let changeable = Hints::position(key).is_some_and(|index| {
                Hints::DEFINITIONS[index].moment == Moment::Always
                    && self.sources[index] != Source::Environment
            });
            if changeable {
                self.apply(key, value, Source::Call, &mut warnings);
            }
        }
        self.follow_no_indep_rw();
        warnings
    }

    /// As in ROMIO, a file without independent accesses uses collective
    /// buffering, even if another hint disables it.
    fn follow_no_indep_rw(&mut self) {
        if self.romio_no_indep_rw {
            self.adjust("required by romio_no_indep_rw", |hints| {
                hints.romio_cb_read = Buffering::Enable;
                hints.romio_cb_write = Buffering::Enable;
            });
        }
    }

    /// Sets one hint. Unknown ones are ignored, as the standard requires.
    fn apply(&mut self, key: &str, value: &str, source: Source, warnings: &mut Vec<Warning>) {
        let Some(index) = Hints::position(key) else {
            return;
        };
        let definition = &Hints::DEFINITIONS[index];
        if definition.moment == Moment::Reported {
            return;
        }
        match (definition.set)(self, value.trim()) {
            Some(()) => self.sources[index] = source,
            None => warnings.push(Warning {
                hint: key.to_owned(),
                value: value.to_owned(),
                allowed: definition.allowed(),
                source,
            }),
        }
    }

    /// Changes hints on pario's own initiative and records the reason for those
    /// that did change.
    pub fn adjust(
        &mut self,
        reason: impl Into<Cow<'static, str>>,
        change: impl FnOnce(&mut Hints),
    ) {
        let before = self.clone();
        change(self);
        let reason = reason.into();
        for (index, definition) in Hints::DEFINITIONS.iter().enumerate() {
            if definition.value(self) != definition.value(&before) {
                self.sources[index] = Source::Adjusted(reason.clone());
            }
        }
    }

    /// Sets what depends on the processor to measured values, unless hints set it.
    pub fn set_measured(&mut self, call_bytes: u64, cache_bytes: Option<u64>) {
        if self.pario_call_bytes.is_none() {
            self.pario_call_bytes = Some(call_bytes);
            self.mark_measured("pario_call_bytes");
        }
        if self.pario_cache_bytes.is_none() && cache_bytes.is_some() {
            // Other ranks accept no other values.
            self.pario_cache_bytes =
                cache_bytes.map(|bytes| bytes.clamp(*CACHE_RANGE.start(), *CACHE_RANGE.end()));
            self.mark_measured("pario_cache_bytes");
        }
    }

    fn mark_measured(&mut self, name: &str) {
        let index = Hints::position(name).expect("a hint of the table");
        self.sources[index] = Source::Measured;
    }

    /// Adopts rank 0's hints: all of [`Scope::File`], none of
    /// [`Scope::Rank`]. Returns those in which this rank differed.
    pub fn agree(&mut self, rank_zero: &Hints) -> Vec<Difference> {
        let differences = self.differences(rank_zero);
        for (index, definition) in Hints::DEFINITIONS.iter().enumerate() {
            if definition.scope == Scope::File {
                (definition.copy)(self, rank_zero);
                self.sources[index] = rank_zero.sources[index].clone();
            }
        }
        for difference in &differences {
            let index = Hints::position(difference.hint).expect("a difference names a known hint");
            self.sources[index] = Source::Adjusted("rank 0's value is used".into());
        }
        differences
    }

    /// The hints of [`Scope::File`] in which `self` and `other` differ.
    pub fn differences(&self, other: &Hints) -> Vec<Difference> {
        Hints::DEFINITIONS
            .iter()
            .filter(|definition| definition.scope == Scope::File)
            .map(|definition| Difference {
                hint: definition.name,
                own: definition.value(self),
                other: definition.value(other),
            })
            .filter(|difference| difference.own != difference.other)
            .collect()
    }

    /// The definition of the hint with that name or alias.
    pub fn definition(name: &str) -> Option<&'static Definition> {
        Hints::position(name).map(|index| &Hints::DEFINITIONS[index])
    }

    /// Where the value of the hint with that name or alias came from.
    pub fn source(&self, name: &str) -> Option<&Source> {
        Hints::position(name).map(|index| &self.sources[index])
    }

    /// The hints in force, as `get_info` returns them.
    ///
    /// Hints without a value are omitted, and so are values too long for an
    /// info, such as a long file name.
    pub fn to_info(&self) -> Info {
        let mut info = Info::new();
        for definition in Hints::DEFINITIONS {
            if let Some(value) = definition.value(self) {
                // The only possible error is a value that is too long.
                let _ = info.set(definition.name, &value);
            }
        }
        info
    }

    /// One line per hint: its value and where that came from.
    pub fn explain(&self) -> String {
        let mut text = String::new();
        for (definition, source) in Hints::DEFINITIONS.iter().zip(&self.sources) {
            let value = definition
                .value(self)
                .unwrap_or_else(|| "(not set)".to_owned());
            writeln!(text, "{} = {value}  [{source}]", definition.name)
                .expect("writing to a string does not fail");
        }
        text
    }

    pub(crate) fn position(name: &str) -> Option<usize> {
        let name = name.trim();
        Hints::DEFINITIONS
            .iter()
            .position(|definition| definition.answers_to(name))
    }
}
