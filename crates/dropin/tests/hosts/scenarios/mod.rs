//! Surroundings that plain runs do not have.

pub(crate) mod mounts;

use std::sync::Arc;

use libtest_mimic::Trial;

use crate::run::Run;

/// The trials of all scenarios.
pub(crate) fn trials(_run: &Arc<Run>) -> Vec<Trial> {
    Vec::new()
}
