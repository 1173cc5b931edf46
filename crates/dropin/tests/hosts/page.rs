//! `docs/hosts.md`: what passed under which host.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::run::{Entry, Run, TestResult, left_out};

const HEAD: &str = "\
# Hosts

<!-- Written by `cargo xtask test --full` -->

The MPIs that `libpario.so` is tested with, and the number of jobs per suite that passed
under each. A job is one program with one number of ranks; programs check their own results,
and a job whose files pario did not handle counts as failed. `n of m`: only n of m jobs passed.
A dash: the suite does not exist for that host, for the reason given below the table or because
Debian builds the library for one MPI only.
";

/// Writes the page from the results of this run.
pub(crate) fn write(run: &Run) -> TestResult {
    let text = page(run, &run.entries())?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::write(root.join("docs/hosts.md"), text).map_err(|error| error.to_string())
}

fn page(run: &Run, entries: &[Entry]) -> TestResult<String> {
    let mut text = HEAD.to_owned();
    text.push_str("\n| host | version | passed |\n|---|---|---|\n");
    for host in &run.hosts {
        let cell = cell(entries.iter().filter(|entry| entry.host == host.name));
        let row = format!(
            "| {}: {} | {} | {cell} |",
            host.name,
            host.title,
            host.version()?
        );
        writeln!(text, "{row}").expect("a text takes everything");
    }
    text.push_str("\n| suite |");
    for host in &run.hosts {
        write!(text, " {} |", host.name).expect("a text takes everything");
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(run.hosts.len()));
    text.push('\n');
    let suites: BTreeSet<&str> = entries.iter().map(|entry| entry.suite.as_str()).collect();
    for suite in suites {
        write!(text, "| {suite} |").expect("a text takes everything");
        for host in &run.hosts {
            let matching = |entry: &&Entry| entry.suite == suite && entry.host == host.name;
            let cell = cell(entries.iter().filter(matching));
            write!(text, " {cell} |").expect("a text takes everything");
        }
        text.push('\n');
    }
    text.push_str("\nNot run:\n\n");
    for line in left_out(&run.skips()) {
        writeln!(text, "- {line}").expect("a text takes everything");
    }
    Ok(text)
}

fn cell<'a>(entries: impl Iterator<Item = &'a Entry>) -> String {
    let (mut passed, mut all) = (0, 0);
    for entry in entries {
        all += 1;
        passed += u32::from(entry.has_passed);
    }
    match all {
        0 => "-".into(),
        _ if passed == all => passed.to_string(),
        _ => format!("{passed} of {all}"),
    }
}
