//! The definition of a hint: everything but its value.

use crate::table::Hints;
use std::fmt;

/// Whose value is used if ranks differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The file has one value: rank 0's, with a warning if another rank's differs.
    File,
    /// Each rank has its own value.
    Rank,
}

/// When a user may set a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Only at open.
    Open,
    /// At open and in every later call that takes an info.
    Always,
    /// Never: pario reports it.
    Reported,
}

/// The section of the documentation that a hint belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Access to scattered pieces.
    Noncontiguous,
    /// What depends on the processor.
    Machine,
    /// Nonblocking operations.
    Nonblocking,
    /// How collective calls move data.
    Collective,
    /// Assumed facts about the file system.
    Assumptions,
    /// How the file is opened, cached and closed.
    File,
    /// Facts without effect.
    Information,
}

impl Group {
    /// All groups in the order of the documentation.
    pub const ALL: [Group; 7] = [
        Group::Noncontiguous,
        Group::Machine,
        Group::Nonblocking,
        Group::Collective,
        Group::Assumptions,
        Group::File,
        Group::Information,
    ];
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Group::Noncontiguous => "Non-contiguous access",
            Group::Machine => "The machine",
            Group::Nonblocking => "Nonblocking operations",
            Group::Collective => "Collective calls",
            Group::Assumptions => "Assumed facts",
            Group::File => "The file",
            Group::Information => "Information",
        })
    }
}

/// One hint: everything but its value.
pub struct Definition {
    /// The name that `get_info` reports.
    pub name: &'static str,
    /// Other names that users may use.
    pub aliases: &'static [&'static str],
    /// Its description, in sentences.
    pub doc: &'static [&'static str],
    /// Its section in the documentation.
    pub group: Group,
    /// Whose value is used.
    pub scope: Scope,
    /// When it can be set.
    pub moment: Moment,
    pub(crate) allowed: fn() -> String,
    pub(crate) set: fn(&mut Hints, &str) -> Option<()>,
    pub(crate) get: fn(&Hints) -> Option<String>,
    pub(crate) copy: fn(&mut Hints, &Hints),
}

impl Definition {
    /// The allowed values, as the end of a sentence.
    pub fn allowed(&self) -> String {
        (self.allowed)()
    }

    /// Its value in `hints`; `None` if it is not set.
    pub fn value(&self, hints: &Hints) -> Option<String> {
        (self.get)(hints)
    }

    /// Whether `name` is its name or one of its aliases.
    pub fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Definition")
            .field("name", &self.name)
            .field("aliases", &self.aliases)
            .field("scope", &self.scope)
            .field("moment", &self.moment)
            .finish_non_exhaustive()
    }
}
