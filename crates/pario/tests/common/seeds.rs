//! Seeds of random cases: `PARIO_SEED` repeats one, `PARIO_CASES` multiplies.

use std::env;

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| {
        panic!("{name} is {text:?}, which is not a whole number from 0 to 2^64 - 1")
    }))
}

/// The seeds of a test's cases: one if `PARIO_SEED` names it, else
/// `PARIO_CASES` of them, else `default`.
pub(crate) fn seeds(default: u64) -> Vec<u64> {
    match number("PARIO_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("PARIO_CASES").unwrap_or(default)).collect(),
    }
}
