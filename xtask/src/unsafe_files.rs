//! Unsafe code is confined to a few files, each listed in `xtask/unsafe-files.txt` with its reason.
//!
//! The workspace denies `unsafe_code`, so a file that contains any must lift the lint; the
//! compiler finds the code, this check finds the exceptions and crates that omit the lints.
//! Test files need the attribute but no entry.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::Outcome;

const LIST: &str = "xtask/unsafe-files.txt";

/// Attributes that lift the lint.
const LIFTS: [&str; 2] = ["allow(unsafe_code", "expect(unsafe_code"];

/// Fails if a file lifts the lint without being listed, or is listed without lifting it, or if a
/// crate does not take the workspace's lints.
pub(crate) fn check(root: &Path) -> Outcome {
    let text = fs::read_to_string(root.join(LIST))
        .map_err(|error| format!("cannot read {LIST}: {error}"))?;
    let listed = parse(&text)?;
    let mut lifting = BTreeSet::new();
    let mut faults = Vec::new();
    for file in files_below(root)? {
        let name = relative(root, &file);
        let text =
            fs::read_to_string(&file).map_err(|error| format!("cannot read {name}: {error}"))?;
        if name.ends_with("Cargo.toml") && !takes_workspace_lints(&text) {
            faults.push(format!("{name} lacks `[lints] workspace = true`"));
        }
        if name.ends_with(".rs") && !name.contains("/tests/") && lifts_lint(&text) {
            lifting.insert(name);
        }
    }
    for name in &lifting {
        if !listed.contains_key(name.as_str()) {
            faults.push(format!(
                "{name} allows unsafe code but is not listed in {LIST}"
            ));
        }
    }
    for name in listed.keys() {
        if !lifting.contains(*name) {
            faults.push(format!(
                "{name} is listed in {LIST} but allows no unsafe code"
            ));
        }
    }
    if faults.is_empty() {
        println!("unsafe code: {} files, all listed in {LIST}", lifting.len());
        Ok(())
    } else {
        Err(faults.join("\n       "))
    }
}

/// Paths and reasons of the list.
fn parse(list: &str) -> Outcome<BTreeMap<&str, &str>> {
    list.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| match line.split_once(':') {
            Some((path, reason)) if !reason.trim().is_empty() => Ok((path.trim(), reason.trim())),
            _ => Err(format!(
                "{LIST}: `{line}` gives no reason; write `path: reason`"
            )),
        })
        .collect()
}

fn lifts_lint(source: &str) -> bool {
    source
        .lines()
        .map(str::trim_start)
        .filter(|line| line.starts_with("#[") || line.starts_with("#!["))
        .any(|line| LIFTS.iter().any(|lift| line.contains(lift)))
}

fn takes_workspace_lints(manifest: &str) -> bool {
    manifest
        .split("\n[")
        .find_map(|section| section.strip_prefix("lints]"))
        .is_some_and(|section| section.contains("workspace = true"))
}

/// Rust files and manifests of the workspace's members; the fuzz targets are not among them.
fn files_below(root: &Path) -> Outcome<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut directories = vec![root.join("crates"), root.join("xtask")];
    while let Some(directory) = directories.pop() {
        let entries = fs::read_dir(&directory)
            .map_err(|error| format!("cannot list {}: {error}", directory.display()))?;
        for entry in entries {
            let entry =
                entry.map_err(|error| format!("cannot list {}: {error}", directory.display()))?;
            let path = entry.path();
            let name = entry.file_name();
            if path.is_dir() {
                if name != "fuzz" && name != "target" {
                    directories.push(path);
                }
            } else if name == "Cargo.toml"
                || path.extension().is_some_and(|extension| extension == "rs")
            {
                files.push(path);
            }
        }
    }
    Ok(files)
}

fn relative(root: &Path, file: &Path) -> String {
    file.strip_prefix(root)
        .unwrap_or(file)
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_file_needs_a_reason() {
        assert!(
            parse("# comment\n\nsrc/a.rs: maps memory\n")
                .is_ok_and(|list| list["src/a.rs"] == "maps memory")
        );
        assert!(parse("src/a.rs").is_err());
        assert!(parse("src/a.rs:  ").is_err());
    }

    #[test]
    fn only_attributes_lift_the_lint() {
        assert!(lifts_lint("#![allow(unsafe_code)] // futex"));
        assert!(lifts_lint("    #[expect(unsafe_code, reason = \"fork\")]"));
        assert!(!lifts_lint("// never write allow(unsafe_code here"));
    }

    #[test]
    fn manifests_without_lints_are_seen() {
        assert!(takes_workspace_lints(
            "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n"
        ));
        assert!(!takes_workspace_lints(
            "[package]\nname = \"a\"\nedition.workspace = true\n"
        ));
    }
}
