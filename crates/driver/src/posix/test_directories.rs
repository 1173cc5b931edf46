//! Where unit tests of leases have their files: on each kind of local file system that they can use.

use std::{
    fmt::Display,
    io::{self, Write},
};

use tempfile::TempDir;

use super::{Posix, lease};
use crate::Driver;

const IN_MEMORY: &str = "/dev/shm";

/// A directory on the file system of temporary files and one on tmpfs, if files there can be leased.
pub(super) fn with_leases() -> Vec<TempDir> {
    let mut all = vec![tempfile::tempdir().unwrap()];
    match tempfile::tempdir_in(IN_MEMORY) {
        Ok(directory) => all.push(directory),
        Err(error) => skipped(IN_MEMORY, error),
    }
    all.retain(|directory| {
        let file_system = Posix::new().file_system(directory.path()).unwrap();
        let is_leasable = file_system.grants_leases() && lease::last_long_enough();
        if !is_leasable {
            skipped(directory.path().display(), "the kernel grants no leases");
        }
        is_leasable
    });
    all
}

/// Reports on standard error what a test skips, and why.
fn skipped(what: impl Display, why: impl Display) {
    // eprintln! would be captured, and shown only if the test failed.
    let mut stderr = io::stderr();
    writeln!(stderr, "skipped: {what}: {why}").unwrap();
}
