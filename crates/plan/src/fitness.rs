//! How well a candidate suits a case, and why.

use std::{borrow::Cow, fmt};

/// A candidate's fitness (Chaarawi 2011's query).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fitness {
    /// Usable; the candidate with the highest priority is selected.
    Suits {
        /// From 1 (works) to 100 (ideal).
        priority: u8,
        /// Why this priority.
        reason: Cow<'static, str>,
    },
    /// Not usable.
    Unfit {
        /// Why not.
        reason: Cow<'static, str>,
    },
}

impl Fitness {
    /// A usable candidate.
    pub fn suits(priority: u8, reason: impl Into<Cow<'static, str>>) -> Fitness {
        Fitness::Suits {
            priority,
            reason: reason.into(),
        }
    }

    /// An unusable candidate.
    pub fn unfit(reason: impl Into<Cow<'static, str>>) -> Fitness {
        Fitness::Unfit {
            reason: reason.into(),
        }
    }

    /// The priority, if usable.
    pub fn priority(&self) -> Option<u8> {
        match self {
            Fitness::Suits { priority, .. } => Some(*priority),
            Fitness::Unfit { .. } => None,
        }
    }

    /// The reason.
    pub fn reason(&self) -> &str {
        match self {
            Fitness::Suits { reason, .. } | Fitness::Unfit { reason } => reason,
        }
    }
}

impl fmt::Display for Fitness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fitness::Suits { priority, reason } => write!(f, "priority {priority}: {reason}"),
            Fitness::Unfit { reason } => write!(f, "unfit: {reason}"),
        }
    }
}
