//! Helpers for the random tests.

/// The seed of a run; `PARIO_SEED` reproduces one.
pub(crate) fn seed() -> u64 {
    number("PARIO_SEED").unwrap_or_else(|| fastrand::u64(..))
}

/// Number of random cases: `PARIO_CASES` or `default`.
pub(crate) fn cases(default: u64) -> u64 {
    number("PARIO_CASES").unwrap_or(default)
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}
