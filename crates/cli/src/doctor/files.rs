//! The file systems of directories.

use std::path::Path;

use pario_driver::{Coherence, Facts, FileSystem};

use super::report::Finding;
use crate::measure::Scratch;

/// Findings about one directory.
pub(super) fn findings(directory: &Path) -> Vec<Finding> {
    let name = directory
        .canonicalize()
        .unwrap_or_else(|_| directory.to_owned())
        .display()
        .to_string();
    // Creates and removes a file: some facts are known for open files only.
    let probe = match Scratch::unguarded(Some(directory)) {
        Ok(probe) => probe,
        Err(failure) => return vec![Finding::missing(name, failure.to_string())],
    };
    let facts = probe.facts();
    let mut finding = coherence(facts, name)
        .remark(format!(
            "blocks of {} bytes, {}",
            facts.block_size,
            direct(facts)
        ))
        .remark(striping(facts));
    if let Some(space) = space(directory) {
        finding = finding.remark(space);
    }
    if let Ok(resolved) = pario_driver::resolve(probe.path().join("data"), None) {
        finding = finding.remark(format!("driver {}", resolved.reason));
    }
    vec![finding]
}

fn coherence(facts: &Facts, name: String) -> Finding {
    let kind = &facts.file_system;
    let mount = facts.mount_point.as_ref();
    let place = mount.map_or_else(String::new, |it| format!(", mounted at {}", it.display()));
    let left = match kind {
        FileSystem::Nfs => "files shared by ranks of several nodes are accessed without a cache",
        _ => "files shared by ranks of several nodes are left to the MPI's own MPI-IO",
    };
    match facts.coherence {
        Coherence::Everywhere => Finding::good(name, format!("{kind}{place}, coherent")),
        Coherence::WithinNode => {
            Finding::note(name, format!("{kind}{place}, coherent within a node")).remark(left)
        }
        Coherence::Unknown => {
            let found = format!("{kind}{place}, not known to be coherent between nodes");
            Finding::note(name, found).remark(left)
        }
    }
}

fn direct(facts: &Facts) -> String {
    match facts.direct_alignment {
        Some(alignment) => format!("direct I/O aligned to {alignment} bytes"),
        None => "no direct I/O".to_owned(),
    }
}

fn striping(facts: &Facts) -> String {
    match facts.striping {
        Some(it) => {
            let stripes = format!("stripes of {} bytes over {} servers", it.unit, it.count);
            match facts
                .placement
                .as_ref()
                .map_or(1, |it| it.components().len())
            {
                1 => stripes,
                parts => format!("{parts} components, the longest with {stripes}"),
            }
        }
        None => "striping not known".to_owned(),
    }
}

fn space(directory: &Path) -> Option<String> {
    let found = rustix::fs::statvfs(directory).ok()?;
    let gigabytes = |blocks: u64| blocks as f64 * found.f_frsize as f64 / 1e9;
    Some(format!(
        "{:.1} GB free of {:.1} GB",
        gigabytes(found.f_bavail),
        gigabytes(found.f_blocks)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_described_and_left_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let found = format!("{:?}", findings(directory.path()));
        assert!(
            found.contains("blocks of") && found.contains("driver posix"),
            "{found}"
        );
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        let found = format!("{:?}", findings(Path::new("/nowhere/at/all")));
        assert!(found.contains("Missing"), "{found}");
    }
}
