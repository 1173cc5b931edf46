//! What tests of the command share.

use std::ffi::OsStr;
use std::io::Write;
use std::process::Command;

/// Why tests that need an MPI are skipped.
pub(crate) const NO_MPI: &str = "no MPI is installed; `cargo xtask hosts` installs some";

/// Reports on standard error what a test skips, and why. On CI, where nobody would read it, that
/// is a failure.
pub(crate) fn skipped(what: &str, why: &str) {
    let on_ci = std::env::var_os("CI").is_some();
    assert!(!on_ci, "{what} must not be skipped on CI: {why}");
    // eprintln! would be captured, and shown only if the test failed.
    let mut stderr = std::io::stderr();
    writeln!(stderr, "skipped {what}: {why}").expect("standard error is open");
}

/// Whether a program can be started and reports its version.
pub(crate) fn works(program: impl AsRef<OsStr>) -> bool {
    let version = Command::new(program).arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}
