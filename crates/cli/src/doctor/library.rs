//! The drop-in library: where it is, and whether it can be preloaded.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::report::Finding;
use crate::run::library;

/// The library that `pario run` would preload, or why there is none.
pub(super) fn find() -> Result<PathBuf, String> {
    library::find(None).map_err(|failure| failure.to_string())
}

pub(super) fn findings(library: &Result<PathBuf, String>) -> Vec<Finding> {
    let subject = library::NAME;
    let finding = match library {
        Err(reason) => Finding::missing(subject, reason.clone()),
        Ok(path) => match preload(path) {
            Ok(()) => Finding::good(subject, format!("{}, can be preloaded", path.display())),
            Err(reason) => Finding::missing(
                subject,
                format!("{} cannot be preloaded: {reason}", path.display()),
            ),
        },
    };
    vec![finding]
}

/// Starts a program with the library and reads the dynamic linker's messages; it continues without
/// a library that it cannot load.
fn preload(library: &Path) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program)
        .arg("--version")
        .env("LD_PRELOAD", library)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    match stderr.lines().next() {
        None if output.status.success() => Ok(()),
        None => Err(format!(
            "a program that loads it exited with {}",
            output.status
        )),
        Some(line) => Err(line.to_owned()),
    }
}
