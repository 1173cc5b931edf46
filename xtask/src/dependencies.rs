//! Checks of the crates that the workspace depends on: their licences, sources and versions, and
//! whether they have been yanked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::licence;
use crate::shell::{self, Outcome, cargo};

/// A crate as `cargo tree` prints it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Dependency {
    name: String,
    version: String,
    /// Where it comes from, if not from crates.io.
    source: Option<String>,
    licence: String,
}

/// Fails if a crate of the workspace's dependencies has a licence that is not allowed, comes from
/// elsewhere than crates.io, is needed in several versions, or has been yanked.
pub(crate) fn check(root: &Path) -> Outcome {
    let tree = shell::output(cargo(&[
        "tree",
        "--locked",
        "--workspace",
        "--edges=normal,build,dev",
        "--target=all",
        "--prefix=none",
        "--format={p}|{l}",
    ]))?;
    let dependencies = parse(&tree)?;
    let mut faults = faults(&dependencies, root);
    let external = || dependencies.iter().filter(|it| it.source.is_none());
    let index = index_directories();
    let mut in_index = 0;
    for it in external() {
        let entry = index
            .iter()
            .find_map(|directory| index_entry(directory, it));
        in_index += usize::from(entry.is_some());
        if entry.is_some_and(|entry| is_yanked(&entry)) {
            faults.push(format!("{} {} has been yanked", it.name, it.version));
        }
    }
    if !faults.is_empty() {
        return Err(faults.join("\n       "));
    }
    println!(
        "dependencies: {} crates with allowed licences, from crates.io, one version each; {in_index} \
         of them are in cargo's copy of the index, none yanked",
        external().count()
    );
    Ok(())
}

fn faults(dependencies: &BTreeSet<Dependency>, root: &Path) -> Vec<String> {
    let mut faults = Vec::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for it in dependencies {
        let named = format!("{} {}", it.name, it.version);
        if let Some(source) = &it.source
            && !Path::new(source).starts_with(root)
        {
            faults.push(format!("{named} comes from {source}, not from crates.io"));
        }
        if let Err(reason) = licence::check(&it.licence) {
            faults.push(format!("{named}: {reason}"));
        }
        versions.entry(&it.name).or_default().push(&it.version);
    }
    for (name, versions) in versions {
        if versions.len() > 1 {
            let versions = versions.join(" and ");
            faults.push(format!("{name} is needed in versions {versions}"));
        }
    }
    faults
}

/// The crates in the output of `cargo tree`, each once.
fn parse(tree: &str) -> Outcome<BTreeSet<Dependency>> {
    let lines = tree.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| parse_line(line).ok_or_else(|| format!("cargo tree printed {line:?}")))
        .collect()
}

/// A line such as `libc v0.2.1|MIT` or `xtask v0.1.0 (/path)|MIT (*)`.
fn parse_line(line: &str) -> Option<Dependency> {
    let (package, licence) = line.split_once('|')?;
    let mut words = package.splitn(3, ' ');
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    let rest = words.next().unwrap_or("").replace("(proc-macro)", "");
    let rest = rest.trim().trim_start_matches('(').trim_end_matches(')');
    Some(Dependency {
        name: name.to_owned(),
        version: version.to_owned(),
        source: (!rest.is_empty()).then(|| rest.to_owned()),
        licence: licence.trim_end_matches("(*)").trim().to_owned(),
    })
}

/// Where cargo keeps what it has fetched of registry indexes.
fn index_directories() -> Vec<PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    let indexes = home.and_then(|home| fs::read_dir(home.join("registry/index")).ok());
    let indexes = indexes.into_iter().flatten().flatten();
    indexes.map(|index| index.path().join(".cache")).collect()
}

/// The JSON of a version in the index.
fn index_entry(index: &Path, dependency: &Dependency) -> Option<String> {
    let name = dependency.name.to_lowercase();
    let directory = match name.len() {
        1 => "1".to_owned(),
        2 => "2".to_owned(),
        3 => format!("3/{}", name.get(..1)?),
        _ => format!("{}/{}", name.get(..2)?, name.get(2..4)?),
    };
    let bytes = fs::read(index.join(directory).join(&name)).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let wanted = format!("\"vers\":\"{}\"", dependency.version);
    // Entries are separated by NUL bytes; spaces in them differ between registries.
    text.split('\0')
        .map(|entry| entry.replace(' ', ""))
        .find(|entry| entry.contains(&wanted))
}

fn is_yanked(entry: &str) -> bool {
    entry.contains("\"yanked\":true")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "\
pario v0.1.0 (/work/crates/pario)|MIT OR Apache-2.0
libc v0.2.1|MIT OR Apache-2.0
serde_derive v1.0.2 (proc-macro)|MIT OR Apache-2.0

libc v0.2.1|MIT OR Apache-2.0 (*)
";

    #[test]
    fn lines_of_cargo_tree_are_read() {
        let found = parse(TREE).unwrap();
        let names: Vec<_> = found.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["libc", "pario", "serde_derive"]);
        let source = |name| found.iter().find(|it| it.name == name)?.source.clone();
        assert_eq!(source("pario").as_deref(), Some("/work/crates/pario"));
        assert_eq!(source("serde_derive"), None);
        assert!(faults(&found, Path::new("/work")).is_empty());
        assert!(parse("what is this").is_err());
    }

    #[test]
    fn sources_licences_and_versions_are_checked() {
        let bad = "\
fork v1.0.0 (https://example.org/fork#1234)|MIT
copyleft v1.0.0|GPL-3.0
twice v1.0.0|MIT
twice v2.0.0|MIT
";
        let faults = faults(&parse(bad).unwrap(), Path::new("/work"));
        assert_eq!(faults.len(), 3, "{faults:?}");
        assert!(faults.iter().any(|it| it.contains("https://example.org")));
        assert!(faults.iter().any(|it| it.contains("GPL-3.0")));
        assert!(faults.iter().any(|it| it.contains("1.0.0 and 2.0.0")));
    }

    #[test]
    fn yanked_versions_are_found_in_the_index() {
        let directory = env::temp_dir().join(format!("xtask-index-{}", std::process::id()));
        fs::create_dir_all(directory.join("so/me")).unwrap();
        let entries = [
            "\u{1}",
            "1.0.0",
            r#"{"name": "some", "vers": "1.0.0", "yanked": true}"#,
            "1.0.1",
            r#"{"name":"some","vers":"1.0.1","yanked":false}"#,
        ];
        let entries = entries.join("\0");
        fs::write(directory.join("so/me/some"), entries).unwrap();
        let yanked = |version: &str| {
            let line = format!("some v{version}|MIT");
            index_entry(&directory, &parse_line(&line)?).map(|entry| is_yanked(&entry))
        };
        let found = ["1.0.0", "1.0.1", "1.0.2"].map(yanked);
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!(found, [Some(true), Some(false), None]);
    }
}
