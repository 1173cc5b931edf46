//! What a candidate says of a case: how well it suits, and why.

use std::{borrow::Cow, fmt};

/// A candidate's answer (Chaarawi 2011's query).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It can be used; the highest priority is taken.
    Suits {
        /// From 1 (works) to 100 (made for this).
        priority: u8,
        /// Why that much.
        reason: Cow<'static, str>,
    },
    /// It cannot be used.
    Unfit {
        /// Why not.
        reason: Cow<'static, str>,
    },
}

impl Verdict {
    /// It can be used.
    pub fn suits(priority: u8, reason: impl Into<Cow<'static, str>>) -> Verdict {
        Verdict::Suits {
            priority,
            reason: reason.into(),
        }
    }

    /// It cannot be used.
    pub fn unfit(reason: impl Into<Cow<'static, str>>) -> Verdict {
        Verdict::Unfit {
            reason: reason.into(),
        }
    }

    /// The priority, if it can be used.
    pub fn priority(&self) -> Option<u8> {
        match self {
            Verdict::Suits { priority, .. } => Some(*priority),
            Verdict::Unfit { .. } => None,
        }
    }

    /// Why.
    pub fn reason(&self) -> &str {
        match self {
            Verdict::Suits { reason, .. } | Verdict::Unfit { reason } => reason,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Suits { priority, reason } => write!(f, "priority {priority}: {reason}"),
            Verdict::Unfit { reason } => write!(f, "unfit: {reason}"),
        }
    }
}
