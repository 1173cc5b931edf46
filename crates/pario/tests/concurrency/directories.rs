//! Where the files of tests are: on each kind of local file system that tests can use.

use std::{
    io::{self, Write},
    path::Path,
    sync::Mutex,
};

use pario_driver::{Access, Create, Driver, OpenHow, Posix};
use tempfile::TempDir;

const IN_MEMORY: &str = "/dev/shm";

/// A directory on the file system of temporary files, and one on tmpfs.
pub(crate) fn directories() -> Vec<TempDir> {
    let mut all = vec![tempfile::tempdir().unwrap()];
    match tempfile::tempdir_in(IN_MEMORY) {
        Ok(directory) => all.push(directory),
        Err(error) => skipped(Path::new(IN_MEMORY), &error.kind().to_string()),
    }
    all
}

/// Those of the [`directories`] whose files can be leased.
pub(crate) fn with_leases() -> Vec<TempDir> {
    let mut all = directories();
    all.retain(|directory| {
        let is_granted = has_leases(&directory.path().join("leased"));
        if !is_granted {
            let parent = directory.path().parent().unwrap();
            skipped(parent, "the kernel grants no leases");
        }
        is_granted
    });
    all
}

fn has_leases(path: &Path) -> bool {
    let how = OpenHow::new(Access::ReadWrite).create(Create::IfMissing);
    let file = Posix::new().open(path, &how).unwrap();
    let is_granted = file.lease().is_some();
    file.close().unwrap();
    std::fs::remove_file(path).unwrap();
    is_granted
}

/// Reports on standard error what tests skip, and why, once.
fn skipped(directory: &Path, why: &str) {
    static REPORTED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let report = format!("skipped: {}: {why}", directory.display());
    let mut reported = REPORTED.lock().unwrap();
    if !reported.contains(&report) {
        // eprintln! would be captured, and shown only if the test failed.
        let mut stderr = io::stderr();
        writeln!(stderr, "{report}").unwrap();
        reported.push(report);
    }
}
