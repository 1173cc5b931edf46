//! Environment variables that affect pario.

use std::env;

use super::report::Finding;
use crate::facts;

/// Relevant variables that do not begin with `PARIO_`.
const OTHERS: [&str; 2] = ["ROMIO_HINTS", "LD_PRELOAD"];

pub(super) fn findings() -> Vec<Finding> {
    let counts = |name: &str| name.starts_with("PARIO_") || OTHERS.contains(&name);
    let mut found: Vec<_> = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| counts(name))
        .map(|(name, value)| Finding::good(name, value.to_string_lossy()))
        .collect();
    if found.is_empty() {
        found.push(Finding::good("variables", "none set"));
    }
    let warnings = facts::hints(&[]).map_or_else(|error| vec![error], |(_, warnings)| warnings);
    found.extend(warnings.into_iter().map(|it| Finding::note("hint", it)));
    found
}
