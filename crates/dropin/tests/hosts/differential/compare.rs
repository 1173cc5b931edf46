//! Where an outcome is not the expected one.

use std::fmt;

use super::case::Case;
use super::record::{Outcome, Value, Values};

/// The first difference between what should happen and what did.
#[derive(Clone, Debug)]
pub(super) struct Difference {
    pub(super) step: usize,
    /// What the step is called.
    pub(super) name: String,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Value {
        rank: usize,
        key: String,
        expected: String,
        found: String,
    },
    Hang,
    Crash(String),
}

/// What a value says that is not there.
const NOTHING: &str = "nothing";

impl Difference {
    /// The same for differences of one cause, mostly.
    pub(super) fn category(&self) -> String {
        match &self.kind {
            Kind::Value { key, .. } => format!("{}.{key}", self.name),
            Kind::Hang => format!("{}.hang", self.name),
            Kind::Crash(_) => format!("{}.crash", self.name),
        }
    }
}

/// What differs, roughly: a shrunk case has to fail in the same respect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Aspect {
    Data,
    Count,
    Pointer,
    Class,
    Other,
    Hang,
    Crash,
}

impl Difference {
    pub(super) fn aspect(&self) -> Aspect {
        match &self.kind {
            Kind::Hang => Aspect::Hang,
            Kind::Crash(_) => Aspect::Crash,
            Kind::Value { key, .. } => match key.as_str() {
                "memory" | "contents" | "file" => Aspect::Data,
                "bytes" | "count" | "elements" => Aspect::Count,
                "position" | "byte_offset" | "shared_position" | "size" => Aspect::Pointer,
                "open" | "class" | "wait" | "end" | "close" => Aspect::Class,
                _ => Aspect::Other,
            },
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {}, {}: ", self.step, self.name)?;
        match &self.kind {
            Kind::Value {
                rank,
                key,
                expected,
                found,
            } => write!(f, "rank {rank}: {key} is {found}, not {expected}"),
            Kind::Hang => write!(f, "it does not end"),
            Kind::Crash(printed) => write!(f, "it crashes\n{printed}"),
        }
    }
}

/// What the numbered step of a case is called; pending accesses are known by the step that started them.
pub(super) fn step_name(case: &Case, step: usize) -> String {
    match step {
        0 => "open".into(),
        step if step <= case.steps.len() => case.steps[step - 1].name(),
        _ => "close".into(),
    }
}

/// The first difference, if there is any.
pub(super) fn difference(
    case: &Case,
    expected: &[Values],
    outcome: &Outcome,
) -> Option<Difference> {
    let (step, kind) = match outcome {
        Outcome::Finished(found) => first_value(expected, found)?,
        // What was recorded last is behind; the step after it did not return.
        Outcome::Hung(step) => (*step, Kind::Hang),
        Outcome::Crashed(step, printed) => (*step, Kind::Crash(printed.clone())),
    };
    Some(Difference {
        step,
        name: step_name(case, step),
        kind,
    })
}

/// Causes before what follows from them.
fn weight(key: &str) -> usize {
    let keys = [
        "open", "class", "wait", "end", "memory", "bytes", "count", "elements", "contents",
    ];
    keys.iter().position(|it| *it == key).unwrap_or(keys.len())
}

fn first_value(expected: &[Values], found: &[Values]) -> Option<(usize, Kind)> {
    let mut first: Option<((usize, usize), Kind)> = None;
    let nothing = Value::Word(NOTHING.into());
    for (rank, (expected, found)) in expected.iter().zip(found).enumerate() {
        let keys = expected.keys().chain(found.keys());
        for at in keys {
            let wanted = expected.get(at).unwrap_or(&nothing);
            let got = found.get(at).unwrap_or(&nothing);
            if wanted.agrees(got) {
                continue;
            }
            let order = (at.0, weight(&at.1));
            if first.as_ref().is_none_or(|(before, _)| order < *before) {
                let kind = Kind::Value {
                    rank,
                    key: at.1.clone(),
                    expected: wanted.to_string(),
                    found: got.to_string(),
                };
                first = Some((order, kind));
            }
        }
    }
    first.map(|((step, _), kind)| (step, kind))
}
