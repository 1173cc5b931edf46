//! Pages that are generated from code.

use std::fs;

use crate::shell::{self, Outcome};

/// The hints page, generated from their definitions.
const HINTS_PAGE: &str = "docs/hints.md";

/// Regenerates the pages.
pub(crate) fn regenerate() -> Outcome {
    let page = hints_page()?;
    fs::write(shell::root().join(HINTS_PAGE), page)
        .map_err(|error| format!("cannot write {HINTS_PAGE}: {error}"))?;
    println!("wrote {HINTS_PAGE}");
    Ok(())
}

/// Fails if a page is out of date.
pub(crate) fn check() -> Outcome {
    let stored = fs::read_to_string(shell::root().join(HINTS_PAGE))
        .map_err(|error| format!("cannot read {HINTS_PAGE}: {error}"))?;
    if stored == hints_page()? {
        println!("{HINTS_PAGE} is up to date");
        Ok(())
    } else {
        Err(format!(
            "{HINTS_PAGE} is out of date: run `cargo xtask docs` and commit the result"
        ))
    }
}

fn hints_page() -> Outcome<String> {
    shell::output(shell::cargo(&[
        "run",
        "--quiet",
        "--package",
        "pario-cli",
        "--",
        "hints",
    ]))
}
