//! Differences in the words of the list of known ones.

use super::case::{Access, Case, Direction, How, Open, Step, View};
use super::compare::{Aspect, Difference, Kind};
use super::datatype::Datatype;
use super::record::{Value, Values};

/// A difference and the case that shows it.
pub(super) struct Seen<'a> {
    pub(super) case: &'a Case,
    pub(super) expected: &'a [Values],
    pub(super) difference: &'a Difference,
}

impl Seen<'_> {
    pub(super) fn aspect(&self) -> Aspect {
        self.difference.aspect()
    }

    pub(super) fn key(&self) -> &str {
        match &self.difference.kind {
            Kind::Value { key, .. } => key,
            Kind::Hang | Kind::Crash(_) => "",
        }
    }

    pub(super) fn found(&self) -> &str {
        match &self.difference.kind {
            Kind::Value { found, .. } => found,
            Kind::Hang | Kind::Crash(_) => "",
        }
    }

    /// The step that differs.
    pub(super) fn step(&self) -> Option<&Step> {
        self.case.steps.get(self.difference.step.checked_sub(1)?)
    }

    /// The open that differs.
    pub(super) fn open(&self) -> &Open {
        match self.step() {
            Some(Step::Reopen(open)) => open,
            _ => &self.case.open,
        }
    }

    /// Whether the file is open for sequential access at the step that differs.
    pub(super) fn is_sequential(&self) -> bool {
        let before = self.case.steps.iter().take(self.difference.step).rev();
        let mut opens = before.filter_map(|step| match step {
            Step::Reopen(open) => Some(open),
            _ => None,
        });
        opens.next().unwrap_or(&self.case.open).mode.has('s')
    }

    pub(super) fn is_exclusive(&self) -> bool {
        self.open().mode.has('e')
    }

    /// The access that differs, or those that the step completes.
    pub(super) fn accesses(&self) -> Vec<&Access> {
        let before = self.case.steps.iter().take(self.difference.step).rev();
        match self.step() {
            Some(Step::Access(access)) => vec![access],
            Some(Step::Complete(_) | Step::SplitEnd) => before
                .skip(1)
                .take_while(|step| !matches!(step, Step::Complete(_) | Step::SplitEnd))
                .filter_map(|step| match step {
                    Step::Access(access) if access.how != How::Blocking => Some(access),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// The views in force; none where they are those of a file that was just opened.
    pub(super) fn views(&self) -> &[View] {
        let before = self.case.steps.iter().take(self.difference.step).rev();
        let mut views = before.filter_map(|step| match step {
            Step::View(views, _) => Some(views.as_slice()),
            Step::Reopen(_) => Some(&[] as &[View]),
            _ => None,
        });
        views.next().unwrap_or_default()
    }

    /// Whether the view in force has types of the odd kind.
    pub(super) fn has_odd_view(&self) -> bool {
        let mut views = self.views().iter();
        views.any(|view| is_odd(&view.filetype) || is_odd(&view.etype))
    }

    pub(super) fn has_view_with_holes(&self) -> bool {
        let mut views = self.views().iter();
        views.any(|view| {
            let layout = view.filetype.layout();
            layout.size() != layout.extent()
        })
    }

    /// Whether a rank reads past the end of the file in a step.
    pub(super) fn is_short(&self, step: usize) -> bool {
        let Some(Step::Access(access)) = step.checked_sub(1).and_then(|at| self.case.steps.get(at))
        else {
            return false;
        };
        access.direction == Direction::Read
            && access
                .parts
                .iter()
                .zip(self.expected)
                .any(|(part, values)| {
                    let asked = part.memory().places.len().to_string();
                    let got = values.get(&(step, "bytes".to_owned()));
                    got.is_some_and(|got| *got != Value::Word(asked))
                })
    }
}

/// Whether a type has a part whose lower bound is not 0, or a distributed array.
pub(super) fn is_odd(datatype: &Datatype) -> bool {
    datatype.has_darray() || datatype.any(&|it| it.layout().low != 0)
}

pub(super) fn is_decreasing(access: &Access) -> bool {
    access.parts.iter().any(|part| {
        let runs = part.memory.layout().runs;
        part.is_active && runs.windows(2).any(|pair| pair[1].0 < pair[0].0)
    })
}

pub(super) fn has_empty_part(access: &Access) -> bool {
    let is_empty = |it: &Datatype| it.layout().runs.is_empty();
    access.parts.iter().any(|part| part.memory.any(&is_empty))
}

pub(super) fn has_odd_memory(access: &Access) -> bool {
    access
        .parts
        .iter()
        .any(|part| part.is_active && is_odd(&part.memory))
}

/// Whether a rank's memory is one run that begins elsewhere than the buffer.
pub(super) fn is_displaced(access: &Access) -> bool {
    access.parts.iter().any(|part| {
        let layout = part.memory.layout();
        part.is_active && layout.runs.len() == 1 && layout.runs[0].0 != 0
    })
}
