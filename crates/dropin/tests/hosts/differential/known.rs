//! Differences that are known: what, where, and why. Nothing else may differ.

use super::case::{Access, Case, Direction, How, Step};
use super::compare::{Difference, Kind};
use super::execute::Server;
use crate::host::Host;

/// One known difference from what the standard says.
pub(super) struct Known {
    /// Whose it is.
    server: Server,
    /// The beginnings of the names of hosts that have it; empty for all.
    hosts: &'static [&'static str],
    /// What users are told of it.
    pub(super) reason: &'static str,
    matches: fn(&Seen<'_>) -> bool,
}

/// A difference and the case that shows it.
pub(super) struct Seen<'a> {
    pub(super) case: &'a Case,
    pub(super) difference: &'a Difference,
}

impl Seen<'_> {
    fn key(&self) -> &str {
        match &self.difference.kind {
            Kind::Value { key, .. } => key,
            Kind::Hang => "hang",
            Kind::Crash(_) => "crash",
        }
    }

    fn found(&self) -> &str {
        match &self.difference.kind {
            Kind::Value { found, .. } => found,
            Kind::Hang | Kind::Crash(_) => "",
        }
    }

    fn access(&self) -> Option<&Access> {
        match self.case.steps.get(self.difference.step.checked_sub(1)?)? {
            Step::Access(access) => Some(access),
            _ => None,
        }
    }
}

const ROMIO: &[&str] = &["mpich", "impi"];
const OMPIO: &[&str] = &["openmpi"];

const KNOWN: &[Known] = &[
    Known {
        server: Server::Host,
        hosts: &[],
        reason: "the host's MPI-IO crashes or does not return",
        matches: |seen| matches!(seen.difference.kind, Kind::Hang | Kind::Crash(_)),
    },
];

/// The entry that a difference falls under.
pub(super) fn known(server: Server, host: &Host, seen: &Seen<'_>) -> Option<&'static Known> {
    KNOWN.iter().find(|known| {
        let mut hosts = known.hosts.iter();
        known.server == server
            && (known.hosts.is_empty() || hosts.any(|prefix| host.name.starts_with(prefix)))
            && (known.matches)(seen)
    })
}
