//! What a candidate says of a case: how well it suits, and why.

use std::{borrow::Cow, fmt};

/// A candidate's answer (Chaarawi 2011's query).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fitness {
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

impl Fitness {
    /// It can be used.
    pub fn suits(priority: u8, reason: impl Into<Cow<'static, str>>) -> Fitness {
        Fitness::Suits {
            priority,
            reason: reason.into(),
        }
    }

    /// It cannot be used.
    pub fn unfit(reason: impl Into<Cow<'static, str>>) -> Fitness {
        Fitness::Unfit {
            reason: reason.into(),
        }
    }

    /// The priority, if it can be used.
    pub fn priority(&self) -> Option<u8> {
        match self {
            Fitness::Suits { priority, .. } => Some(*priority),
            Fitness::Unfit { .. } => None,
        }
    }

    /// Why.
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
